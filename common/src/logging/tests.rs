use super::*;
use kube::core::Status;
use std::io::{BufRead, BufReader, pipe};
use std::sync::Arc;
use tracing::{error, info, info_span, warn};

fn noon() -> DateTime<Utc> {
    "2024-02-29T12:00:00.001500Z".parse().expect("a time")
}

/// The lines written while `log` runs.
fn lines(level: LevelFilter, log: impl FnOnce()) -> Vec<String> {
    let written = Arc::new(Mutex::new(Vec::new()));
    let buffer = written.clone();
    let write = move |line| buffer.lock().push(String::from_utf8(line).expect("text"));
    let layer = ZapLayer::new(level, write, noon);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
    std::mem::take(&mut *written.lock())
}

#[test]
fn a_line_has_zaps_keys_in_zaps_order() {
    let number = "x".parse::<i32>().expect_err("no number");
    let gone = anyhow::Error::new(number).context("gone");
    let written = lines(LevelFilter::DEBUG, || {
        error!(target: "prober::engine", candidates = 3, share = 0.5, late = true, who = "n1", error = &*gone, "probe failed");
    });
    let line = concat!(
        r#"{"level":"error","ts":"2024-02-29T12:00:00Z","logger":"dwd.cluster-controller","msg":"probe failed","#,
        r#""candidates":3,"share":0.5,"late":true,"who":"n1","error":"gone: invalid digit found in string"}"#,
        "\n"
    );
    assert_eq!(written, [line]);
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
fn the_fields_of_the_spans_round_it_are_on_each_line_and_the_inner_one_wins() {
    // Whatever level the spans have.
    let written = lines(LevelFilter::ERROR, || {
        let _shoot =
            tracing::debug_span!(target: "prober", "shoot", namespace = "shoot--a--b", step = 1)
                .entered();
        let inner = info_span!(target: "prober", "flow", step = 2, later = tracing::field::Empty);
        inner.record("later", "known");
        let _flow = inner.entered();
        error!(target: "prober", step = 3, "one");
        error!(target: "prober", "two");
    });
    for (line, step) in written.iter().zip([3, 2]) {
        let fields =
            format!(",\"namespace\":\"shoot--a--b\",\"step\":{step},\"later\":\"known\"}}\n");
        assert!(line.ends_with(&fields), "{line}");
    }
}

#[test]
fn loggers_are_named_after_the_agent_and_other_crates_only_warn() {
    let written = lines(LevelFilter::TRACE, || {
        info!(target: "prober::core::lease", "dwd.cluster-controller");
        info!(target: "weeder", "dwd.endpoints-controller");
        info!(target: "common::process", "dwd");
        info!(target: "dwd.cluster-controller.reload", "dwd.cluster-controller.reload");
        warn!(target: "kube_client::api", "dwd.kube_client");
        error!(target: "dwdx", "dwd.dwdx");
        info!(target: "hyper::client", authorization = "secret", "headers");
        // It quotes answers that it could not read.
        warn!(target: "kube_client::client", "token: secret, cannot be parsed");
    });
    assert_eq!(written.len(), 6);
    for line in written {
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(line["logger"], line["msg"]);
    }
}

#[test]
fn of_equal_lines_a_hundred_a_second_are_written_and_the_others_counted() {
    let before = dropped_lines();
    let written = lines(LevelFilter::DEBUG, || {
        (0..1000).for_each(|n| info!(target: "dwd", n, "again"));
        info!(target: "dwd", "another");
    });
    assert!(written.len() == 101 && written[100].contains("another"));
    // Other tests may drop lines, too.
    assert!(dropped_lines() >= before + 900);
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
