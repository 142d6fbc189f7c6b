//! `aegis migrate`: lint, an expand below writers, a backfill and its kills.
//!
//! Each figure has a database of its own on the server of the run.

mod backfill;
mod expand;
mod lint;

use std::time::Duration;

use aegis_migrate::change::{Files, Phase};
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::run::{Ladder, Summary, run};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use anyhow::Context as _;
use tokio_postgres::{Client, NoTls};

use crate::Figures;
use crate::setting::Setting;

pub(crate) use backfill::process as backfill_process;

/// All of them.
pub(crate) async fn measure(
    setting: &Setting,
    rounds: usize,
    rows: u32,
) -> anyhow::Result<Figures> {
    let mut figures = lint::measure(rounds)?;
    figures.extend(expand::measure(setting).await?);
    figures.extend(backfill::measure(setting, rows).await?);
    Ok(figures)
}

/// A database of its own.
struct Database {
    url: String,
    client: Client,
}

impl Database {
    async fn make(setting: &Setting, name: &str) -> anyhow::Result<Self> {
        let client = setting.client();
        client
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .await?;
        let url = setting.url(name);
        let client = connect(&url).await?;
        Ok(Self { url, client })
    }

    /// Runs a phase of a set, as the command would.
    async fn run(&self, set: &Set, phase: Phase) -> anyhow::Result<Summary> {
        let name = RunName {
            run: "bench".to_owned(),
            by: "bench".to_owned(),
            release: "none".to_owned(),
        };
        let config = self.url.parse()?;
        let session = Direct::connect(&config, NoTls, &name.application_name()).await?;
        let mut held = Held::take(session, &name, Duration::from_secs(10)).await?;
        let summary = run(&mut held, set, phase, &Ladder::default(), &mut |_| {}).await;
        held.release().await;
        Ok(summary?)
    }
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// These files, with a lock that has every phase of theirs.
fn sealed(files: &[(&str, &str)]) -> anyhow::Result<Set> {
    let embedded = |lock: &str| {
        let mut all: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(name, text)| (*name, text.as_bytes()))
            .collect();
        all.push(("migrations.lock", lock.as_bytes()));
        Set::of(Files::embedded("bench", all)).context("the bench's own changes")
    };
    let open = embedded("")?;
    let mut lock = open.lock.clone();
    for at in open.unsealed() {
        let change = open.changes.get(&at.id).context("an unsealed change")?;
        let hash = change.sha256(at.phase).context("a phase without a hash")?;
        lock.append(at, hash);
    }
    embedded(lock.text())
}
