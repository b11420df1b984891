//! The script that runs scenarios on kind clusters, with a kind and a docker that only note how
//! they are called.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use crate::repository;
use crate::tools::system;
use anyhow::{Result, ensure};
use tempfile::TempDir;

/// A folder of programs: shells' own, and these scripts.
fn programs(scripts: &[(&str, &str)]) -> Result<TempDir> {
    let folder = TempDir::new()?;
    for name in ["sh", "mktemp", "rm", "cat", "dirname"] {
        std::os::unix::fs::symlink(system(name, "coreutils")?, folder.path().join(name))?;
    }
    for (name, text) in scripts {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(folder)
}

/// Notes its call, and writes a kubeconfig to the file after --kubeconfig.
const KIND: &str = r#"echo "$1 $4" >> "$(dirname "$0")/calls"
[ "$1" != create ] || echo "kubeconfig of $4" > "$6""#;

fn run(programs: &TempDir, command: &str) -> Result<Output> {
    let mut script = Command::new(repository::path("kind-tests/on-kind"));
    Ok(script
        .args(["sh", "-c", command])
        .env("PATH", programs.path())
        .env_remove("KIND_EXPERIMENTAL_PROVIDER")
        .output()?)
}

/// How kind was called, without the process's number in the names.
fn calls(programs: &TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(programs.path().join("calls")).unwrap_or_default();
    let role = |line: &str| line.rsplit('-').next().unwrap_or_default().to_owned();
    text.lines()
        .map(|line| {
            format!(
                "{} {}",
                line.split(' ').next().unwrap_or_default(),
                role(line)
            )
        })
        .collect()
}

#[test]
fn the_command_finds_two_clusters_which_are_removed_after_it() -> Result<()> {
    let failing = format!("{KIND}\ncase $4 in *-shoot) [ \"$1\" != create ] || exit 1 ;; esac");
    let cases = [
        (KIND, "cat \"$SEED_KUBECONFIG\" \"$SHOOT_KUBECONFIG\"", 0, 2),
        (KIND, "exit 7", 7, 0),
        (KIND, "kill -TERM $PPID", 143, 0),
        // What is half made is removed, and the command not run.
        (&failing, "echo ran", 1, 0),
    ];
    for (kind, command, code, found) in cases {
        let programs = programs(&[("kind", kind), ("docker", "")])?;
        let output = run(&programs, command)?;
        ensure!(output.status.code() == Some(code), "{command}: {output:?}");
        assert_eq!(
            calls(&programs),
            ["create seed", "create shoot", "delete seed", "delete shoot"],
            "{command}"
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let is_theirs = lines
            .iter()
            .zip(["-seed", "-shoot"])
            .all(|(line, role)| line.ends_with(role));
        ensure!(lines.len() == found && is_theirs, "{command}: {text}");
    }
    Ok(())
}

#[test]
fn what_is_missing_is_said() -> Result<()> {
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[], "kind is needed"),
        (&[("kind", "")], "docker is needed"),
        (&[("kind", ""), ("docker", "exit 1")], "does not work"),
    ];
    for (scripts, expected) in cases {
        let programs = programs(scripts)?;
        let output = run(&programs, "echo ran")?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.code() == Some(1) && output.stdout.is_empty() && text.contains(expected),
            "{expected}: {text}"
        );
    }
    Ok(())
}
