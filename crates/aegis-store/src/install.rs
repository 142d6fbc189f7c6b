//! The engine's own schema as data: the changes of `migrations/` with their lock, what came before the lock, and the number of
//! a schema. Who installs it is aegis-schema, above the runner.
//!
//! Invariants: one line of the lock is one number, so `schema` of `aegis.schema_version` is how many lines are done without a gap;
//! a released line is never edited; lines only expand, so version N - 1 starts after N has expanded: no line raises `min_schema`.
//!
//! Never: a statement that is executed from here when a schema is installed.

use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::Config;
use crate::error::StoreError;

/// The files of the changes, under their names below `migrations/`.
macro_rules! files {
    (changes: $($id:literal)*; beside: $($file:literal)*) => {
        &[
            $(
                (
                    concat!($id, "/change.toml"),
                    include_bytes!(concat!("../migrations/", $id, "/change.toml")),
                ),
                (
                    concat!($id, "/expand.sql"),
                    include_bytes!(concat!("../migrations/", $id, "/expand.sql")),
                ),
            )*
            $(($file, include_bytes!(concat!("../migrations/", $file))),)*
        ]
    };
}

/// The set of this binary: `(name, bytes)`.
pub const FILES: &[(&str, &[u8])] = files! {
    changes:
        "20261129T2243_tables"
        "20261129T2244_functions"
        "20261129T2245_verbs"
        "20261129T2246_housekeeping"
        "20261129T2247_views_roles"
        "20261130T0201_task_verbs"
        "20261130T0205_inline_inputs"
        "20261130T0206_look"
        "20261130T0227_quiet"
        "20261130T0310_fleet_changes";
    beside: "migrations.lock"
};

/// Where the set stands, for messages.
pub const FOLDER: &str = "crates/aegis-store/migrations";

/// The schema that this binary needs, and the newest it knows: lines of the lock.
pub const SCHEMA: i32 = 10;

/// A step of the runner that was here before the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldStep {
    /// As `aegis.schema_step` calls it.
    pub name: &'static str,
    /// The SHA-256 of its text, there.
    pub checksum: &'static str,
}

const fn old(name: &'static str, checksum: &'static str) -> OldStep {
    OldStep { name, checksum }
}

/// The first lines of the lock as the runner before it recorded them, in `aegis.schema_step`; releases of before compare.
pub const OLD_STEPS: [OldStep; 10] = [
    old(
        "tables",
        "837d225245c08add35781b7d91815b0cef39e1ca5f2846656fba77a255c3b156",
    ),
    old(
        "functions",
        "8c97b68aba91dc76ffe8c92c106ed5a13ce798a91b32cbf802ec8b145b255e5f",
    ),
    old(
        "verbs",
        "71c7994229ea68ac097989a70eeac7e6000510dee95381a7d80c17a65c00c3a2",
    ),
    old(
        "housekeeping",
        "05dc3fddc53ab2ee776e67e24015fb1626ab8582cbbc7cd24937457246a289bb",
    ),
    old(
        "views_roles",
        "aa100fb457ec7907ea1619babc08161cb09b53dd71422349da5c89c42b5be40a",
    ),
    old(
        "task_verbs",
        "036487951541977a9bf2bd340d6fe9c6b1127b7bcbaac8fd05770f8175f79164",
    ),
    old(
        "inline_inputs",
        "e2a9a4a3641fa709d6c97ca5e76c957349bb0a3fc291618cb08d75d6c22800aa",
    ),
    old(
        "look",
        "aee82e47132ff48e173a5c43dc309ffeb4bb63c18fd4a00914fdabafc7f7815e",
    ),
    old(
        "quiet",
        "2d3c7310edadeefec06c6baee16a32d4b95245b8cb2787e9b2f889f7da33cba4",
    ),
    old(
        "fleet_changes",
        "d800a238fea40698826e76703ff56c5fd899c46d5cb0c241dac73b6852eb77b6",
    ),
];

/// From this schema on programs read inputs that stand inline.
pub const INLINE_SINCE: i32 = 7;

/// Lets small inputs stand in their tasks' rows from now on, in a database that was installed by an older release. Programs from
/// before schema 7 cannot work on it any more, so none of their workers may be alive. True when this changed something.
///
/// # Errors
/// [`StoreError::OldWorkers`] with their names, and nothing changed; an error of the database.
pub async fn switch_inline(config: &Config) -> Result<bool, StoreError> {
    let client = connect_direct(config).await?;
    match client.query_one("SELECT aegis.switch_inline()", &[]).await {
        Ok(row) => Ok(row.try_get(0)?),
        Err(error) => match error.as_db_error() {
            Some(db) if db.code().code() == "AEG08" => Err(StoreError::OldWorkers {
                said: db.message().to_owned(),
            }),
            _ => Err(error.into()),
        },
    }
}

/// Compares the database's schema with this binary's.
///
/// # Errors
/// [`StoreError::NotInstalled`], [`StoreError::SchemaTooOld`] or [`StoreError::BinaryTooOld`].
pub async fn verify(client: &Client) -> Result<(), StoreError> {
    verify_against(client, SCHEMA).await
}

/// [`verify`] for a binary that knows schema `known`: for the test that shows version N - 1 beside N.
///
/// # Errors
/// As [`verify`].
pub async fn verify_against(client: &Client, known: i32) -> Result<(), StoreError> {
    let installed: bool = client
        .query_one(
            "SELECT to_regclass('aegis.schema_version') IS NOT NULL",
            &[],
        )
        .await?
        .try_get(0)?;
    if !installed {
        return Err(StoreError::NotInstalled);
    }
    let row = client
        .query_one("SELECT schema, min_schema FROM aegis.schema_version", &[])
        .await?;
    let (found, min_schema): (i32, i32) = (row.try_get(0)?, row.try_get(1)?);
    if known < min_schema {
        return Err(StoreError::BinaryTooOld { known, min_schema });
    }
    if found < known {
        return Err(StoreError::SchemaTooOld {
            found,
            needed: known,
        });
    }
    Ok(())
}

/// What a connection around the pooler is made of, for who must make it by itself.
pub fn direct_parts(config: &Config) -> (&tokio_postgres::Config, MakeRustlsConnect) {
    match &config.direct {
        Some(direct) => (direct, config.direct_tls.connector()),
        None => (&config.postgres, config.tls.connector()),
    }
}

/// A connection around the pooler where there is one.
pub async fn connect_direct(config: &Config) -> Result<Client, StoreError> {
    let (postgres, tls) = match &config.direct {
        Some(direct) => (direct, &config.direct_tls),
        None => (&config.postgres, &config.tls),
    };
    let (client, connection) =
        postgres
            .connect(tls.connector())
            .await
            .map_err(|source| StoreError::Unreachable {
                place: config.place(),
                source: Box::new(source),
            })?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "a direct connection ended");
        }
    });
    Ok(client)
}

#[cfg(test)]
mod tests {
    //! The set in the binary is the folder, and what was released is what it was.

    use std::collections::BTreeSet;
    use std::path::Path;

    use sha2::{Digest, Sha256};

    use super::*;

    fn file(name: &str) -> &'static str {
        let (_, bytes) = FILES.iter().find(|(known, _)| *known == name).unwrap();
        std::str::from_utf8(bytes).unwrap()
    }

    fn lines() -> Vec<&'static str> {
        let lines = file("migrations.lock").lines();
        lines.filter(|line| !line.starts_with('#')).collect()
    }

    fn checksum(sql: &str) -> String {
        Sha256::digest(sql.as_bytes())
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .filter_map(|half| char::from_digit(half.into(), 16))
            .collect()
    }

    #[test]
    fn every_change_of_the_folder_is_in_the_binary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(&root).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                for below in std::fs::read_dir(&path).unwrap() {
                    let below = below.unwrap().file_name();
                    found.insert(format!("{name}/{}", below.to_str().unwrap()));
                }
            } else if !name.starts_with("schema.") {
                // The sealed structures are for who judges the folder.
                found.insert(name);
            }
        }
        let known: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, known);
        assert_eq!(FILES.len(), known.len(), "a file stands twice");
    }

    #[test]
    fn a_line_is_a_number_and_only_expands() {
        assert_eq!(lines().len(), usize::try_from(SCHEMA).unwrap());
        for line in lines() {
            assert_eq!(line.split(' ').nth(1), Some("expand"), "{line}");
        }
    }

    /// The first text stands behind the tables of the old ledger, which were no step.
    #[test]
    fn what_was_released_has_not_changed() {
        for (step, line) in OLD_STEPS.iter().zip(lines()) {
            let id = line.split(' ').next().unwrap();
            let sql = file(&format!("{id}/expand.sql"));
            let begins = sql.find("-- The tables of the engine.").unwrap_or(0);
            assert_eq!(checksum(&sql[begins..]), step.checksum, "{id}");
            assert!(id.ends_with(step.name), "{id}");
        }
    }
}
