//! What a database holds, as plain values in the order of their names. A field here is read from the server and goes into the
//! snapshot file; which of them are structure, and which only describe the moment, `structure::build` decides.

mod access;
mod constraint;
mod depend;
mod index;
mod program;
mod relation;
mod shared;
mod types;
mod usage;

pub use access::{Grant, Policy};
pub use constraint::{Constraint, ConstraintKind};
pub use depend::{Dependence, DependentKind};
pub use index::{Index, IndexKey};
pub use program::{Enabled, EventTrigger, Function, Rule, Trigger};
pub use relation::{
    Column, Generated, Identity, Partition, Persistence, Relation, RelationKind, Size,
};
pub use shared::{Extension, Other, Publication, PublishedTable, Schema, Statistics};
pub use types::{Attribute, DomainConstraint, Sequence, TypeDef, TypeKind};
pub use usage::{Rates, Window};
