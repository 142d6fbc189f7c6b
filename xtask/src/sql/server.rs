//! The server that statements are described on: one that runs already, or a private one for this run.

use aegis_devpg::{Options, Server};
use anyhow::Context as _;

/// A server for the length of a run; a private one ends with this value.
pub(super) struct Describer {
    url: String,
    _private: Option<Server>,
}

impl Describer {
    /// A superuser's URL of the `postgres` database.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// Takes the server at `url`, or starts one.
pub(super) fn open(url: Option<&str>) -> anyhow::Result<Describer> {
    if let Some(url) = url {
        return Ok(Describer {
            url: url.to_owned(),
            _private: None,
        });
    }
    let server = Server::start(&Options::for_tests())
        .context("no server to describe on; `--server URL` takes one that runs")?;
    let url = server.url(server.superuser(), "postgres");
    Ok(Describer {
        url,
        _private: Some(server),
    })
}
