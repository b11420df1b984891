//! What must hold of every reading of what comes from outside, whatever its bytes are. libFuzzer
//! makes the bytes (`targets.rs`); a library's own reading is its own affair.

mod answers;
mod config;
mod kubeconfig;

use anyhow::{Context, Result, ensure};
use go_compat::duration::GoDuration;
use prober::gardener::{Cluster, Machine};
use prober_core::lifecycle::settings;
use serde_json::{Value, from_slice, from_str, json};

/// Checks a reading of these bytes.
pub type Check = fn(&[u8]) -> Result<()>;

/// The readers by name.
pub const READERS: [(&str, Check); 6] = [
    ("answers", answers::check),
    ("clusters", clusters),
    ("durations", durations),
    ("kubeconfig", kubeconfig::check),
    ("prober_config", config::prober),
    ("weeder_config", config::weeder),
];

/// The most bytes of one message: what is said to a person or a log stays readable, however long
/// what came in.
const LONGEST_MESSAGE: usize = 2048;

/// A message is a single line of bounded length.
fn is_one_line(message: &str) -> Result<()> {
    ensure!(!message.is_empty(), "a refusal without a word");
    ensure!(message.len() <= LONGEST_MESSAGE, "too long: {message}");
    let breaks = ['\n', '\r', '\u{1b}'];
    ensure!(!message.contains(breaks), "not a plain line: {message:?}");
    Ok(())
}

/// What is read is read again as it is written.
fn durations(bytes: &[u8]) -> Result<()> {
    match String::from_utf8_lossy(bytes).parse::<GoDuration>() {
        Ok(read) => ensure!(read.to_string().parse() == Ok(read), "written as {read}"),
        Err(refusal) => is_one_line(&refusal.to_string())?,
    }
    Ok(())
}

/// Whatever is embedded as a shoot or a seed, the Cluster is read (rule 30).
fn clusters(bytes: &[u8]) -> Result<()> {
    let Ok(raw) = from_slice::<Value>(bytes) else {
        return Ok(());
    };
    let text = raw.to_string();
    // Either may be refused, but must not panic.
    let _ = (from_str::<Cluster>(&text), from_str::<Machine>(&text));
    let cluster = |spec: Value| {
        let cluster = json!({"metadata": {"name": "shoot--a--b"}, "spec": spec});
        from_str::<Cluster>(&cluster.to_string())
    };
    let odd_seed = cluster(json!({"seed": raw, "shoot": {}}))?;
    let is_read = matches!(odd_seed.spec.shoot, Some(Ok(_)));
    ensure!(is_read, "a shoot is lost for its seed");
    let odd_shoot = cluster(json!({"shoot": raw})).context("a Cluster is lost for its shoot")?;
    match odd_shoot.spec.shoot {
        None => ensure!(raw.is_null(), "a shoot is lost"),
        Some(Err(refusal)) => is_one_line(&refusal)?,
        Some(Ok(shoot)) => {
            let settings = settings(&shoot);
            let grace = settings.node_monitor_grace;
            ensure!(grace.is_none_or(|grace| grace > chrono::TimeDelta::zero()));
            let mut pools = settings.pool_conditions.values();
            ensure!(pools.all(|conditions| !conditions.is_empty()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_corpus_holds() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for (name, check) in READERS {
            for file in fs::read_dir(corpus.join(name)).unwrap() {
                let path = file.unwrap().path();
                let checked = check(&fs::read(&path).unwrap());
                assert!(checked.is_ok(), "{}: {checked:?}", path.display());
            }
        }
    }
}
