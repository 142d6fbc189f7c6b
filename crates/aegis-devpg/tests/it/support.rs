//! What these tests share: queries over a URL, and looking at processes from outside.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio_postgres::NoTls;

/// Runs one statement on a connection of its own and gives the first column of the first row.
pub(crate) fn ask(url: &str, sql: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls)
            .await
            .map_err(|error| format!("{error:?}"))?;
        let connection = tokio::spawn(connection);
        let rows = client
            .simple_query(sql)
            .await
            .map_err(|error| format!("{error:?}"))?;
        drop(client);
        connection.await.unwrap().unwrap();
        let first = rows.into_iter().find_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(first.unwrap_or_default())
    })
}

/// Waits until `holds` says so; panics with `what` after `bound_s` seconds.
pub(crate) fn eventually(what: &str, bound_s: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(bound_s);
    while !holds() {
        assert!(Instant::now() < deadline, "not within {bound_s} s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes whose command line or working folder names `path`, as `pid: command line`.
pub(crate) fn processes_of(path: &Path) -> Vec<String> {
    let needle = path.to_str().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) || name == std::process::id().to_string()
        {
            continue;
        }
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if line.contains(needle) || cwd.to_string_lossy().contains(needle) {
            found.push(format!(
                "{name}: {}",
                line.chars()
                    .rev()
                    .take(200)
                    .collect::<String>()
                    .chars()
                    .rev()
                    .collect::<String>()
            ));
        }
    }
    found
}
