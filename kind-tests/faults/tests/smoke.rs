//! The soak in small: a few shoots, some seconds of faults. And that it finds what only real processes
//! can do wrong.

use std::process::Command;

use anyhow::{Result, ensure};
use testbed::tolerating_stalls;

/// Whether a soak ended with success, and all that it said.
fn soak(words: &str) -> Result<(bool, String)> {
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .arg(testbed::agent::binary()?)
        .arg("--seed=11")
        .args(words.split(' '))
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8(text)?))
}

#[tokio::test]
async fn some_seconds_of_faults_leave_nothing_wrong_behind() -> Result<()> {
    tolerating_stalls(async || {
        let (passed, text) = soak("--duration=18s --rounds=1 --shoots=8")?;
        let happened = ["\"cuts\": ", "\"writes\": "].map(|what| text.contains(what));
        ensure!(passed && happened == [true; 2], "{text}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_leak_is_found() -> Result<()> {
    tolerating_stalls(async || {
        let (passed, text) = soak("--duration=20s --rounds=4 --shoots=4 --leak")?;
        ensure!(!passed && text.contains("\nfound {Leaks: "), "{text}");
        Ok(())
    })
    .await
}
