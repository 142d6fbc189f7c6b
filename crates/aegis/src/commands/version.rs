//! `aegis version`.

use aegis_store::install::SCHEMA;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// The commit that it was built from, where the build said so (`make` does).
const COMMIT: Option<&str> = option_env!("AEGIS_BUILD_COMMIT");

/// Prints what this binary is.
#[expect(clippy::unnecessary_wraps, reason = "every command has the same shape")]
pub(crate) fn run(output: Output) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    output.one(
        &[
            ("aegis", version.to_owned()),
            ("schema", SCHEMA.to_string()),
            ("commit", COMMIT.unwrap_or("unknown").to_owned()),
        ],
        &json!({ "aegis": version, "schema": SCHEMA, "commit": COMMIT }),
    );
    Ok(Exit::Done)
}
