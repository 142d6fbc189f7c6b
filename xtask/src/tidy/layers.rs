//! Dependencies between the crates point one way.

use std::path::Path;

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, MetadataCommand};

use super::finding::Finding;

const WHY: &str = "a crate that needs what stands above it cannot be understood or built alone";

/// Lowest first. A crate may use those of lower rows.
const LAYERS: [&[&str]; 6] = [
    &[
        "aegis-catalog",
        "aegis-devpg",
        "aegis-model",
        "aegis-telemetry",
    ],
    &[
        "aegis-backfill",
        "aegis-ddl",
        "aegis-protocol",
        "aegis-store",
        "aegis-audit",
        "aegis-release",
        "aegis-supply",
        "aegis-gitops",
    ],
    &["aegis-migrate", "aegis-worker"],
    &["aegis-schema"],
    &[
        "aegis-server",
        "aegis-console",
        "svcforge",
        "aegis-drill",
        "aegis-harness",
        "aegis-demo",
        "aegis-bench",
        "aegis-exec",
    ],
    &["aegis"],
];

/// For tests only: what they may use, and nobody uses them but as a dev-dependency.
const BESIDE: [(&str, &[&str]); 4] = [
    (
        "aegis-fuzz",
        &[
            "aegis-catalog",
            "aegis-ddl",
            "aegis-demo",
            "aegis-drill",
            "aegis-migrate",
            "aegis-model",
            "aegis-protocol",
            "aegis-store",
            "aegis-worker",
        ],
    ),
    ("aegis-proof", &["aegis-model"]),
    (
        "aegis-testkit",
        &[
            "aegis-devpg",
            "aegis-migrate",
            "aegis-model",
            "aegis-schema",
            "aegis-store",
        ],
    ),
    (
        "xtask",
        &["aegis-catalog", "aegis-ddl", "aegis-devpg", "aegis-model"],
    ),
];

/// A crate of the workspace and the crates of the workspace that it uses outside tests.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) manifest: String,
    pub(super) uses: Vec<String>,
}

/// Asks cargo.
pub(super) fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cannot read the workspace")?;
    let packages = metadata.workspace_packages();
    Ok(packages
        .iter()
        .map(|package| Package {
            name: package.name.to_string(),
            manifest: package
                .manifest_path
                .strip_prefix(&metadata.workspace_root)
                .unwrap_or(&package.manifest_path)
                .to_string(),
            uses: package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .filter(|dependency| packages.iter().any(|other| *other.name == dependency.name))
                .map(|dependency| dependency.name.clone())
                .collect(),
        })
        .collect())
}

/// Judges every use.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let mut complain = |what: String, fix: &str| {
            let (file, fix) = (package.manifest.clone(), fix.to_owned());
            findings.push(Finding {
                file,
                line: 0,
                what,
                why: WHY,
                fix,
            });
        };
        let beside = BESIDE
            .iter()
            .find(|(name, _)| *name == package.name)
            .map(|(_, may)| *may);
        let layer = layer(&package.name);
        if layer.is_none() && beside.is_none() {
            let what = format!("{} has no layer", package.name);
            complain(
                what,
                "give it one in xtask/src/tidy/layers.rs and in ARCHITECTURE.md",
            );
            continue;
        }
        for used in &package.uses {
            let allowed = match beside {
                Some(may) => may.contains(&used.as_str()),
                None => self::layer(used) < layer && self::layer(used).is_some(),
            };
            if !allowed {
                let what = format!("{} uses {used}", package.name);
                complain(
                    what,
                    "move the code down, or hand it in as a value or a trait",
                );
            }
        }
    }
    findings
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

#[cfg(test)]
mod tests {
    //! Down, up, sideways, and beside.

    use super::super::finding::lines;
    use super::{Package, check};

    fn package(name: &str, uses: &[&str]) -> Package {
        let uses = uses.iter().map(|&name| name.to_owned()).collect();
        Package {
            name: name.to_owned(),
            manifest: format!("{name}/Cargo.toml"),
            uses,
        }
    }

    #[test]
    fn uses_point_down() {
        let found = check(&[
            package("aegis", &["aegis-worker", "aegis-demo", "aegis-model"]),
            package("aegis-worker", &["aegis-store", "aegis-model"]),
            package("aegis-testkit", &["aegis-store", "aegis-devpg"]),
            package("xtask", &["aegis-devpg"]),
        ]);
        assert_eq!(found, []);
    }

    #[test]
    fn everything_else_is_found() {
        let found = check(&[
            package("aegis-model", &["aegis-devpg"]),
            package(
                "aegis-store",
                &["aegis-worker", "aegis-audit", "aegis-testkit"],
            ),
            package("aegis-testkit", &["aegis-worker"]),
            package("aegis-new", &[]),
            package("aegis", &["xtask"]),
        ]);
        assert_eq!(
            lines(&found),
            [
                "aegis-model/Cargo.toml:0 aegis-model uses aegis-devpg",
                "aegis-store/Cargo.toml:0 aegis-store uses aegis-worker",
                "aegis-store/Cargo.toml:0 aegis-store uses aegis-audit",
                "aegis-store/Cargo.toml:0 aegis-store uses aegis-testkit",
                "aegis-testkit/Cargo.toml:0 aegis-testkit uses aegis-worker",
                "aegis-new/Cargo.toml:0 aegis-new has no layer",
                "aegis/Cargo.toml:0 aegis uses xtask",
            ]
        );
    }
}
