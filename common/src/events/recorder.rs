//! Writes Events to the API server, those that repeat as one Event with a count, as client-go's
//! recorder does.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Events, Note, host};

/// What Events are from.
const COMPONENT: &str = "dependency-watchdog";
const KNOWN: usize = 512;
/// After this time without an answer an attempt is given up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts to write an Event, and the pause between them.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// How long the end of the process may wait for Events that are still to be written; Gardener
/// grants 5 s for all (rule 85).
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
    /// How many of the lost ones the log has.
    said: u64,
    known: Known,
    /// Whether Events may be written in other namespaces than self_reference's; none while that is
    /// not known.
    everywhere: Option<bool>,
}

impl Recorder {
    /// A recorder, and what it takes Events from. Events about objects in namespaces where this
    /// process may not write any are written about `self_reference`, and name the object.
    pub fn new(client: Client, self_reference: ObjectReference) -> (Events, Self) {
        let (events, notes) = Events::queue();
        let (lost, known) = (events.lost.clone(), Known::default());
        (
            events,
            Self {
                client,
                host: host(),
                self_reference,
                notes,
                lost,
                said: 0,
                known,
                everywhere: None,
            },
        )
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
            if self.notes.is_empty() {
                self.report_dropped();
            }
        }
        self.notes.close();
        while let Some(note) = self.notes.recv().await {
            self.record(note).await;
        }
        self.report_dropped();
    }

    fn report_dropped(&mut self) {
        let lost = self.lost.get();
        if lost > self.said {
            tracing::warn!(
                count = lost - self.said,
                "Events were not written, because too many waited"
            );
            self.said = lost;
        }
    }

    async fn record(&mut self, mut note: Note) {
        if note.about.namespace != self.self_reference.namespace
            && !self.may_write_everywhere().await
        {
            note.message = format!("{}: {}", named(&note.about), note.message);
            note.about = self.self_reference.clone();
        }
        shorten(&mut note.message, MAX_MESSAGE);
        for attempt in 1.. {
            let error = match timeout(REQUEST_TIMEOUT, self.write(&note)).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) if attempt < ATTEMPTS => continue,
                Err(elapsed) => return self.lose(&note, &elapsed),
            };
            let refused = matches!(&error, kube::Error::Api(status) if status.code < 500 && status.code != 429);
            if refused || attempt >= ATTEMPTS {
                return self.lose(&note, &error);
            }
            sleep(PAUSE).await;
        }
    }

    fn lose(&mut self, note: &Note, error: &(dyn std::error::Error + 'static)) {
        self.lost.inc();
        self.said += 1;
        tracing::warn!(
            reason = note.reason,
            event = note.message,
            error,
            "Event could not be written"
        );
    }

    async fn write(&mut self, note: &Note) -> Result<(), kube::Error> {
        let namespace = note.about.namespace.as_deref().unwrap_or("default");
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Event"));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        let (mut first, mut count) = (note.at, 1);
        if let Some(written) = self.known.find(note) {
            (first, count) = (written.first, written.count.saturating_add(1));
            let patch = json!({"count": count, "lastTimestamp": stamp(note.at)});
            match api
                .patch(
                    &written.name,
                    &PatchParams::default(),
                    &Patch::Merge(&patch),
                )
                .await
            {
                Ok(_) => {
                    written.count = count;
                    return Ok(());
                }
                // The API server forgets Events after an hour.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let mut name = note.about.name.clone().unwrap_or_default();
        shorten(&mut name, MAX_NAME);
        let name = format!(
            "{}.{:x}",
            name.trim_end_matches(['.', '-']),
            note.at.timestamp_nanos_opt().unwrap_or_default()
        );
        let event = DynamicObject::new(&name, &kind)
            .within(namespace)
            .data(json!({
                "involvedObject": note.about,
                "type": note.severity,
                "reason": note.reason,
                "message": note.message,
                "source": {"component": COMPONENT, "host": self.host},
                "reportingComponent": COMPONENT,
                "reportingInstance": self.host,
                "firstTimestamp": stamp(first),
                "lastTimestamp": stamp(note.at),
                "count": count,
            }));
        match api.create(&PostParams::default(), &event).await {
            Ok(_) => {}
            // An earlier attempt succeeded, and its answer got lost.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
        self.known.keep(Written {
            note: note.clone(),
            name,
            first,
            count,
        });
        Ok(())
    }

    /// Asks once, so that no request is ever made that is known to be forbidden.
    async fn may_write_everywhere(&mut self) -> bool {
        if let Some(known) = self.everywhere {
            return known;
        }
        let review = json!({"spec": {"resourceAttributes": {"verb": "create", "resource": "events", "namespace": ""}}});
        let Ok(review) = serde_json::from_value::<SelfSubjectAccessReview>(review) else {
            return false;
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        match timeout(REQUEST_TIMEOUT, api.create(&PostParams::default(), &review)).await {
            Ok(Ok(review)) => *self
                .everywhere
                .insert(review.status.is_some_and(|status| status.allowed)),
            // Not known: self_reference is always right.
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

struct Written {
    note: Note,
    name: String,
    first: DateTime<Utc>,
    count: i32,
}

/// The Events that were written last, the latest at the end.
#[derive(Default)]
struct Known(VecDeque<Written>);

impl Known {
    /// The Event that `note` repeats; it counts as the latest from now on.
    fn find(&mut self, note: &Note) -> Option<&mut Written> {
        let index = self
            .0
            .iter()
            .position(|written| same(&written.note, note))?;
        let written = self.0.remove(index)?;
        self.0.push_back(written);
        self.0.back_mut()
    }

    fn keep(&mut self, written: Written) {
        self.0.retain(|old| !same(&old.note, &written.note));
        if self.0.len() == KNOWN {
            self.0.pop_front();
        }
        self.0.push_back(written);
    }
}

/// Whether two Events say the same of the same object, whatever its version.
fn same(one: &Note, other: &Note) -> bool {
    let who = |note: &Note| {
        (
            note.about.uid.clone(),
            note.about.kind.clone(),
            note.about.namespace.clone(),
            note.about.name.clone(),
        )
    };
    (one.severity, one.reason, &one.message) == (other.severity, other.reason, &other.message)
        && who(one) == who(other)
}

/// An object, for a person: kind, namespace and name.
fn named(about: &ObjectReference) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    match &about.namespace {
        Some(namespace) => format!("{} {namespace}/{}", part(&about.kind), part(&about.name)),
        None => format!("{} {}", part(&about.kind), part(&about.name)),
    }
}

fn shorten(text: &mut String, longest: usize) {
    text.truncate(text.floor_char_boundary(longest));
}

/// Kubernetes' Time.
fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(message: &str) -> Note {
        let about = ObjectReference {
            name: Some("lock".into()),
            ..ObjectReference::default()
        };
        Note {
            about,
            severity: "Normal",
            reason: "Test",
            message: message.into(),
            at: Utc::now(),
        }
    }

    fn written(message: &str) -> Written {
        Written {
            note: note(message),
            name: message.into(),
            first: Utc::now(),
            count: 1,
        }
    }

    #[test]
    fn an_event_repeats_another_when_all_but_time_and_version_are_the_same() {
        let (one, mut other) = (note("a"), note("a"));
        other.at += chrono::TimeDelta::seconds(1);
        other.about.resource_version = Some("7".into());
        assert!(same(&one, &other));
        assert!(!same(&one, &note("b")));
        assert!(!same(
            &one,
            &Note {
                severity: "Warning",
                ..one.clone()
            }
        ));
        assert!(!same(
            &one,
            &Note {
                reason: "Other",
                ..one.clone()
            }
        ));
        other.about.uid = Some("u".into());
        assert!(!same(&one, &other));
    }

    #[test]
    fn of_too_many_different_events_the_one_not_seen_for_longest_is_forgotten() {
        let mut known = Known::default();
        for number in 0..KNOWN {
            known.keep(written(&number.to_string()));
        }
        assert!(known.find(&note("0")).is_some());
        known.keep(written("one more"));
        assert_eq!(known.0.len(), KNOWN);
        assert!(known.find(&note("0")).is_some());
        assert!(known.find(&note("1")).is_none());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let mut text = "aää".to_owned();
        shorten(&mut text, 2);
        assert_eq!(text, "a");
    }
}
