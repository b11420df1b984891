//! Events (core/v1): what people read with `kubectl get events`.
//!
//! ```text
//! anyone -> Events (bounded; full: lost, counted) -> a task (repetitions: nothing) -> one POST -> API server
//! ```
//!
//! They are a courtesy: sending one never waits, never fails and never holds up anything, and one
//! that the API server does not take is lost. All are about the agent's own Lease, because Gardener's
//! role grants to write them beside it alone; their messages name the shoot. core/v1 and not
//! events.k8s.io for the same reason.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rustix::system::uname;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::logging::with_causes;

/// The source of the Events.
const COMPONENT: &str = "dependency-watchdog";
/// Events that may wait to be written, one after the other: two of each shoot of a large seed
/// (2,000), which an outage of all brings at once. They take 2 MB then.
const QUEUE: usize = 4096;
/// An Event is not repeated for this long, the aggregation window of client-go's recorder.
const QUIET: Duration = Duration::from_secs(600);
/// Limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest message, in bytes: the API's limit.
const MAX_MESSAGE: usize = 1024;

/// Takes Events. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Events {
    queue: Option<mpsc::Sender<Note>>,
    lost: Counter,
}

#[derive(Debug)]
struct Note {
    /// What it is about; empty for the agent itself.
    about: String,
    /// Severity: the `type` of an Event.
    severity: &'static str,
    reason: &'static str,
    message: String,
    at: Timestamp,
}

impl Events {
    pub fn none() -> Self {
        Self::default()
    }

    /// Writes Events about a Lease, as long as the task is kept.
    pub fn start(client: Client, namespace: &str, lease: &str) -> (Self, AbortOnDropHandle<()>) {
        let (queue, mut notes) = mpsc::channel(QUEUE);
        let events = Self {
            queue: Some(queue),
            lost: Counter::default(),
        };
        let mut recorder = Recorder {
            api: Api::namespaced(client, namespace),
            lease: lease.to_owned(),
            lost: events.lost.clone(),
            said: HashMap::new(),
        };
        let task = tokio::spawn(async move {
            while let Some(note) = notes.recv().await {
                recorder.record(note).await;
            }
        });
        (events, AbortOnDropHandle::new(task))
    }

    /// Registers the counter of lost Events.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Events that were not written, because too many waited or the API server did not take them";
        registry.register("dwd_events_lost", help, self.lost.clone());
    }

    /// Reports a success. `about` names a shoot, or one of its objects; it is empty for the agent
    /// itself.
    pub fn normal(&self, about: &str, reason: &'static str, message: &str) {
        self.send(about, "Normal", reason, message);
    }

    /// Reports something that needs attention.
    pub fn warning(&self, about: &str, reason: &'static str, message: &str) {
        self.send(about, "Warning", reason, message);
    }

    fn send(&self, about: &str, severity: &'static str, reason: &'static str, message: &str) {
        let Some(queue) = &self.queue else { return };
        let mut message = match about {
            "" => message.to_owned(),
            about => format!("{about}: {message}"),
        };
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        let note = Note {
            about: about.to_owned(),
            severity,
            reason,
            message,
            at: Timestamp::now(),
        };
        if queue.try_send(note).is_err() {
            self.lost.inc();
            tracing::warn!(reason, "Event is not written, because too many wait");
        }
    }
}

struct Recorder {
    api: Api<Event>,
    lease: String,
    lost: Counter,
    /// The last message about each thing within [`QUIET`], and when it was written.
    said: HashMap<String, (String, Instant)>,
}

impl Recorder {
    /// Writes an Event unless it says what was said last of the same thing. An outage after a
    /// recovery is no repetition, however soon it comes.
    async fn record(&mut self, note: Note) {
        let now = Instant::now();
        self.said.retain(|_, (_, at)| now < *at + QUIET);
        let last = self.said.get(&note.about);
        if last.is_some_and(|(message, _)| *message == note.message) {
            return;
        }
        let (params, event) = (PostParams::default(), self.event(&note));
        let written = timeout(REQUEST_TIMEOUT, self.api.create(&params, &event)).await;
        match written.unwrap_or_else(|late| Err(kube::Error::Service(late.into()))) {
            Ok(_) => {
                self.said.insert(note.about, (note.message, now));
            }
            Err(error) => {
                self.lost.inc();
                let (reason, event) = (note.reason, note.message);
                let error = with_causes(&error);
                tracing::warn!(reason, event, error, "Event could not be written");
            }
        }
    }

    fn event(&self, note: &Note) -> Event {
        let at = note.at;
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", self.lease, at.as_nanosecond())),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some("coordination.k8s.io/v1".to_owned()),
                kind: Some("Lease".to_owned()),
                namespace: self.api.namespace().map(str::to_owned),
                name: Some(self.lease.clone()),
                ..ObjectReference::default()
            },
            source: Some(EventSource {
                component: Some(COMPONENT.to_owned()),
                host: Some(host()),
            }),
            type_: Some(note.severity.to_owned()),
            reason: Some(note.reason.to_owned()),
            message: Some(note.message.clone()),
            first_timestamp: Some(Time(at)),
            last_timestamp: Some(Time(at)),
            count: Some(1),
            ..Event::default()
        }
    }
}

/// The name of this host: in a pod, the pod's.
pub(crate) fn host() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| uname().nodename().to_string_lossy().into_owned())
}
