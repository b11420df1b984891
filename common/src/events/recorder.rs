//! Writes Events to the API server, and for a while none that says again what was said last of an
//! object.

use std::collections::VecDeque;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Events, Note, host};
use crate::access_review::{Right, allowed_everywhere};
use crate::api_failure::{ApiFailure, Retry};
use crate::logging::with_causes;

/// The source of the Events.
const COMPONENT: &str = "dependency-watchdog";
/// An Event is not repeated for this long, the aggregation window of client-go's recorder.
const QUIET: Duration = Duration::from_secs(600);
/// Objects whose last Event is remembered.
const REMEMBERED: usize = 512;
/// Limit of an attempt.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts to write an Event, and the pause between them.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Longest wait at the end of the process for Events that are still to be written; Gardener grants
/// 5 s for all (rule 85).
const DRAIN_LIMIT: Duration = Duration::from_millis(500);
/// The longest message, in bytes, and the longest name that leaves room for a time stamp: the API's
/// limits are 1024 and 253.
const MAX_MESSAGE: usize = 1024;
const MAX_NAME: usize = 253 - 17;

/// Writes the Events that [`Events`] takes.
pub struct Recorder {
    client: Client,
    host: String,
    self_reference: ObjectReference,
    notes: mpsc::Receiver<Note>,
    lost: Counter,
    written: WrittenEvents,
    /// True if Events may be written in other namespaces than self_reference's; `None` if that is
    /// not known.
    everywhere: Option<bool>,
}

impl Recorder {
    /// A recorder, and what it takes Events from. Events about objects in namespaces where this
    /// process may not write any are written about `self_reference`, and name the object.
    pub fn new(client: Client, self_reference: ObjectReference) -> (Events, Self) {
        let (events, notes) = Events::queue();
        let recorder = Self {
            client,
            host: host(),
            self_reference,
            notes,
            lost: events.lost.clone(),
            written: WrittenEvents::default(),
            everywhere: None,
        };
        (events, recorder)
    }

    /// Writes Events beside some work and ends with it, up to [`DRAIN_LIMIT`] later for those that
    /// still wait.
    pub async fn beside<T>(self, work: impl Future<Output = T>) -> T {
        let ended = CancellationToken::new();
        let writing = AbortOnDropHandle::new(tokio::spawn(self.write_all(ended.clone())));
        // This also drops the work: nothing of it goes on while its last Events are awaited.
        let result = work.await;
        ended.cancel();
        if timeout(DRAIN_LIMIT, writing).await.is_err() {
            tracing::debug!("not all Events could be written before the end");
        }
        result
    }

    /// Writes what comes until `ended`, and then what still waits.
    async fn write_all(mut self, ended: CancellationToken) {
        while let Some(Some(note)) = ended.run_until_cancelled(self.notes.recv()).await {
            self.record(note).await;
        }
        self.notes.close();
        while let Some(note) = self.notes.recv().await {
            self.record(note).await;
        }
    }

    async fn record(&mut self, mut note: Note) {
        if self.written.is_repeated_by(&note, Instant::now()) {
            return;
        }
        let said = note.clone();
        if note.about.namespace != self.self_reference.namespace
            && !self.may_write_everywhere().await
        {
            note.message = format!("{}: {}", describe(&note.about), note.message);
            note.about = self.self_reference.clone();
        }
        shorten(&mut note.message, MAX_MESSAGE);
        for attempt in 1.. {
            let written = timeout(REQUEST_TIMEOUT, self.write(&note)).await;
            let Err(error) = written.unwrap_or_else(|late| Err(kube::Error::Service(late.into())))
            else {
                return self.written.keep(said, Instant::now());
            };
            let refused = ApiFailure::from(&error).retry() == Retry::Never;
            if refused || attempt == ATTEMPTS {
                self.lost.inc();
                let (reason, event) = (note.reason, note.message);
                let error = with_causes(&error);
                tracing::warn!(reason, event, error, "Event could not be written");
                return;
            }
            sleep(PAUSE).await;
        }
    }

    async fn write(&self, note: &Note) -> Result<(), kube::Error> {
        let namespace = note.about.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        match api.create(&PostParams::default(), &self.event(note)).await {
            // An earlier attempt succeeded, and its answer got lost.
            Err(error) if ApiFailure::from(&error) == ApiFailure::Conflict => Ok(()),
            written => written.map(drop),
        }
    }

    fn event(&self, note: &Note) -> Event {
        let mut name = note.about.name.clone().unwrap_or_default();
        shorten(&mut name, MAX_NAME);
        let object = name.trim_end_matches(['.', '-']);
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{object}.{:x}", note.at.as_nanosecond())),
                ..ObjectMeta::default()
            },
            involved_object: note.about.clone(),
            type_: Some(note.severity.to_owned()),
            reason: Some(note.reason.to_owned()),
            message: Some(note.message.clone()),
            source: Some(EventSource {
                component: Some(COMPONENT.to_owned()),
                host: Some(self.host.clone()),
            }),
            reporting_component: Some(COMPONENT.to_owned()),
            reporting_instance: Some(self.host.clone()),
            first_timestamp: Some(Time(note.at)),
            last_timestamp: Some(Time(note.at)),
            count: Some(1),
            ..Event::default()
        }
    }

    /// Asks once, so that no request is ever made that is known to be forbidden.
    async fn may_write_everywhere(&mut self) -> bool {
        if let Some(known) = self.everywhere {
            return known;
        }
        // Not known: self_reference is always right.
        let allowed = allowed_everywhere(&self.client, &Right::core("create", "events")).await;
        self.everywhere = allowed;
        allowed.unwrap_or(false)
    }
}

/// The last Event about each object and the time of its writing, the latest at the end.
#[derive(Default)]
struct WrittenEvents(VecDeque<(Note, Instant)>);

impl WrittenEvents {
    /// True if `note` says what the last Event about its object said, less than [`QUIET`] ago. An
    /// outage after a recovery is no repetition, however soon it comes.
    fn is_repeated_by(&self, note: &Note, now: Instant) -> bool {
        let mut written = self.0.iter();
        written
            .find(|(last, _)| object(last) == object(note))
            .is_some_and(|(last, at)| {
                let said = (last.severity, last.reason, &last.message);
                said == (note.severity, note.reason, &note.message) && now < *at + QUIET
            })
    }

    fn keep(&mut self, note: Note, now: Instant) {
        self.0.retain(|(last, _)| object(last) != object(&note));
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((note, now));
    }
}

/// An object, whatever its version.
fn object(note: &Note) -> impl PartialEq {
    let about = &note.about;
    (&about.uid, &about.kind, &about.namespace, &about.name)
}

/// An object, for a person: kind, namespace and name.
fn describe(about: &ObjectReference) -> String {
    let [kind, name] = [&about.kind, &about.name].map(|part| part.as_deref().unwrap_or_default());
    match &about.namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn shorten(text: &mut String, longest: usize) {
    text.truncate(text.floor_char_boundary(longest));
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;

    fn note(name: &str, message: &str) -> Note {
        Note {
            about: ObjectReference {
                name: Some(name.into()),
                ..ObjectReference::default()
            },
            severity: "Normal",
            reason: "Test",
            message: message.into(),
            at: Timestamp::now(),
        }
    }

    #[test]
    fn an_event_repeats_the_last_one_about_its_object_for_ten_minutes() {
        let (mut events, now) = (WrittenEvents::default(), Instant::now());
        let late = |seconds| now + Duration::from_secs(seconds);
        events.keep(note("lock", "a"), now);
        let mut again = note("lock", "a");
        again.about.resource_version = Some("7".into());
        let repeated = [599, 600].map(|seconds| events.is_repeated_by(&again, late(seconds)));
        assert_eq!(repeated, [true, false]);
        let mut others = [
            note("lock", "b"),
            note("x", "a"),
            again.clone(),
            again.clone(),
            again.clone(),
        ];
        others[2].severity = "Warning";
        others[3].reason = "Other";
        others[4].about.uid = Some("u".into());
        for other in &others {
            assert!(!events.is_repeated_by(other, now), "{other:?}");
        }
        events.keep(note("lock", "b"), now);
        assert!(!events.is_repeated_by(&again, now));
    }

    #[test]
    fn of_too_many_objects_the_one_quiet_for_longest_is_forgotten() {
        let (mut events, now) = (WrittenEvents::default(), Instant::now());
        for number in (0..REMEMBERED).chain([0, REMEMBERED]) {
            events.keep(note(&number.to_string(), "a"), now);
        }
        assert_eq!(events.0.len(), REMEMBERED);
        let kept = ["0", "1"].map(|name| events.is_repeated_by(&note(name, "a"), now));
        assert_eq!(kept, [true, false]);
    }
}
