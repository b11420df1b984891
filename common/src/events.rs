//! Events (core/v1): what people read with `kubectl describe` and `kubectl get events`.
//!
//! ```text
//! anyone -> Events (bounded; full: lost, counted) -> Recorder (repetitions: nothing) -> POST -> API server
//! ```
//!
//! They are a courtesy: sending one never waits, never fails and never holds up anything; the
//! [`Recorder`] works beside the agent and retries twice. core/v1 and not events.k8s.io, because
//! that is what Gardener's role grants.

mod recorder;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rustix::system::uname;
use tokio::sync::mpsc;

pub use self::recorder::Recorder;

/// Events that may wait to be written, one after the other: two of each shoot of a large seed
/// (2,000), which an outage of all brings at once. They take 2 MB then.
const QUEUE: usize = 4096;

/// Takes Events. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Events {
    queue: Option<mpsc::Sender<Note>>,
    lost: Counter,
}

#[derive(Clone, Debug)]
struct Note {
    about: ObjectReference,
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

    /// Registers the counter of lost Events.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Events that were not written, because too many waited or the API server did not take them";
        registry.register("dwd_events_lost", help, self.lost.clone());
    }

    fn queue() -> (Self, mpsc::Receiver<Note>) {
        let (queue, notes) = mpsc::channel(QUEUE);
        let events = Self {
            queue: Some(queue),
            lost: Counter::default(),
        };
        (events, notes)
    }

    /// Reports a success.
    pub fn normal(&self, about: &ObjectReference, reason: &'static str, message: String) {
        self.send(about, "Normal", reason, message);
    }

    /// Reports something that needs attention.
    pub fn warning(&self, about: &ObjectReference, reason: &'static str, message: String) {
        self.send(about, "Warning", reason, message);
    }

    fn send(
        &self,
        about: &ObjectReference,
        severity: &'static str,
        reason: &'static str,
        message: String,
    ) {
        let Some(queue) = &self.queue else { return };
        let note = Note {
            about: about.clone(),
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

    /// Number of Events lost so far: because too many waited, or because the API server did not take
    /// them.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }
}

/// Reference of an Event about a namespace.
pub fn namespace_reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Namespace".to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

/// Reference of an Event about a pod.
pub fn pod_reference(namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// The name of this host: in a pod, the pod's.
pub(crate) fn host() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| uname().nodename().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_too_many_wait_the_newest_are_lost_and_counted() {
        let (events, mut notes) = Events::queue();
        let nobody = Events::none();
        for number in 0..QUEUE + 3 {
            for events in [&events, &nobody] {
                events.normal(&ObjectReference::default(), "Test", number.to_string());
            }
        }
        assert_eq!([events.lost(), nobody.lost()], [3, 0]);
        assert_eq!(notes.try_recv().unwrap().message, "0");
    }
}
