//! How far a statement reaches: what is looked at before and after it.

use aegis_catalog::Name;

/// What a step may touch. Too much only costs time, too little would make drift of the tool's own work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// These objects, with what hangs on them.
    Objects(Vec<Name>),
    /// Nobody can say: dynamic SQL, a call, a whole schema.
    Everything,
}
