//! `aegis completion`: each script is one that its shell can read.

use std::process::{Command, Stdio};

use aegis_testkit::{process_slot, skipped};

use crate::support::{command, run};

#[tokio::test]
async fn process_each_shell_can_read_its_script() {
    let _slot = process_slot();
    let shells = [
        ("bash", vec!["-n"]),
        ("zsh", vec!["-n"]),
        ("fish", vec!["--no-execute"]),
        ("powershell", vec!["-NoProfile", "-File"]),
    ];
    for (shell, check) in shells {
        let script = run(command(None, &["completion", shell])).await;
        assert_eq!(script.code, 0, "{script:?}");
        assert!(
            script.stdout.contains("aegis") && script.stdout.contains("print-config"),
            "{shell}"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.ps1");
        std::fs::write(&path, &script.stdout).unwrap();
        let program = if shell == "powershell" { "pwsh" } else { shell };
        match Command::new(program)
            .args(check)
            .arg(&path)
            .stdin(Stdio::null())
            .output()
        {
            Ok(output) => assert!(
                output.status.success(),
                "{shell}: {}",
                String::from_utf8_lossy(&output.stderr)
            ),
            // A machine without a shell has nobody who completes in it.
            Err(_) => {
                println!("{shell} is not on this machine: its script was made, and not read by it");
            }
        }
    }
}

#[tokio::test]
async fn process_bash_completes_nouns_and_verbs() {
    let _slot = process_slot();
    let script = run(command(None, &["completion", "bash"])).await.stdout;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asked.bash");
    let asked =
        "COMP_WORDS=(aegis lane pa) COMP_CWORD=2; _aegis aegis pa lane; echo \"${COMPREPLY[@]}\"";
    std::fs::write(&path, format!("{script}\n{asked}\n")).unwrap();
    match Command::new("bash").arg("--norc").arg(&path).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                text.contains("pause") && text.contains("pauses"),
                "{output:?}"
            );
        }
        Err(error) => skipped("bash completion", &format!("there is no bash: {error}")),
    }
}

#[tokio::test]
async fn process_an_unknown_shell_is_refused() {
    let _slot = process_slot();
    let ran = run(command(None, &["completion", "tcsh"])).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("powershell"), "{ran:?}");
}
