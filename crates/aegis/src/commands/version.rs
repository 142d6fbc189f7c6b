//! `aegis version`.

use aegis_store::install::SCHEMA;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Prints what this binary is.
#[expect(clippy::unnecessary_wraps, reason = "every command has the same shape")]
pub(crate) fn run(output: Output) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    output.one(
        &[
            ("aegis", version.to_owned()),
            ("schema", SCHEMA.to_string()),
        ],
        &json!({ "aegis": version, "schema": SCHEMA }),
    );
    Ok(Exit::Done)
}
