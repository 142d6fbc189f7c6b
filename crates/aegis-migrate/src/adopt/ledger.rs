//! The ledger of another tool: which table, and what is in it.

use jiff::Timestamp;
use tokio_postgres::Client;

use super::AdoptError;
use crate::foreign::{ForeignFile, Tool, Version};

/// A ledger of another tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// Whose.
    pub tool: Tool,
    /// Its schema.
    pub schema: String,
    /// Its table.
    pub table: String,
}

impl Ledger {
    /// The table, quoted.
    pub fn quoted(&self) -> String {
        format!(
            "{}.{}",
            aegis_catalog::quote(&self.schema),
            aegis_catalog::quote(&self.table)
        )
    }

    /// A statement about it.
    pub(super) fn sql(&self, statement: &str) -> String {
        statement.replace("{ledger}", &self.quoted())
    }
}

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its version; `None` for what has none.
    pub version: Option<String>,
    /// Its words.
    pub description: String,
    /// The tool's checksum of it.
    pub checksum: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
    /// Whether it was finished.
    pub finished: bool,
}

impl Applied {
    /// Whether it is the line of a file.
    pub(super) fn is_of(&self, file: &ForeignFile) -> bool {
        match (&self.version, &file.version) {
            (Some(version), Some(wanted)) => {
                Version::parse(version).is_some_and(|version| version == *wanted)
            }
            (None, None) => self.description == file.description,
            _ => false,
        }
    }

    /// How a message calls it.
    pub(super) fn named(&self) -> String {
        match &self.version {
            Some(version) => format!("version {version}"),
            None => format!("`{}`", self.description),
        }
    }
}

/// The ledger of a tool: the one that was named, or the only one. Another tool's ledger in the same schema is a second runner.
pub async fn find(client: &Client, tool: Tool, named: Option<&str>) -> Result<Ledger, AdoptError> {
    let table: &str = match named.and_then(|named| named.split_once('.')) {
        Some((_, table)) => table,
        None => tool.ledger_table().unwrap_or_default(),
    };
    let known = Tool::ALL.into_iter().filter_map(Tool::ledger_table);
    let all: Vec<String> = known.map(str::to_owned).chain([table.to_owned()]).collect();
    let rows = client
        .query(include_str!("../../sql/adopt/find.sql"), &[&all])
        .await
        .map_err(AdoptError::Sql)?;
    let found: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let wanted = |(schema, name): &&(String, String)| {
        name == table
            && named
                .and_then(|named| named.split_once('.'))
                .is_none_or(|(wanted, _)| wanted == schema)
    };
    let own: Vec<&(String, String)> = found.iter().filter(wanted).collect();
    let (schema, table) = match own[..] {
        [] => {
            return Err(AdoptError::NoLedger {
                tool: tool.word(),
                table: named.unwrap_or(table).to_owned(),
            });
        }
        [one] => one.clone(),
        _ => {
            let found: Vec<String> = own.iter().map(|(s, t)| format!("{s}.{t}")).collect();
            return Err(AdoptError::ManyLedgers {
                tool: tool.word(),
                found: found.join(", "),
            });
        }
    };
    let other = found
        .iter()
        .filter(|(in_schema, name)| *in_schema == schema && *name != table)
        .find_map(|(_, name)| {
            Tool::ALL
                .into_iter()
                .find(|other| *other != tool && other.ledger_table() == Some(name.as_str()))
        });
    match other {
        Some(other) => Err(AdoptError::TwoRunners {
            schema,
            tool: tool.word(),
            other: other.word(),
        }),
        None => Ok(Ledger {
            tool,
            schema,
            table,
        }),
    }
}

/// What the tool has applied, in its order.
pub async fn applied(client: &Client, ledger: &Ledger) -> Result<Vec<Applied>, AdoptError> {
    let statement = match ledger.tool {
        Tool::Sqlx => include_str!("../../sql/adopt/sqlx.sql"),
        Tool::Flyway => include_str!("../../sql/adopt/flyway.sql"),
        Tool::Refinery => include_str!("../../sql/adopt/refinery.sql"),
        Tool::Goose => include_str!("../../sql/adopt/goose.sql"),
        _ => include_str!("../../sql/adopt/rails.sql"),
    };
    let rows = client
        .query(ledger.sql(statement).as_str(), &[])
        .await
        .map_err(AdoptError::Sql)?;
    rows.iter()
        .map(|row| {
            Ok(Applied {
                version: row.try_get(0)?,
                description: row.try_get(1)?,
                checksum: row.try_get(2)?,
                at: row.try_get(3)?,
                finished: row.try_get(4)?,
            })
        })
        .collect::<Result<_, _>>()
        .map_err(AdoptError::Sql)
}
