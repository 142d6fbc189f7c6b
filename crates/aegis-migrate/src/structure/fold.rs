//! What steps did, in the ledger, and their sum.

use std::collections::BTreeSet;

use aegis_catalog::{Delta, Fold, Key, Kind, MODEL, Name, Scope, Shape, Structure, read_within};
use tokio_postgres::GenericClient;

use super::{Reach, StructureError};
use crate::ledger::LedgerName;

/// The table of the account, made under the mutex with the ledger's.
pub const SCHEMA: &str = include_str!("../../schema/0006_structure.sql");

/// What was there before a step.
#[derive(Debug)]
pub struct Before {
    reach: Reach,
    structure: Structure,
}

/// Looks at what a step will touch. The client is in the step's transaction (or, for a step without one, in a short one of its
/// own before it); what others do to other elements is not seen as the step's.
///
/// # Errors
/// When the catalog cannot be read.
pub async fn before<C: GenericClient + Sync>(
    client: &C,
    reach: &Reach,
) -> Result<Before, StructureError> {
    Ok(Before::seen(reach.clone(), look(client, reach).await?))
}

impl Before {
    /// Of a structure that was read of this reach already, in the step's transaction.
    pub(crate) fn seen(mut reach: Reach, structure: Structure) -> Self {
        if let Reach::Objects(names) = &mut reach {
            // What hangs on it now may be gone with it: CASCADE.
            names.extend(holders(&structure));
        }
        Self { reach, structure }
    }

    /// Records what the step did, in the caller's transaction: with the step's verdict, or not at all. It is called from within
    /// the step's transaction, or after it for a step without one. `step` is the ledger's name of the step.
    ///
    /// A table that was there before any step is recorded whole when a step first changes the table itself: what hung on it then
    /// is not drift.
    ///
    /// # Errors
    /// When the catalog cannot be read, or the server refuses the rows.
    pub async fn record<C: GenericClient + Sync>(
        &self,
        client: &C,
        ledger: LedgerName,
        step: &str,
    ) -> Result<Delta, StructureError> {
        let after = look(client, &self.reach).await?;
        let mut delta = Delta::between(&self.structure, &after);
        let unknown = self.unknown(client, ledger, &delta).await?;
        if !unknown.is_empty() {
            let whole = after
                .elements
                .iter()
                .filter(|(key, shape)| belongs(key, shape, &unknown));
            delta
                .set
                .extend(whole.map(|(key, shape)| (key.clone(), shape.clone())));
        }
        write(client, ledger, step, after.server_major, &delta).await?;
        Ok(delta)
    }

    /// Tables that the step changed, that were there before it, and that no step has changed before.
    async fn unknown<C: GenericClient + Sync>(
        &self,
        client: &C,
        ledger: LedgerName,
        delta: &Delta,
    ) -> Result<BTreeSet<Name>, StructureError> {
        let there =
            |key: &&Key| key.kind == Kind::Relation && self.structure.elements.contains_key(*key);
        let mut tables: BTreeSet<Name> = delta.set.keys().filter(there).map(Key::holder).collect();
        if tables.is_empty() {
            return Ok(tables);
        }
        let schemas: Vec<&str> = tables.iter().map(|name| name.schema.as_str()).collect();
        let names: Vec<&str> = tables.iter().map(|name| name.name.as_str()).collect();
        let known = client
            .query(
                &*ledger.sql(include_str!("../../sql/structure/known.sql")),
                &[&schemas, &names],
            )
            .await
            .map_err(StructureError::sql("reading what the steps did"))?;
        for row in known {
            tables.remove(&Name::new(row.get::<_, String>(0), row.get::<_, String>(1)));
        }
        Ok(tables)
    }
}

/// Records elements as they are now, in the caller's transaction, and tables with all that hangs on them: for a step without a
/// transaction whose whole work they are, so that what others did meanwhile to something else is not taken for the step's, and a
/// step that found its work done is not without one.
///
/// # Errors
/// As [`Before::record`].
pub async fn record_as_is<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
    step: &str,
    reach: &Reach,
    keys: &[Key],
    tables: &BTreeSet<Name>,
) -> Result<(), StructureError> {
    let now = look(client, reach).await?;
    let mut delta = Delta::default();
    for (key, shape) in &now.elements {
        let is_table = key.kind == Kind::Relation && tables.contains(&key.holder());
        if keys.contains(key) || is_table || belongs(key, shape, tables) {
            delta.set.insert(key.clone(), shape.clone());
        }
    }
    let gone = keys.iter().filter(|key| !now.elements.contains_key(key));
    delta.gone.extend(gone.cloned());
    write(client, ledger, step, now.server_major, &delta).await
}

/// Whether an element hangs on one of these tables.
fn belongs(key: &Key, shape: &Shape, tables: &BTreeSet<Name>) -> bool {
    match key.kind {
        Kind::Column | Kind::Constraint | Kind::Trigger | Kind::Rule | Kind::Policy => {
            tables.contains(&key.holder())
        }
        Kind::Index => {
            let table = shape.get("table").and_then(serde_json::Value::as_str);
            table.is_some_and(|table| tables.iter().any(|name| name.to_string() == table))
        }
        _ => false,
    }
}

async fn look<C: GenericClient + Sync>(
    client: &C,
    reach: &Reach,
) -> Result<Structure, StructureError> {
    let scope = match reach {
        Reach::Objects(names) => Scope::objects(names.iter().cloned()),
        Reach::Everything => Scope::everything(),
    };
    Ok(read_within(client, &scope.structure_only())
        .await?
        .structure())
}

/// The names under which a structure's elements can be asked for again.
fn holders(structure: &Structure) -> BTreeSet<Name> {
    let by_name = |key: &&Key| {
        matches!(
            key.kind,
            Kind::Relation | Kind::Function | Kind::Type | Kind::Sequence
        )
    };
    structure
        .elements
        .keys()
        .filter(by_name)
        .map(Key::holder)
        .collect()
}

/// Writes what a step did.
async fn write<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
    step: &str,
    server_major: u32,
    delta: &Delta,
) -> Result<(), StructureError> {
    if delta.is_empty() {
        return Ok(());
    }
    let gone = delta.gone.iter().map(|key| (key, None));
    let set = delta
        .set
        .iter()
        .map(|(key, shape)| (key, serde_json::to_string(shape).ok()));
    let rows: Vec<(&Key, Option<String>)> = gone.chain(set).collect();
    let column = |of: fn(&Key) -> &str| rows.iter().map(|(key, _)| of(key)).collect::<Vec<&str>>();
    let kinds = column(|key| key.kind.word());
    let (schemas, names) = (column(|key| &key.schema), column(|key| &key.name));
    let parts = column(|key| &key.part);
    let shapes: Vec<&Option<String>> = rows.iter().map(|(_, shape)| shape).collect();
    let (major, model) = (number(server_major), number(MODEL));
    client
        .execute(
            &*ledger.sql(include_str!("../../sql/structure/record.sql")),
            &[
                &step, &kinds, &schemas, &names, &parts, &shapes, &major, &model,
            ],
        )
        .await
        .map_err(StructureError::sql("recording what the step did"))?;
    Ok(())
}

fn number(version: u32) -> i32 {
    i32::try_from(version).unwrap_or(i32::MAX)
}

/// The sum of what the steps did.
#[derive(Debug)]
pub struct Expected {
    /// What the database should be, where it is told in one server's words.
    pub structure: Structure,
    /// Elements that were recorded on a server of another major version, or by another model: with whose words.
    pub other: Vec<(Key, u32, u32)>,
}

/// Reads the account. `None`: this database keeps none.
///
/// # Errors
/// When it cannot be read, or has what this program does not know.
pub async fn expected<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
    server_major: u32,
) -> Result<Option<Expected>, StructureError> {
    let at = StructureError::sql("reading what the steps did");
    let kept = client
        .query_one(
            &*ledger.sql(include_str!("../../sql/structure/recorded.sql")),
            &[],
        )
        .await;
    let kept: bool = kept.and_then(|row| row.try_get(0)).map_err(at)?;
    if !kept {
        return Ok(None);
    }
    let at = StructureError::sql("reading what the steps did");
    let rows = client
        .query(
            &*ledger.sql(include_str!("../../sql/structure/fold.sql")),
            &[],
        )
        .await
        .map_err(at)?;
    let mut fold = Fold::new(server_major);
    let mut other = Vec::new();
    for row in rows {
        let word: String = row.get(0);
        let name = Name::new(row.get::<_, String>(1), row.get::<_, String>(2));
        let part: String = row.get(3);
        let unknown = || StructureError::Unknown {
            row: format!("{word} {name} {part}"),
        };
        let key = Key::part(Kind::of_word(&word).ok_or_else(unknown)?, &name, &part);
        let (major, model): (i32, i32) = (row.get(5), row.get(6));
        let mut delta = Delta::default();
        match row.get::<_, Option<String>>(4) {
            None => {
                delta.gone.insert(key);
            }
            Some(_) if (major, model) != (number(server_major), number(MODEL)) => {
                let words = |number: i32| u32::try_from(number).unwrap_or_default();
                other.push((key, words(major), words(model)));
            }
            Some(text) => {
                delta
                    .set
                    .insert(key, serde_json::from_str(&text).map_err(|_| unknown())?);
            }
        }
        fold.add(&delta);
    }
    Ok(Some(Expected {
        structure: fold.structure(),
        other,
    }))
}
