use super::*;
use chrono::TimeZone;
use kube::core::Status;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use tracing::{error, info, info_span, warn};

fn noon() -> DateTime<Utc> {
    let noon = Utc.with_ymd_and_hms(2024, 2, 29, 12, 0, 0).single();
    noon.expect("a time") + chrono::TimeDelta::nanoseconds(1_500_000)
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

/// One string field of each line.
fn fields(lines: &[String], key: &str) -> Vec<String> {
    let field = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line[key].as_str().unwrap_or_default().to_owned()
    };
    lines.iter().map(field).collect()
}

#[test]
fn a_line_has_zaps_keys_in_zaps_order() {
    let written = lines(LevelFilter::DEBUG, || {
        error!(target: "prober::engine", candidates = 3, share = 0.5, late = true, who = "n1", error = "gone", "probe failed");
    });
    let line = concat!(
        r#"{"level":"error","ts":"2024-02-29T12:00:00Z","logger":"dwd.cluster-controller","msg":"probe failed","#,
        r#""candidates":3,"share":0.5,"late":true,"who":"n1","error":"gone"}"#
    );
    assert_eq!(written, [line]);
}

#[test]
fn an_error_is_shown_with_its_causes_and_a_refusal_by_its_message() {
    let refused = |message: &str| {
        let status = Status::failure(message, "Forbidden").with_code(403);
        anyhow::Error::new(kube::Error::Api(Box::new(status)))
    };
    let message = "leases is forbidden: User \"operator\" cannot get resource \"leases\"";
    let number = "x".parse::<i32>().expect_err("no number");
    for (error, said) in [
        (
            anyhow::Error::new(number).context("cannot probe"),
            "cannot probe: invalid digit found in string",
        ),
        (refused(message), message),
        (refused(""), "403 Forbidden"),
        (
            refused(message).context("the seed cannot be read"),
            &format!("the seed cannot be read: {message}"),
        ),
    ] {
        assert_eq!(with_causes(error.as_ref()), said);
        let failed = || error!(target: "dwd", error = &*error, "failed");
        let written = lines(LevelFilter::DEBUG, failed);
        assert_eq!(fields(&written, "error"), [said]);
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
        let fields = format!(r#","namespace":"shoot--a--b","step":{step},"later":"known"}}"#);
        assert!(line.ends_with(&fields), "{line}");
    }
}

#[test]
fn loggers_are_named_after_the_agent_and_other_crates_only_warn() {
    let written = lines(LevelFilter::TRACE, || {
        info!(target: "prober::core::lease", "");
        info!(target: "weeder", "");
        info!(target: "common::process", "");
        info!(target: "dwd.cluster-controller.reload", "");
        warn!(target: "kube_runtime::watcher", "");
        error!(target: "dwdx", "");
        info!(target: "hyper::client", authorization = "secret", "headers");
    });
    let loggers = [
        "dwd.cluster-controller",
        "dwd.endpoints-controller",
        "dwd",
        "dwd.cluster-controller.reload",
        "dwd.kube_runtime",
        "dwd.dwdx",
    ];
    assert_eq!(fields(&written, "logger"), loggers);
}

#[test]
fn answers_that_the_client_could_not_read_are_never_quoted() {
    let written = lines(
        LevelFilter::TRACE,
        || warn!(target: "kube_client::client", "token: secret, cannot be parsed"),
    );
    assert_eq!(written, [""; 0]);
}

#[test]
fn of_equal_lines_a_hundred_a_second_are_written_and_the_others_counted() {
    let before = dropped_lines();
    let written = lines(LevelFilter::DEBUG, || {
        (0..1000).for_each(|n| info!(target: "dwd", n, "again"));
        info!(target: "dwd", "another");
    });
    assert_eq!(
        (written.len(), &*fields(&written, "msg")[100]),
        (101, "another")
    );
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
