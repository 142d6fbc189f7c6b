//! One incarnation of a worker: a fresh id, a lease, and its own belief about it. A lost lease makes the next one.

use std::time::Duration;

use uuid::Uuid;

use crate::self_fence::SelfFence;

/// A registered incarnation.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) id: Uuid,
    pub(crate) fence: SelfFence,
}

impl Incarnation {
    /// Registered by a statement that was sent at `sent_ns`.
    pub(crate) fn new(id: Uuid, sent_ns: i64, ttl: Duration) -> Self {
        Self {
            id,
            fence: SelfFence::new(sent_ns, ttl),
        }
    }
}
