//! Fetched binaries, for real: from the registry that this machine's `mvn` knows, into a cache,
//! and run. Skipped, with a word, where there is no way to it.

use std::path::Path;
use std::process::Command;

use aegis_devpg::{Options, Server};

use crate::helper::{self, Helper};
use crate::support::{ask, open_folder, root_or_skip, skipped};

fn fetch(cache: &Path, path: Option<&Path>) -> String {
    let mut command = helper::command("fetch");
    command.env("XDG_CACHE_HOME", cache);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    Helper::run(command).hear()
}

#[test]
fn fetched_binaries_are_cached_and_run_process() {
    let has_mvn = Command::new("mvn").arg("--version").output();
    if !has_mvn.is_ok_and(|output| output.status.success()) {
        return skipped("fetched_binaries", "mvn is not installed");
    }
    let (cache, nothing) = (open_folder(), open_folder());
    let bin = fetch(cache.path(), None);
    if bin.contains("Download") {
        return skipped("fetched_binaries", &bin);
    }
    assert!(bin.starts_with(cache.path().to_str().unwrap()), "{bin}");
    // Again with no tool to download with: from the cache.
    let tools = nothing.path().join("bin");
    std::fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink("/bin/sh", tools.join("sh")).unwrap();
    assert_eq!(fetch(cache.path(), Some(&tools)), bin);

    let options = Options {
        binaries: Some(bin.into()),
        ..Options::for_tests()
    };
    let server = Server::start(&options).unwrap();
    let version = ask(&server.url("postgres", "postgres"), "show server_version").unwrap();
    assert_eq!((server.version().0, version.as_str()), (18, "18.6"));
    server.stop();

    without_binaries(cache.path());
}

/// On a machine without PostgreSQL (its folder is hidden in a mount namespace): an error that
/// says how to get one, and with the cache a server.
fn without_binaries(cache: &Path) {
    if !root_or_skip("without_binaries", "a mount namespace needs root") {
        return;
    }
    let temp = open_folder();
    let serve = |cache: &Path| {
        let exe = std::env::current_exe().unwrap();
        let mut unshare = Command::new("unshare");
        let hide = "for d in /usr/lib/postgresql /usr/pgsql-*; do \
                    [ -d \"$d\" ] && { mount -t tmpfs none \"$d\" || exit; }; done; exec \"$@\"";
        unshare
            .args(["--mount", "sh", "-c", hide, "sh"])
            .arg(exe)
            .args(["--exact", "helper::helper_process", "--nocapture"])
            .env("AEGIS_DEVPG_HELPER", "serve")
            .env("XDG_CACHE_HOME", cache)
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", temp.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        Helper::run(unshare)
    };
    let none = open_folder();
    let said = serve(none.path()).hear();
    for word in ["no PostgreSQL 15", "apt-get install", "--fetch-postgres"] {
        assert!(said.contains(word), "{said}");
    }
    let mut helper = serve(cache);
    assert_eq!(ask(&helper.hear(), "select 1").unwrap(), "1");
    assert!(helper.hear().contains("18.6"));
    helper.end();
}
