//! The server that statements are described on: one that runs already, or a private one for this run.

use anyhow::Context as _;

/// A server for the length of a run.
pub(super) struct Described {
    url: String,
}

impl Described {
    /// A superuser's URL of its `postgres` database.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// Takes the server at `url`, or starts one.
pub(super) fn open(url: Option<&str>) -> anyhow::Result<Described> {
    let url = url.context("aegis-devpg has not landed: give --server")?;
    Ok(Described {
        url: url.to_owned(),
    })
}
