//! CPU time of the server's processes and of this one, from Linux's scheduler: nanoseconds, not ticks.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use crate::setting::Setting;

/// What was used since the processes began, or between two such readings.
#[derive(Debug, Clone, Default)]
pub(super) struct Cpu {
    /// By kind of server process and role, in microseconds.
    pub(super) server: BTreeMap<String, f64>,
    /// Of all threads of this process, in microseconds.
    pub(super) client_us: f64,
    by_pid: BTreeMap<i32, (String, f64)>,
}

impl Cpu {
    /// Reads the clocks of every process that the server shows.
    pub(super) async fn now(setting: &Setting) -> anyhow::Result<Self> {
        setting
            .client()
            .batch_execute("SELECT pg_stat_clear_snapshot()")
            .await?;
        let rows = setting
            .client()
            .query(
                "SELECT pid, backend_type || coalesce(' of ' || usename::text, '') FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
                &[],
            )
            .await?;
        let mut by_pid = BTreeMap::new();
        for row in rows {
            let (pid, name): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
            // One that has ended meanwhile was there for less than a reading.
            if let Ok(us) = run_us(Path::new(&format!("/proc/{pid}/schedstat"))) {
                by_pid.insert(pid, (name, us));
            }
        }
        let mut client_us = 0.0;
        for thread in
            std::fs::read_dir("/proc/self/task").context("the profile needs Linux's /proc")?
        {
            // A thread may have ended meanwhile.
            client_us += run_us(&thread?.path().join("schedstat")).unwrap_or_default();
        }
        Ok(Self {
            server: BTreeMap::new(),
            client_us,
            by_pid,
        })
    }

    /// What was used since an earlier reading. A process that began after it counts whole.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut server = BTreeMap::new();
        for (pid, (name, us)) in &self.by_pid {
            let before = earlier.by_pid.get(pid).map_or(0.0, |(_, us)| *us);
            *server.entry(name.clone()).or_default() += us - before;
        }
        Self {
            server,
            client_us: self.client_us - earlier.client_us,
            by_pid: BTreeMap::new(),
        }
    }

    /// Of all server processes together.
    pub(super) fn server_us(&self) -> f64 {
        self.server.values().sum()
    }
}

/// The first figure of a `schedstat` file: nanoseconds on a CPU.
fn run_us(path: &Path) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(path)?;
    let ns: f64 = text
        .split_whitespace()
        .next()
        .context("an empty schedstat")?
        .parse()?;
    Ok(ns / 1000.0)
}
