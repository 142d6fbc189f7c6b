//! Shadow databases: the lock replayed from nothing, on a private server that ends with this process, or on a given clone.
//!
//! Invariants: what is replayed is the lock, never a folder that is not sealed; nothing is replayed into a database that has
//! something in the schemas of the changes.
//!
//! Never: a database that somebody uses.

mod error;
mod prepare;
mod replay;
mod server;

pub use error::ShadowError;
pub(crate) use replay::makes_its_schema;
pub use replay::{apply, ready, replay};
pub use server::{Private, ServerOptions};

use aegis_catalog::{Key, Kind, Name, Scope, Structure};
use tokio_postgres::Client;

use crate::change::Phase;
use crate::set::Set;

/// What the private server's own files give it: roles and extensions, run before a replay and nowhere else.
pub const SHADOW_FILE: &str = "shadow.sql";

/// The schemas of all changes, sorted.
pub fn schemas(set: &Set) -> Vec<String> {
    let mut schemas: Vec<String> = set
        .changes
        .values()
        .map(|change| change.schema.clone())
        .collect();
    schemas.sort();
    schemas.dedup();
    schemas
}

/// What the schemas of the changes hold. `stand_in` is the role that is only the private server's.
pub async fn structure(
    client: &Client,
    set: &Set,
    stand_in: Option<&str>,
) -> Result<Structure, ShadowError> {
    let scope = Scope::schemas(schemas(set)).structure_only();
    let catalog = aegis_catalog::read(client, &scope).await?;
    let mut structure = catalog.structure();
    if let Some(role) = stand_in {
        structure.forget_role(role);
    }
    Ok(structure)
}

/// Takes the owner out of each schema that no change makes: in production the platform gives it, and a replay only stands in for it.
pub fn forget_given_owners(set: &Set, structure: &mut Structure) {
    for schema in schemas(set) {
        let is_made = set.changes.values().any(|change| {
            let phases = [Phase::Expand, Phase::Migrate, Phase::Contract];
            change.schema == schema && phases.iter().any(|phase| makes_its_schema(change, *phase))
        });
        if !is_made {
            let key = Key::new(Kind::Schema, &Name::new("", &*schema));
            if let Some(shape) = structure.elements.get_mut(&key) {
                shape.remove("owner");
            }
        }
    }
}

/// The name of the file of a structure.
pub fn schema_file(major: u32) -> String {
    format!("schema.{major}.json")
}
