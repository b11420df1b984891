//! The soak in small: a few shoots, some seconds of faults.

use std::process::Command;

use anyhow::{Result, ensure};
use testbed::tolerating_stalls;

#[tokio::test]
async fn some_seconds_of_faults_leave_nothing_wrong_behind() -> Result<()> {
    tolerating_stalls(async || {
        let soak = Command::new(env!("CARGO_BIN_EXE_soak"))
            .arg(testbed::agent::binary()?)
            .args(["--seed=11", "--duration=18s", "--rounds=1", "--shoots=8"])
            .output()?;
        let text = String::from_utf8([soak.stdout, soak.stderr].concat())?;
        let happened = ["\"cuts\": ", "\"writes\": "].map(|what| text.contains(what));
        ensure!(soak.status.success() && happened == [true; 2], "{text}");
        Ok(())
    })
    .await
}
