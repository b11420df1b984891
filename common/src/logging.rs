//! Log lines with zap's keys, as the Go original writes them (rules 8 and 9), from `tracing`'s
//! events and spans.
//!
//! ```text
//! event + its spans -> ZapLayer (by level, at most 100 equal ones a second) -> bounded queue -> a thread -> stderr
//! ```
//!
//! A line is a JSON object of level, ts, logger, msg and then the fields of the spans around the
//! event and its own (the inner one wins). The logger is `dwd` for what both agents share and
//! `dwd.cluster-controller` or `dwd.endpoints-controller` for an agent's own; an event whose target
//! begins with `dwd` names its logger itself. Of other crates only warnings and errors are written,
//! at every level: their details are not ours to explain, and might hold what no log should.

mod fields;
mod options;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, SecondsFormat, Utc};
use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::{Event, Metadata, Subscriber, span};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use fields::Fields;
pub use fields::with_causes;
pub use options::ZapOptions;
pub use tracing::level_filters::LevelFilter;

/// Lines that wait for stderr, a burst of all shoots; more are dropped.
const QUEUE: usize = 10_000;
/// Equal lines written in one second, as zap's production setting (rule 9); more are dropped.
const MAX_EQUAL: u32 = 100;

/// Lines dropped because they were equal to others.
static EQUAL: AtomicU64 = AtomicU64::new(0);
/// Lines dropped because too many waited.
static UNREAD: OnceLock<ErrorCounter> = OnceLock::new();

/// Lines that were not written since the start of this process.
pub(crate) fn dropped_lines() -> u64 {
    let unread = UNREAD.get().map_or(0, ErrorCounter::dropped_lines);
    EQUAL.load(Ordering::Relaxed) + unread as u64
}

/// Starts to write this process's log to stderr, until the guard is dropped. Only the first call of a
/// process has an effect on where lines go.
pub(crate) fn start(options: &ZapOptions) -> WorkerGuard {
    let (lines, guard) = queue(std::io::stderr());
    let _ = UNREAD.set(lines.error_counter());
    let write = move |line: Vec<u8>| {
        let _ = lines.clone().write_all(&line);
    };
    let layer = ZapLayer::new(options.level, write, Utc::now);
    // An error says that there is a subscriber already: it then keeps the lines.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer));
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

/// A `tracing` layer that writes lines into a sink. It gets finished lines, newline included, and
/// must not block.
pub struct ZapLayer<S> {
    levels: Targets,
    equal: Mutex<EqualLines>,
    sink: S,
    now: fn() -> DateTime<Utc>,
}

impl<S: Fn(Vec<u8>) + Send + Sync> ZapLayer<S> {
    /// A layer with a clock of its own; lines of at least this level go to `sink`.
    pub fn new(level: LevelFilter, sink: S, now: fn() -> DateTime<Utc>) -> Self {
        let ours = ["dwd", "common", "prober", "weeder", "dependency_watchdog"];
        let levels = Targets::new()
            .with_targets(ours.map(|target| (target, level)))
            // Its warnings quote answers that it does not understand, and with them what a Secret
            // holds.
            .with_target("kube_client::client", level.min(LevelFilter::ERROR))
            .with_default(level.min(LevelFilter::WARN));
        Self {
            levels,
            equal: Mutex::default(),
            sink,
            now,
        }
    }
}

/// Lines of the current second by the place that writes them.
#[derive(Default)]
struct EqualLines {
    second: i64,
    written: HashMap<Identifier, u32>,
}

impl EqualLines {
    fn admit(&mut self, second: i64, place: Identifier) -> bool {
        if second != self.second {
            self.second = second;
            self.written.clear();
        }
        let written = self.written.entry(place).or_default();
        *written += 1;
        *written <= MAX_EQUAL
    }
}

/// The logger of our own code; `None` for another crate's target.
fn logger(target: &str) -> Option<&str> {
    if target.split('.').next() == Some("dwd") {
        return Some(target);
    }
    match target.split("::").next() {
        Some("prober") => Some("dwd.cluster-controller"),
        Some("weeder") => Some("dwd.endpoints-controller"),
        Some("common" | "dependency_watchdog") => Some("dwd"),
        _ => None,
    }
}

impl<S, R> Layer<R> for ZapLayer<S>
where
    S: Fn(Vec<u8>) + Send + Sync + 'static,
    R: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    /// Spans of our own code always count: their fields belong to the lines within, whatever their
    /// level.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, R>) -> bool {
        if metadata.is_span() {
            logger(metadata.target()).is_some()
        } else {
            self.levels
                .would_enable(metadata.target(), metadata.level())
        }
    }

    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, R>,
    ) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, R>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, R>) {
        let (now, metadata) = ((self.now)(), event.metadata());
        if !self
            .equal
            .lock()
            .admit(now.timestamp(), metadata.callsite())
        {
            EQUAL.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let target = metadata.target();
        let foreign = || format!("dwd.{}", target.split("::").next().unwrap_or(target)).into();
        let logger = logger(target).map_or_else(foreign, Cow::Borrowed);
        let mut line = Fields::default();
        line.set("level", metadata.level().as_str().to_ascii_lowercase());
        line.set("ts", now.to_rfc3339_opts(SecondsFormat::Secs, true));
        line.set("logger", logger);
        line.set("msg", "");
        let spans = context.event_scope(event).into_iter();
        for span in spans.flat_map(|scope| scope.from_root()) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.extend(fields);
            }
        }
        event.record(&mut line);
        (self.sink)(line.encode());
    }
}

#[cfg(test)]
mod tests;
