//! Log lines as zap writes them for the Go original (rules 8 and 9), from `tracing`'s events and
//! spans.
//!
//! ```text
//! event + its spans -> ZapLayer -> Sampler -> encode -> sink -> (bounded queue -> a thread) -> stderr
//! ```
//!
//! A line holds level, ts, logger, msg, error and then the fields of the event and of the spans
//! around it (the inner one wins). The logger is `dwd` for what both agents share and
//! `dwd.cluster-controller` or `dwd.endpoints-controller` for an agent's own; an event whose target
//! begins with `dwd` names its logger itself. Of other crates only warnings and errors are written,
//! at every level: their details are not ours to explain, and might hold what no log should.

mod fields;
mod options;
mod queue;

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use go_compat::zap::{Line, Sampler};
use parking_lot::Mutex;
use tracing::{Event, Metadata, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use fields::EventFields;
pub use fields::with_causes;
pub use go_compat::zap::Level;
pub use options::ZapOptions;
use queue::Logging;

/// Starts to write this process's log to stderr. Only the first call of a process has an effect on
/// where lines go.
///
/// # Errors
/// When the thread that writes cannot be started.
pub(crate) fn init(options: &ZapOptions) -> std::io::Result<Logging> {
    let logging = Logging::start(std::io::stderr())?;
    let lines = logging.clone();
    let layer = ZapLayer::new(options.clone(), move |line| lines.write(&line), Utc::now);
    let subscriber = tracing_subscriber::registry().with(layer);
    // An error says that there is a subscriber already: it then keeps the lines.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(logging)
}

/// A `tracing` layer that writes zap's lines into a sink. It gets finished lines, newline included,
/// and must not block.
pub struct ZapLayer<S> {
    options: ZapOptions,
    sampler: Option<Mutex<Sampler>>,
    sink: S,
    now: fn() -> DateTime<Utc>,
}

impl<S: Fn(Vec<u8>) + Send + Sync> ZapLayer<S> {
    /// A layer with a clock of its own; lines go to `sink`.
    pub fn new(options: ZapOptions, sink: S, now: fn() -> DateTime<Utc>) -> Self {
        let sampler = options.samples().then(|| Mutex::new(Sampler::default()));
        Self {
            options,
            sampler,
            sink,
            now,
        }
    }

    /// Whether events like this are written at all.
    fn writes(&self, metadata: &Metadata<'_>) -> bool {
        let least = match self.options.level {
            Level::Panic => return false,
            Level::Error => tracing::Level::ERROR,
            // Its warnings quote answers that it does not understand, and with them what a Secret
            // holds.
            _ if metadata.target().starts_with("kube_client::client") => tracing::Level::ERROR,
            // The least severe of another crate is a warning.
            _ if logger(metadata.target()).is_none() => tracing::Level::WARN,
            Level::Info => tracing::Level::INFO,
            Level::Verbose(1) => tracing::Level::DEBUG,
            Level::Verbose(_) => tracing::Level::TRACE,
        };
        *metadata.level() <= least
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

/// zap's names; it has none for more detail than debug and writes the number.
fn level_name(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "error",
        tracing::Level::WARN => "warn",
        tracing::Level::INFO => "info",
        tracing::Level::DEBUG => "debug",
        tracing::Level::TRACE => "Level(-2)",
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
            self.writes(metadata)
        }
    }

    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, R>,
    ) {
        if let Some(span) = context.span(id) {
            let mut fields = EventFields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, R>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<EventFields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, R>) {
        let now = (self.now)();
        let mut fields = EventFields::default();
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(inherited) = span.extensions().get::<EventFields>() {
                fields.extend(inherited);
            }
        }
        event.record(&mut fields);
        let metadata = event.metadata();
        if let Some(sampler) = &self.sampler
            && !sampler
                .lock()
                .admits(now.timestamp(), (metadata.level(), &fields.message))
        {
            return;
        }
        let target = metadata.target();
        let foreign = || format!("dwd.{}", target.split("::").next().unwrap_or(target)).into();
        let logger = logger(target).map_or_else(foreign, Cow::Borrowed);
        let level = level_name(*metadata.level());
        let line = Line {
            level,
            time: now,
            logger: &logger,
            message: &fields.message,
            fields: fields.iter().collect(),
        };
        (self.sink)(line.encode(self.options.effective_encoder(), self.options.time_encoding));
    }
}

#[cfg(test)]
mod tests;
