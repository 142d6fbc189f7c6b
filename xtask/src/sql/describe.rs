//! Asks PostgreSQL what each statement takes and gives.
//!
//! Invariant: the schema is applied to an empty database made for this run and dropped after it.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

use super::Mistake;
use super::header::Returns;
use super::names::is_snake_case;
use super::scan::Scanned;
use super::source::Origin;
use super::statement::{Statement, sorted};
use super::types::{self, ParamType};

/// A result column.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) sql: String,
    pub(super) rust: String,
}

/// A statement with what the server said about it.
pub(super) struct Described<'a> {
    pub(super) statement: &'a Statement,
    pub(super) params: Vec<ParamType>,
    pub(super) columns: Vec<Column>,
}

/// Parts the databases of runs in one process, as tests have them.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Describes all statements; what is wrong goes to `mistakes`.
pub(super) async fn all<'a>(
    url: &str,
    store: &Path,
    statements: &'a [Statement],
    mistakes: &mut Vec<Mistake>,
) -> anyhow::Result<Vec<Described<'a>>> {
    let config: tokio_postgres::Config = url.parse().context("cannot read the server's URL")?;
    let admin = connect(&config).await?;
    let run = NEXT.fetch_add(1, Ordering::Relaxed);
    let database = format!("aegis_sql_{}_{run}", std::process::id());
    admin
        .batch_execute(&format!("CREATE DATABASE {database}"))
        .await
        .context("cannot create a database to describe in; the URL must be a superuser's")?;
    let described = in_database(&config, &database, store, statements, mistakes).await;
    admin
        .batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)"))
        .await
        .with_context(|| format!("cannot drop the database {database}"))?;
    described
}

async fn connect(config: &tokio_postgres::Config) -> anyhow::Result<Client> {
    let (client, connection) = config
        .connect(NoTls)
        .await
        .context("cannot connect to the server")?;
    tokio::spawn(connection);
    Ok(client)
}

async fn in_database<'a>(
    config: &tokio_postgres::Config,
    database: &str,
    store: &Path,
    statements: &'a [Statement],
    mistakes: &mut Vec<Mistake>,
) -> anyhow::Result<Vec<Described<'a>>> {
    let mut config = config.clone();
    let client = connect(config.dbname(database)).await?;
    apply_schema(&client, store, mistakes).await?;
    let mut described = Vec::new();
    if mistakes.is_empty() {
        // The roles of an installation carry this search path.
        client
            .batch_execute("SET search_path TO aegis, public")
            .await?;
        for statement in statements {
            described.extend(one(&client, statement, mistakes).await);
        }
    }
    Ok(described)
}

async fn apply_schema(
    client: &Client,
    store: &Path,
    mistakes: &mut Vec<Mistake>,
) -> anyhow::Result<()> {
    for (change, folder) in sorted(&store.join("migrations"), "")? {
        let path = folder.join("expand.sql");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if let Err(error) = client.batch_execute(&text).await {
            let at = position(&error).map_or((0, 0), |position| line_and_column(&text, position));
            mistakes.push(Mistake {
                file: format!("migrations/{change}/expand.sql"),
                at,
                what: message(&error),
            });
            return Ok(());
        }
    }
    Ok(())
}

async fn one<'a>(
    client: &Client,
    statement: &'a Statement,
    mistakes: &mut Vec<Mistake>,
) -> Option<Described<'a>> {
    if statement.header.returns == Returns::Copy {
        return copy(client, statement, mistakes).await;
    }
    let mut shapes = Vec::new();
    for text in &statement.texts {
        match client.prepare(&text.text).await {
            Ok(prepared) => shapes.push(prepared),
            Err(error) => {
                mistakes.push(located(statement, text, &error));
                return None;
            }
        }
    }
    let prepared = shapes.first()?;
    let whole = |what: String| Mistake {
        file: statement.file.clone(),
        at: (0, 0),
        what,
    };

    let mut params = Vec::new();
    for (param, sql) in statement.texts[0].params.iter().zip(prepared.params()) {
        match types::param(sql, param) {
            Ok(found) => params.push(found),
            Err(why) => mistakes.push(whole(format!("parameter `:{}`: {why}", param.name))),
        }
    }
    let found: Vec<(&str, &Type)> = prepared
        .columns()
        .iter()
        .map(|column| (column.name(), column.type_()))
        .collect();
    let columns =
        columns(statement, &found).map_err(|found| mistakes.extend(found.into_iter().map(whole)));
    Some(Described {
        statement,
        params,
        columns: columns.ok()?,
    })
}

/// The server looks at a COPY only when it runs it, so its columns are asked for by a query: their types are what the caller writes.
async fn copy<'a>(
    client: &Client,
    statement: &'a Statement,
    mistakes: &mut Vec<Mistake>,
) -> Option<Described<'a>> {
    let text = &statement.texts[0];
    let said = copied(&text.text);
    let query = match said {
        Some((table, columns)) if text.params.is_empty() && statement.texts.len() == 1 => {
            format!("SELECT {columns} FROM {table}")
        }
        _ => {
            mistakes.push(Mistake {
                file: statement.file.clone(),
                at: (0, 0),
                what: "`returns: copy` is for `COPY table (columns) FROM STDIN BINARY`, without parameters or batches"
                    .to_owned(),
            });
            return None;
        }
    };
    match client.prepare(&query).await {
        Ok(prepared) => {
            let mut params = Vec::new();
            for column in prepared.columns() {
                match types::written(column.type_()) {
                    Ok(found) => params.push(found),
                    Err(why) => mistakes.push(Mistake {
                        file: statement.file.clone(),
                        at: (0, 0),
                        what: format!("column `{}`: {why}", column.name()),
                    }),
                }
            }
            Some(Described {
                statement,
                params,
                columns: Vec::new(),
            })
        }
        Err(error) => {
            mistakes.push(Mistake {
                file: statement.file.clone(),
                at: (0, 0),
                what: message(&error),
            });
            None
        }
    }
}

/// Table and columns of a COPY.
fn copied(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim().strip_prefix("COPY ")?;
    let (table, rest) = rest.split_once('(')?;
    let (columns, rest) = rest.split_once(')')?;
    (rest.trim() == "FROM STDIN BINARY").then_some((table.trim(), columns.trim()))
}

fn columns(statement: &Statement, found: &[(&str, &Type)]) -> Result<Vec<Column>, Vec<String>> {
    let mut wrong = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let nullable = &statement.header.nullable;
    for &(name, sql) in found {
        let nullable_elements = nullable.contains(&format!("{name}[?]"));
        if !is_snake_case(name) {
            wrong.push(format!(
                "column `{name}` needs a name in snake_case: `AS …`"
            ));
        } else if columns.iter().any(|known| known.name == name) {
            wrong.push(format!(
                "column `{name}` stands twice: rename one with `AS …`"
            ));
        } else {
            match types::column(
                sql,
                nullable.iter().any(|known| known == name),
                nullable_elements,
            ) {
                Ok(rust) => {
                    columns.push(Column {
                        name: name.to_owned(),
                        sql: sql.name().to_owned(),
                        rust,
                    });
                }
                Err(why) => wrong.push(format!("column `{name}`: {why}")),
            }
        }
    }
    for name in nullable {
        if !found
            .iter()
            .any(|(known, _)| name.strip_suffix("[?]").unwrap_or(name) == *known)
        {
            wrong.push(format!("`nullable: {name}` names no column of the result"));
        }
    }
    match (statement.header.returns, found.len()) {
        (Returns::Count, 1..) => {
            wrong.push(
                "`returns: count`, but the statement gives columns: use many, optional or one"
                    .to_owned(),
            );
        }
        (Returns::Many | Returns::Optional | Returns::One, 0) => {
            wrong.push(
                "the statement gives no columns: add RETURNING, or use `returns: count`".to_owned(),
            );
        }
        _ => {}
    }
    if wrong.is_empty() {
        Ok(columns)
    } else {
        Err(wrong)
    }
}

fn position(error: &tokio_postgres::Error) -> Option<usize> {
    match error.as_db_error()?.position()? {
        ErrorPosition::Original(position) => usize::try_from(*position).ok()?.checked_sub(1),
        ErrorPosition::Internal { .. } => None,
    }
}

fn located(statement: &Statement, text: &Scanned, error: &tokio_postgres::Error) -> Mistake {
    // At the very end of the text PostgreSQL points behind its last character.
    let origin: Option<&Origin> =
        position(error).and_then(|at| text.origins.get(at).or(text.origins.last()));
    let what = message(error);
    match origin {
        Some(origin) => origin.mistake(what),
        None => Mistake {
            file: statement.file.clone(),
            at: (0, 0),
            what,
        },
    }
}

fn message(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        return error.to_string();
    };
    let more = [
        ("detail", db.detail()),
        ("hint", db.hint()),
        ("where", db.where_()),
    ];
    let more: Vec<String> = more
        .iter()
        .filter_map(|(label, more)| more.map(|more| format!("\n  {label}: {more}")))
        .collect();
    format!("{} ({}){}", db.message(), db.code().code(), more.concat())
}

fn line_and_column(text: &str, position: usize) -> (u32, u32) {
    let mut at = (1, 1);
    for char in text.chars().take(position) {
        at = if char == '\n' {
            (at.0 + 1, 1)
        } else {
            (at.0, at.1 + 1)
        };
    }
    at
}

#[cfg(test)]
mod tests {
    //! What stands between the words of a COPY.

    use super::copied;

    #[test]
    fn a_copy_names_its_table_and_columns_and_nothing_else() {
        assert_eq!(
            copied("COPY a.b (c, d) FROM STDIN BINARY\n"),
            Some(("a.b", "c, d"))
        );
        for wrong in [
            "SELECT 1",
            "COPY a.b FROM STDIN BINARY",
            "COPY a.b (c) FROM STDIN",
            "COPY a.b (c) TO STDOUT BINARY",
            "COPY a.b (c) FROM STDIN BINARY WHERE true",
        ] {
            assert_eq!(copied(wrong), None, "{wrong}");
        }
    }
}
