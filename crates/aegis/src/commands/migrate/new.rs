//! `aegis migrate new NAME`.

use aegis_migrate::new;
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::Place;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// What the change does, in a few words, such as split_name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The schema; default: that of the newest change, else public.
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
}

pub(crate) fn run(arguments: &NewArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let made = new::make(
        &place.dir,
        &arguments.name,
        arguments.schema.as_deref(),
        Timestamp::now(),
    )?;
    let folder = made.folder.display().to_string();
    place.output.one(
        &[
            ("id", made.id.to_string()),
            ("folder", folder.clone()),
            (
                "next",
                "write expand.sql, then `aegis migrate lint`, then `aegis migrate seal`".to_owned(),
            ),
        ],
        &json!({ "id": made.id, "folder": folder }),
    );
    Ok(Exit::Done)
}
