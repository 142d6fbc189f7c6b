//! The built-in HTTP call of an operation.
//!
//! Invariants: the operation's id is the idempotency key; redirects are not followed; an address is vetted before it is
//! connected to, and it is that address that is connected to; only an answer that says so counts as refused.
//!
//! Never: read more of an answer than the limit; use a proxy from the environment; send credentials from a URL.

mod call;
mod policy;
mod send;

pub use call::HttpCall;
pub use policy::HttpPolicy;

pub(crate) use send::HttpClient;
