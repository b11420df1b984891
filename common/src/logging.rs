//! The log: one JSON object a line on stderr (rules 8 and 9).
//!
//! ```text
//! event -> levels -> JSON -> bounded queue -> a thread -> stderr
//! ```
//!
//! Its keys are timestamp, level, message, the event's own fields, target and, in the task of a
//! shoot, span with the shoot's namespace.

mod options;

use std::error::Error;
use std::io::Write;
use std::sync::OnceLock;

use kube::core::Status;
use tracing::Subscriber;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

pub use options::ZapOptions;
pub use tracing::level_filters::LevelFilter;

use crate::status_message;
use crate::transport::causes;

/// Lines that wait for stderr, a burst of all shoots; more are dropped.
const QUEUE: usize = 10_000;

/// Lines dropped because too many waited.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Lines that were not written since the start of this process.
pub(crate) fn dropped_lines() -> u64 {
    DROPPED.get().map_or(0, ErrorCounter::dropped_lines) as u64
}

/// Starts to write this process's log to stderr, until the guard is dropped. Only the first call of a
/// process has an effect on where lines go.
pub(crate) fn start(options: &ZapOptions) -> WorkerGuard {
    let (lines, guard) = queue(std::io::stderr());
    let _ = DROPPED.set(lines.error_counter());
    let log = tracing_subscriber::registry().with(layer(options.level, lines));
    // An error says that there is a subscriber already: it then keeps the lines.
    let _ = tracing::subscriber::set_global_default(log);
    let ignored = options.ignored();
    if !ignored.is_empty() {
        tracing::info!(
            ignored,
            "flags that are accepted for compatibility are ignored"
        );
    }
    guard
}

/// A writer that never waits for its target, which a thread of its own writes to.
fn queue(target: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUE)
        .thread_name("log-writer")
        .finish(target)
}

/// A layer that writes lines of at least this level, each by one call of the writer.
pub fn layer<S, W>(level: LevelFilter, writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(writer)
        .with_filter(levels(level))
}

/// The level of our own code; other crates only warn, at every level: their details are not ours to
/// explain, and might hold what no log should.
pub fn levels(level: LevelFilter) -> Targets {
    let ours = ["common", "prober", "weeder"];
    Targets::new()
        .with_targets(ours.map(|target| (target, level)))
        // Its warnings quote answers that it does not understand, and with them what a Secret
        // holds.
        .with_target("kube_client::client", level.min(LevelFilter::ERROR))
        .with_default(level.min(LevelFilter::WARN))
}

/// An error with its causes, in one line; a cause that the text has already, as many errors end
/// with that of theirs, is not repeated. Of an API server's refusal its message is shown: kube's
/// text goes on with the whole Status, as Rust prints it.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        match cause.downcast_ref::<Box<Status>>() {
            Some(status) => {
                let message = status_message::message(status);
                text = text.replace(&kube::Error::Api(status.clone()).to_string(), &message);
            }
            None if !text.contains(&cause.to_string()) => text = format!("{text}: {cause}"),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests;
