//! The crates of others that the workspace names, with their versions, licences and users.
//!
//! Invariant: each has a row with its reason, by hand, on the same page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};

const PAGE: &str = "docs/dependencies.md";

/// A crate of others.
#[derive(Debug, Default)]
struct Foreign {
    version: String,
    licence: String,
    /// Crates of the workspace; those that use it in tests alone are marked.
    users: BTreeSet<String>,
}

/// A table of what is named, as it is locked.
pub(super) fn table(root: &Path) -> anyhow::Result<String> {
    let foreign = named(root)?;
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let silent = without_reason(&page, foreign.keys());
    if !silent.is_empty() {
        bail!(
            "{PAGE} gives no reason for {}: add a row that begins with its name",
            silent.join(", ")
        );
    }
    let mut table =
        String::from("| crate | version | licence | used by |\n| --- | --- | --- | --- |\n");
    for (name, one) in &foreign {
        let users: Vec<&str> = one.users.iter().map(String::as_str).collect();
        writeln!(
            table,
            "| {name} | {} | {} | {} |",
            one.version,
            one.licence,
            users.join(", ")
        )?;
    }
    Ok(table)
}

fn named(root: &Path) -> anyhow::Result<BTreeMap<String, Foreign>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .other_options(["--locked".to_owned()])
        .exec()
        .context("cannot read the workspace")?;
    let members = metadata.workspace_packages();
    let resolve = metadata
        .resolve
        .as_ref()
        .context("cargo resolved nothing")?;
    let mut foreign: BTreeMap<String, Foreign> = BTreeMap::new();
    for node in resolve
        .nodes
        .iter()
        .filter(|node| metadata.workspace_members.contains(&node.id))
    {
        let user = &metadata[&node.id].name;
        for dependency in &node.deps {
            if members.iter().any(|member| member.id == dependency.pkg) {
                continue;
            }
            let package = &metadata[&dependency.pkg];
            let one = foreign.entry(package.name.to_string()).or_default();
            one.version = package.version.to_string();
            one.licence = package.license.clone().unwrap_or_default();
            let tests_only = dependency
                .dep_kinds
                .iter()
                .all(|kind| kind.kind == DependencyKind::Development);
            one.users.insert(if tests_only {
                format!("{user} (tests)")
            } else {
                user.to_string()
            });
        }
    }
    Ok(foreign)
}

/// Those that no row written by hand begins with.
fn without_reason<'a>(page: &str, names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    names
        .map(String::as_str)
        .filter(|name| {
            let start = format!("| `{name}` |");
            !page.lines().any(|line| line.starts_with(&start))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    //! Reasons.

    use super::without_reason;

    #[test]
    fn a_crate_without_a_row_of_its_own_is_found() {
        let page =
            "| crate | why |\n| `serde` | json |\n| tokio | no code span |\n`uuid` in prose\n";
        let names = ["serde", "tokio", "uuid"].map(str::to_owned);
        assert_eq!(without_reason(page, names.iter()), ["tokio", "uuid"]);
    }
}
