//! `aegis migrate snapshot`: structure, sizes and rates of a database as a file, without a row of its data.

use std::path::PathBuf;

use aegis_catalog::Scope;
use aegis_migrate::change::Problems;
use aegis_migrate::seal;
use clap::Args;
use serde_json::json;

use super::{Place, connect};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Progress};

#[derive(Debug, Args)]
pub(crate) struct SnapshotArguments {
    /// The file; - is standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Only these schemas; default: all of the database.
    #[arg(long, value_name = "SCHEMA")]
    schema: Vec<String>,
}

pub(crate) async fn run(arguments: &SnapshotArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let client = connect(place.database.direct()?).await?;
    let scope = if arguments.schema.is_empty() {
        Scope::everything()
    } else {
        Scope::schemas(arguments.schema.clone())
    };
    let progress = Progress::new("reading the catalog", None);
    let catalog = aegis_catalog::read(&client, &scope).await;
    drop(progress);
    let catalog =
        catalog.map_err(|error| Failure::new(Exit::Migrate(17), crate::failure::chain(&error)))?;
    let text = catalog
        .to_json()
        .map_err(|error| Failure::new(Exit::Broken, error.to_string()))?;
    if arguments.out.as_os_str() == "-" {
        output::raw(text.as_bytes());
        return Ok(Exit::Done);
    }
    seal::write_file(&arguments.out, &text).map_err(Problems::from)?;
    let structure = catalog.structure();
    place.output.one(
        &[
            ("file", arguments.out.display().to_string()),
            ("server", format!("PostgreSQL {}", catalog.server_major())),
            ("fingerprint", structure.fingerprint()),
        ],
        &json!({ "file": arguments.out.display().to_string(), "major": catalog.server_major(), "fingerprint": structure.fingerprint() }),
    );
    Ok(Exit::Done)
}
