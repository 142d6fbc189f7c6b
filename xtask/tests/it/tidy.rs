//! The whole of `cargo xtask tidy` on a small repository with a mistake for nearly every check.

use std::fs;
use std::path::Path;
use std::process::Command;

const CRATE: &str = "[package]\nname = \"aegis-NAME\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";

fn write(root: &Path, path: &str, text: &str) {
    fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    fs::write(root.join(path), text).unwrap();
}

fn tidy(root: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["tidy", "--root"])
        .arg(root)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn the_tidy_process_lists_every_finding_and_ends_with_one() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
    );
    for name in ["model", "devpg"] {
        let manifest = CRATE.replace("NAME", name) + "[lints]\nworkspace = true\n";
        write(root, &format!("crates/aegis-{name}/Cargo.toml"), &manifest);
        write(
            root,
            &format!("crates/aegis-{name}/src/lib.rs"),
            "//! For nothing.\n",
        );
    }
    fs::write(
        root.join("Cargo.toml"),
        fs::read_to_string(root.join("Cargo.toml")).unwrap() + "[workspace.lints.rust]\n",
    )
    .unwrap();
    let (code, said) = tidy(root);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "tidy: 13 checks of 5 files, 0 findings\n")
    );

    let upward = CRATE.replace("NAME", "model")
        + "[dependencies]\naegis-devpg = { path = \"../aegis-devpg\" }\n";
    write(root, "crates/aegis-model/Cargo.toml", &upward);
    write(
        root,
        "crates/aegis-model/src/lib.rs",
        "fn a(b: Option<u8>) -> u8 { b.unwrap() }\n",
    );
    write(
        root,
        "crates/aegis-model/src/error_code.rs",
        "//! \"AEG-0001\".\n",
    );
    write(root, "README.md", "[a](gone.md)\n");
    write(
        root,
        "docs/measured.md",
        "| M | fact |\n|---|---|\n| M1 | a |\n",
    );
    write(
        root,
        "docs/bad-input.md",
        "| input | message | test |\n|---|---|---|\n| a | b | `gone` |\n",
    );
    write(root, "docs/claims.md", "`crates/gone.rs`\n");
    let (code, said) = tidy(root);
    assert_eq!(code, Some(1), "{said}");
    for finding in [
        "error: README.md:1: dead link `gone.md`",
        "error: crates/aegis-model/Cargo.toml: aegis-model uses aegis-devpg",
        "error: crates/aegis-model/Cargo.toml: does not take the workspace's lints",
        "error: crates/aegis-model/src/error_code.rs:1: AEG-0001 has no page",
        "error: crates/aegis-model/src/lib.rs:1: `.unwrap()` outside tests",
        "error: crates/aegis-model/src/lib.rs:1: does not open with `//!`",
        "error: docs/bad-input.md:3: there is no test `gone`",
        "error: docs/claims.md:1: there is no file `crates/gone.rs`",
        "error: docs/measured.md:3: M1 has no test",
        "tidy: 13 checks of 10 files, 9 findings",
    ] {
        assert!(said.contains(finding), "{finding} is not in\n{said}");
    }
}

#[test]
fn an_unknown_command_ends_the_process_with_two() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("tiny")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}
