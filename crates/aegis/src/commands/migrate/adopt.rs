//! `aegis migrate adopt`: a database that another tool has migrated goes over to this one.

use std::path::PathBuf;

use aegis_migrate::adopt::{self, AdoptError};
use aegis_migrate::baseline::{self, How};
use aegis_migrate::foreign::{self, ForeignFile, Tool};
use aegis_migrate::set::Set;
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::{Place, connect_to_write};
use crate::commands::find;
use crate::exit::Exit;
use crate::failure::Failure;

/// Below its help.
pub(crate) const AFTER: &str = "First without a database: its files become the first change of the folder; then `aegis migrate \
    seal`. Then with each database: its ledger is compared with the files, kept, and shut, so that the other tool cannot go on \
    beside this one.\n\nExamples:\n  aegis migrate adopt --from sqlx --files db/migrations --schema app\n  aegis migrate seal\n  \
    aegis migrate adopt --from sqlx --files db/migrations --database-url …\n  aegis migrate adopt --from sqlx --undo \
    --database-url …";

#[derive(Debug, Args)]
pub(crate) struct AdoptArguments {
    /// The tool: sqlx, flyway, refinery, goose or rails.
    #[arg(long, value_name = "TOOL", value_parser = tool)]
    from: Tool,
    /// Its folder of migrations; of Rails the file structure.sql.
    #[arg(long, value_name = "PATH", required_unless_present = "undo")]
    files: Option<PathBuf>,
    /// The schema of the change that is written.
    #[arg(long, value_name = "SCHEMA", default_value = "public")]
    schema: String,
    /// The tool's ledger, where it has another name than the tool gives it.
    #[arg(long, value_name = "SCHEMA.TABLE")]
    ledger: Option<String>,
    /// Opens the tool's ledger again; nothing else is taken back.
    #[arg(long, conflicts_with = "files")]
    undo: bool,
    /// Who; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

fn tool(text: &str) -> Result<Tool, String> {
    match text.parse()? {
        Tool::Plain => Err("a plain folder has no ledger; `aegis migrate baseline` takes a database over by its structure".to_owned()),
        tool if tool.is_adopted() => Ok(tool),
        tool => Err(format!("the ledger of {tool} is not known; `aegis migrate baseline` takes a database over by its structure")),
    }
}

pub(crate) async fn run(arguments: AdoptArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let tool = arguments.from;
    if arguments.undo {
        let client = connect_to_write(place.database.direct()?).await?;
        let ledger = adopt::find(&client, tool, arguments.ledger.as_deref()).await?;
        adopt::undo(&client, &ledger).await?;
        place.output.one(
            &[("open again", ledger.quoted())],
            &json!({ "opened": ledger.quoted() }),
        );
        return Ok(Exit::Done);
    }
    let path = arguments.files.clone().unwrap_or_default();
    let files = foreign::read(&path, tool)?;
    let is_new = !place.dir.exists() || Set::read(&place.dir)?.changes.is_empty();
    if is_new {
        return write(&arguments, &files, place);
    }
    take(arguments, &files, place).await
}

/// The files as the first change of the folder.
fn write(
    arguments: &AdoptArguments,
    files: &[ForeignFile],
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let made = adopt::write_change(
        &place.dir,
        arguments.from,
        &arguments.schema,
        files,
        Timestamp::now(),
    )?;
    let folder = made.folder.display().to_string();
    place.output.one(
        &[
            ("id", made.id.to_string()),
            ("folder", folder.clone()),
            ("files", files.len().to_string()),
            (
                "next",
                "`aegis migrate seal`, then `aegis migrate adopt` again with each database"
                    .to_owned(),
            ),
        ],
        &json!({ "id": made.id, "folder": folder, "files": files.len() }),
    );
    Ok(Exit::Done)
}

/// The database.
async fn take(
    arguments: AdoptArguments,
    files: &[ForeignFile],
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let tool = arguments.from;
    let set = Set::read(&place.dir)?;
    set.sealed()?;
    let line = set
        .lines()
        .find(|(_, change)| change.baseline.as_ref().is_some_and(|one| one.from == tool.word()))
        .map(|(line, _)| line)
        .ok_or_else(|| {
            Failure::new(
                Exit::Migrate(2),
                format!("{} has no sealed baseline from {tool}; `aegis migrate adopt` writes one into an empty folder, `aegis migrate seal` seals it", set.root()),
            )
        })?;
    let mut client = connect_to_write(place.database.direct()?).await?;
    let ledger = adopt::find(&client, tool, arguments.ledger.as_deref()).await?;
    let transaction = client.transaction().await.map_err(AdoptError::Sql)?;
    let actor = find::actor(arguments.actor);
    let mutex = baseline::take(&transaction, &actor).await?;
    let taken = adopt::take(&transaction, &ledger, files).await?;
    let reason = format!("{} had applied {} migrations", tool, taken.lines.len());
    baseline::record(&transaction, &mutex, &[line], How::Adopted, &actor, &reason).await?;
    transaction.commit().await.map_err(AdoptError::Sql)?;
    place.output.one(
        &[
            ("adopted", line.at.to_string()),
            ("migrations", taken.lines.len().to_string()),
            ("shut", ledger.quoted()),
        ],
        &json!({ "adopted": line.at, "migrations": taken.lines.len(), "shut": ledger.quoted() }),
    );
    Ok(Exit::Done)
}
