use super::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, pipe};
use std::sync::Arc;
use tracing::{error, info, warn};

/// The lines written while `log` runs.
fn lines(level: LevelFilter, log: impl FnOnce()) -> Vec<Value> {
    let (written, writer) = pipe().expect("a pipe");
    let subscriber = tracing_subscriber::registry().with(layer(level, Arc::new(writer)));
    tracing::subscriber::with_default(subscriber, log);
    let lines = BufReader::new(written).lines();
    let lines = lines.map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"));
    lines.collect()
}

#[test]
fn a_line_is_flat_and_names_its_shoot() {
    let number = "x".parse::<i32>().expect_err("no number");
    let gone = anyhow::Error::new(number).context("gone");
    let mut written = lines(LevelFilter::DEBUG, || {
        let _replica = tracing::error_span!("replica", replica = "a").entered();
        let _shoot = tracing::error_span!("shoot", namespace = "shoot--a--b").entered();
        error!(target: "prober::it", candidates = 3, share = 0.5, late = true, who = "n\n1", error = with_causes(&*gone), "probe failed");
    });
    let timestamp = written[0]["timestamp"].take();
    let timestamp = timestamp.as_str().expect("a time");
    chrono::DateTime::parse_from_rfc3339(timestamp).expect("RFC 3339");
    assert_eq!(
        written,
        [json!({
            "timestamp": null, "level": "ERROR", "target": "prober::it", "message": "probe failed",
            "candidates": 3, "share": 0.5, "late": true, "who": "n\n1", "error": "gone: invalid digit found in string",
            "span": {"name": "shoot", "namespace": "shoot--a--b"}
        })]
    );
}

#[test]
fn a_refusal_is_shown_by_its_message() {
    let message = "leases is forbidden: User \"operator\" cannot get resource \"leases\"";
    for (message, said) in [(message, message), ("", "403 Forbidden")] {
        let status = Status::failure(message, "Forbidden").with_code(403);
        let error = anyhow::Error::new(kube::Error::Api(Box::new(status)));
        assert_eq!(with_causes(error.as_ref()), said);
        let error = error.context("the seed cannot be read");
        assert_eq!(
            with_causes(error.as_ref()),
            format!("the seed cannot be read: {said}")
        );
    }
}

#[test]
fn other_crates_only_warn_and_kubes_client_only_fails() {
    let written = |level| {
        let lines = lines(level, || {
            info!(target: "prober::core::lease", "ours");
            warn!(target: "kube_runtime::watcher", "a warning");
            info!(target: "hyper::client", authorization = "secret", "headers");
            // It quotes answers that it could not read.
            warn!(target: "kube_client::client", "token: secret, cannot be parsed");
            error!(target: "kube_client::client::auth", "an error");
        });
        let messages = lines.iter().filter_map(|line| line["message"].as_str());
        messages.map(str::to_owned).collect::<Vec<_>>().join(", ")
    };
    for (level, expected) in [
        (LevelFilter::TRACE, "ours, a warning, an error"),
        (LevelFilter::ERROR, "an error"),
        (LevelFilter::OFF, ""),
    ] {
        assert_eq!(written(level), expected);
    }
}

#[test]
fn a_reader_that_stands_still_costs_lines_and_no_waiting() {
    let (reader, writer) = pipe().expect("a pipe");
    let (mut lines, _guard) = queue(writer);
    // More than a pipe holds, and then as much as may wait, and more.
    let large = "a".repeat(1 << 20) + "\n";
    lines.write_all(large.as_bytes()).expect("no wait");
    for _ in 0..QUEUE + 100 {
        lines.write_all(b"a\n").expect("no wait");
    }
    // The thread may have taken the first one by then.
    let dropped = lines.error_counter().dropped_lines();
    assert!((100..=101).contains(&dropped), "{dropped}");
    let kept = QUEUE + 101 - dropped;
    assert_eq!(BufReader::new(reader).lines().take(kept).count(), kept);
}
