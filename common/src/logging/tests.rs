use super::*;
use chrono::TimeZone;
use kube::core::Status;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tracing::{debug, error, info, info_span, trace, warn};

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2024, 2, 29, 12, 0, 0)
        .single()
        .expect("a time")
        + chrono::TimeDelta::nanoseconds(1_500_000)
}

/// The lines written while `log` runs.
fn lines(level: LevelFilter, log: impl FnOnce()) -> Vec<String> {
    let written = Arc::new(Mutex::new(Vec::<u8>::new()));
    let buffer = written.clone();
    let layer = ZapLayer::new(level, move |line| buffer.lock().extend(line), noon);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
    let text = String::from_utf8(written.lock().clone()).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[derive(Debug, thiserror::Error)]
#[error("cannot probe")]
struct Outer(#[source] std::num::ParseIntError);

#[test]
fn a_line_has_zaps_keys_in_zaps_order() {
    let written = lines(LevelFilter::DEBUG, || {
        error!(target: "prober::engine", candidates = 3, share = 0.5, late = true, who = "n1", error = "gone", "probe failed");
    });
    assert_eq!(
        written,
        [concat!(
            r#"{"level":"error","ts":"2024-02-29T12:00:00Z","logger":"dwd.cluster-controller","msg":"probe failed","#,
            r#""candidates":3,"share":0.5,"late":true,"who":"n1","error":"gone"}"#
        )]
    );
}

#[test]
fn an_error_carries_its_causes() {
    let cause = "x".parse::<i32>().expect_err("no number");
    let failure = Outer(cause);
    let failure: &(dyn std::error::Error + 'static) = &failure;
    let written = lines(
        LevelFilter::DEBUG,
        || error!(target: "dwd", error = failure, "failed"),
    );
    assert!(
        written[0].contains(r#""error":"cannot probe: invalid digit found in string""#),
        "{written:?}"
    );
}

#[test]
fn an_api_servers_refusal_is_shown_by_its_message() {
    #[derive(Debug, thiserror::Error)]
    enum Broken {
        #[error(transparent)]
        Api(#[from] kube::Error),
        #[error("not listed: {0}")]
        Listed(#[source] kube::Error),
    }
    let refused = |message: &str| {
        kube::Error::Api(Box::new(
            Status::failure(message, "Forbidden").with_code(403),
        ))
    };
    let message = "leases is forbidden: User \"operator\" cannot get resource \"leases\"";
    assert_eq!(with_causes(&refused(message)), message);
    assert_eq!(with_causes(&Broken::from(refused(message))), message);
    assert_eq!(
        with_causes(&Broken::Listed(refused(message))),
        format!("not listed: {message}")
    );
    let context = anyhow::Error::new(refused(message)).context("the seed cannot be read");
    assert_eq!(
        with_causes(context.as_ref()),
        format!("the seed cannot be read: {message}")
    );
    assert_eq!(with_causes(&refused("")), "403 Forbidden");
}

#[test]
fn the_fields_of_the_spans_round_it_are_on_each_line_and_the_inner_one_wins() {
    let written = lines(LevelFilter::DEBUG, || {
        let _shoot =
            info_span!(target: "prober", "shoot", namespace = "shoot--a--b", step = 1).entered();
        let inner = info_span!(target: "prober", "flow", step = 2, later = tracing::field::Empty);
        inner.record("later", "known");
        let _flow = inner.entered();
        info!(target: "prober", step = 3, "one");
        info!(target: "prober", "two");
    });
    let rest = |line: &str| line.split(r#""msg":"#).nth(1).map(str::to_owned);
    assert_eq!(
        rest(&written[0]).as_deref(),
        Some(r#""one","namespace":"shoot--a--b","step":3,"later":"known"}"#)
    );
    assert_eq!(
        rest(&written[1]).as_deref(),
        Some(r#""two","namespace":"shoot--a--b","step":2,"later":"known"}"#)
    );
}

#[test]
fn a_spans_fields_stay_when_its_own_level_is_not_written() {
    let written = lines(LevelFilter::ERROR, || {
        let _shoot = tracing::debug_span!(target: "prober", "shoot", namespace = "a").entered();
        error!(target: "prober", "failed");
    });
    assert!(
        written[0].ends_with(r#""msg":"failed","namespace":"a"}"#),
        "{written:?}"
    );
}

#[test]
fn values_cannot_break_a_line() {
    let written = lines(
        LevelFilter::DEBUG,
        || info!(target: "dwd", bad = f64::NAN, "two\n\"lines\"\u{7}"),
    );
    assert_eq!(written.len(), 1);
    let parsed: serde_json::Value = serde_json::from_str(&written[0]).expect("JSON");
    assert_eq!(parsed["msg"], "two\n\"lines\"\u{7}");
    assert!(parsed["bad"].is_null());
}

#[test]
fn each_level_shows_what_is_at_least_as_severe() {
    let shown = |level| {
        let written = lines(level, || {
            error!(target: "dwd", "e");
            warn!(target: "dwd", "w");
            info!(target: "dwd", "i");
            debug!(target: "dwd", "d");
            trace!(target: "dwd", "t");
        });
        written
            .iter()
            .map(|line| line.split('"').nth(3).expect("a level").to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(shown(LevelFilter::OFF), "");
    assert_eq!(shown(LevelFilter::ERROR), "error");
    assert_eq!(shown(LevelFilter::INFO), "error warn info");
    assert_eq!(shown(LevelFilter::DEBUG), "error warn info debug");
    assert_eq!(shown(LevelFilter::TRACE), "error warn info debug trace");
}

#[test]
fn answers_that_the_client_could_not_read_are_never_quoted() {
    let written = lines(
        LevelFilter::DEBUG,
        || warn!(target: "kube_client::client", "token: secret, cannot be parsed"),
    );
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn loggers_are_named_after_the_agent() {
    let written = lines(LevelFilter::DEBUG, || {
        info!(target: "prober::core::lease", "");
        info!(target: "weeder", "");
        info!(target: "common::process", "");
        info!(target: "dwd.cluster-controller.reload", "");
        warn!(target: "kube_client::config", "");
    });
    let loggers: Vec<_> = written
        .iter()
        .map(|line| line.split('"').nth(11).expect("a logger"))
        .collect();
    assert_eq!(
        loggers,
        [
            "dwd.cluster-controller",
            "dwd.endpoints-controller",
            "dwd",
            "dwd.cluster-controller.reload",
            "dwd.kube_client"
        ]
    );
}

#[test]
fn of_other_crates_only_warnings_and_worse_are_written() {
    let written = lines(LevelFilter::TRACE, || {
        info!(target: "hyper::client", authorization = "secret", "headers");
        debug!(target: "kube_client", "details");
        warn!(target: "kube_runtime::watcher", "broken");
        error!(target: "dwdx", "worse");
    });
    assert_eq!(written.len(), 2);
}

#[test]
fn of_equal_lines_a_hundred_a_second_are_written_and_the_others_counted() {
    let before = dropped_lines();
    let written = lines(LevelFilter::DEBUG, || {
        for n in 0..1000 {
            info!(target: "dwd", n, "again");
        }
        info!(target: "dwd", "another");
    });
    assert_eq!(written.len(), 101);
    assert!(written[100].contains("another"), "{written:?}");
    // Other tests may drop lines, too.
    assert!(dropped_lines() >= before + 900);
}

/// A writer that hands each write over, and so waits until it is taken.
struct Handing(SyncSender<Vec<u8>>);

impl Write for Handing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.0.send(bytes.to_vec());
        taken.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_stands_still_costs_lines_and_no_waiting() {
    let (sender, receiver) = sync_channel(0);
    let (mut lines, guard) = queue(Handing(sender));
    for number in 0..QUEUE + 100 {
        lines
            .write_all(number.to_string().as_bytes())
            .expect("no wait");
    }
    // The thread may have taken one of them.
    let dropped = lines.error_counter().dropped_lines();
    assert!((99..=100).contains(&dropped), "{dropped}");
    for number in 0..QUEUE {
        let line = receiver.recv_timeout(Duration::from_secs(10));
        assert_eq!(line.expect("a line"), number.to_string().into_bytes());
    }
    drop((receiver, guard));
}
