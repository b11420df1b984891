use super::*;
use chrono::TimeZone;
use go_compat::zap::TimeEncoding;
use kube::core::Status;
use std::sync::Arc;
use tracing::{debug, error, info, info_span, trace, warn};

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2024, 2, 29, 12, 0, 0)
        .single()
        .expect("a time")
        + chrono::TimeDelta::nanoseconds(1_500_000)
}

/// The lines written while `log` runs.
fn lines(options: ZapOptions, log: impl FnOnce()) -> Vec<String> {
    let written = Arc::new(Mutex::new(Vec::<u8>::new()));
    let buffer = written.clone();
    let layer = ZapLayer::new(options, move |line| buffer.lock().extend(line), noon);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
    let text = String::from_utf8(written.lock().clone()).expect("text");
    text.lines().map(str::to_owned).collect()
}

fn level(level: Level) -> ZapOptions {
    ZapOptions {
        level,
        ..ZapOptions::default()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot probe")]
struct Outer(#[source] std::num::ParseIntError);

#[test]
fn a_line_has_zaps_keys_in_zaps_order() {
    let written = lines(ZapOptions::default(), || {
        error!(target: "prober::engine", candidates = 3, share = 0.5, late = true, who = "n1", error = "gone", "probe failed");
    });
    assert_eq!(
        written,
        [concat!(
            r#"{"level":"error","ts":"2024-02-29T12:00:00Z","logger":"dwd.cluster-controller","msg":"probe failed","#,
            r#""error":"gone","candidates":3,"share":0.5,"late":true,"who":"n1"}"#
        )]
    );
}

#[test]
fn an_error_carries_its_causes() {
    let cause = "x".parse::<i32>().expect_err("no number");
    let failure = Outer(cause);
    let failure: &(dyn std::error::Error + 'static) = &failure;
    let written = lines(
        ZapOptions::default(),
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
    let written = lines(ZapOptions::default(), || {
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
    let written = lines(level(Level::Error), || {
        let _shoot = tracing::debug_span!(target: "prober", "shoot", namespace = "a").entered();
        error!(target: "prober", "failed");
    });
    assert!(
        written[0].ends_with(r#""msg":"failed","namespace":"a"}"#),
        "{written:?}"
    );
}

#[test]
fn values_cannot_break_a_line_or_its_keys() {
    let written = lines(
        ZapOptions::default(),
        || info!(target: "dwd", level = 2, ts = "x", bad = f64::NAN, "two\n\"lines\"\u{7}"),
    );
    assert_eq!(written.len(), 1);
    let parsed: serde_json::Value = serde_json::from_str(&written[0]).expect("JSON");
    assert_eq!(parsed["msg"], "two\n\"lines\"\u{7}");
    assert_eq!(
        (
            &parsed["level"],
            &parsed["fields.level"],
            &parsed["fields.ts"]
        ),
        (&"info".into(), &2.into(), &"x".into())
    );
    assert_eq!(parsed["bad"], "NaN");
}

#[test]
fn each_level_shows_what_is_at_least_as_severe() {
    let shown = |options| {
        let written = lines(options, || {
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
    assert_eq!(shown(level(Level::Panic)), "");
    assert_eq!(shown(level(Level::Error)), "error");
    assert_eq!(shown(level(Level::Info)), "error warn info");
    assert_eq!(shown(level(Level::DEBUG)), "error warn info debug");
    assert_eq!(
        shown(level(Level::Verbose(2))),
        "error warn info debug Level(-2)"
    );
}

#[test]
fn answers_that_the_client_could_not_read_are_never_quoted() {
    let written = lines(
        ZapOptions::default(),
        || warn!(target: "kube_client::client", "token: secret, cannot be parsed"),
    );
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn loggers_are_named_after_the_agent() {
    let written = lines(ZapOptions::default(), || {
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
    let written = lines(level(Level::Verbose(9)), || {
        info!(target: "hyper::client", authorization = "secret", "headers");
        debug!(target: "kube_client", "details");
        warn!(target: "kube_runtime::watcher", "broken");
        error!(target: "dwdx", "worse");
    });
    assert_eq!(written.len(), 2);
}

#[test]
fn console_lines_are_columns_with_the_fields_at_the_end() {
    let options = ZapOptions {
        devel: true,
        time_encoding: TimeEncoding::Iso8601,
        ..ZapOptions::default()
    };
    let written = lines(options, || {
        info!(target: "prober", "it's\nfine");
        error!(target: "prober", error = "gone", n = 1, "failed");
    });
    assert_eq!(
        written[0],
        "2024-02-29T12:00:00.001Z\tINFO\tdwd.cluster-controller\tit's\\nfine"
    );
    assert_eq!(
        written[1],
        "2024-02-29T12:00:00.001Z\tERROR\tdwd.cluster-controller\tfailed\t{\"error\":\"gone\",\"n\":1}"
    );
}

#[test]
fn times_are_written_in_the_encoding_asked_for() {
    let time = |time_encoding| {
        let written = lines(
            ZapOptions {
                time_encoding,
                ..ZapOptions::default()
            },
            || info!(target: "dwd", ""),
        );
        serde_json::from_str::<serde_json::Value>(&written[0]).expect("JSON")["ts"].to_string()
    };
    assert_eq!(time(TimeEncoding::Rfc3339), "\"2024-02-29T12:00:00Z\"");
    assert_eq!(
        time(TimeEncoding::Rfc3339Nano),
        "\"2024-02-29T12:00:00.0015Z\""
    );
    assert_eq!(time(TimeEncoding::Iso8601), "\"2024-02-29T12:00:00.001Z\"");
    assert_eq!(time(TimeEncoding::Epoch), "1709208000.0015");
    assert_eq!(time(TimeEncoding::Millis), "1709208000001.5");
    assert_eq!(time(TimeEncoding::Nanos), "1709208000001500000");
}

#[test]
fn a_storm_of_equal_lines_is_thinned_unless_a_developer_looks() {
    let storm = |options| {
        lines(options, || {
            for n in 0..1000 {
                info!(target: "dwd", n, "again");
            }
        })
        .len()
    };
    assert_eq!(storm(ZapOptions::default()), 109);
    assert_eq!(storm(level(Level::Info)), 109);
    assert_eq!(storm(level(Level::Verbose(2))), 1000);
    assert_eq!(
        storm(ZapOptions {
            devel: true,
            ..ZapOptions::default()
        }),
        1000
    );
}
