//! What the weeder shows of itself at `/statusz`: its open windows, and what it deleted last.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, SubsecRound, Utc};
use common::change::Key;
use common::status::{Status, ago, table};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::core::news::Event;
use crate::delete::Answer;

/// So many deletions are remembered: enough for what a recovery of one shoot deletes.
const REMEMBERED: usize = 50;

/// What the controller did lately. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Activity(watch::Sender<Recent>);

#[derive(Debug, Default)]
struct Recent {
    /// By namespace and Service.
    windows: BTreeMap<(String, String), Window>,
    /// The newest first.
    deletions: VecDeque<Deletion>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    pub namespace: String,
    /// Whose dependants are deleted when they crash-loop.
    pub service: String,
    pub cause: &'static str,
    pub since: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    pub at: DateTime<Utc>,
    pub namespace: String,
    pub pod: String,
    pub result: &'static str,
}

/// How the weeder is at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WeederStatus {
    pub windows: Vec<Window>,
    /// What was deleted last, the newest first.
    pub deletions: VecDeque<Deletion>,
    /// The config in force, defaults included.
    pub config: Value,
    /// Whether the config file as it is now is refused, so that an older one is in force.
    pub config_refused: bool,
}

impl Activity {
    pub fn window(&self, namespace: &str, service: &str, event: Event) {
        let (namespace, service) = (namespace.to_owned(), service.to_owned());
        let place = (namespace.clone(), service.clone());
        self.0.send_modify(|recent| match event {
            Event::Opened(cause) => {
                let since = Utc::now().trunc_subsecs(0);
                recent.windows.insert(place, Window { namespace, service, cause: cause.as_str(), since });
            }
            Event::Closed(_) => drop(recent.windows.remove(&place)),
        });
    }

    pub fn deletion(&self, pod: &Key, answer: Answer) {
        let (namespace, pod, result) = (pod.namespace.clone(), pod.name.clone(), answer.as_str());
        self.0.send_modify(|Recent { deletions, .. }| {
            deletions.truncate(REMEMBERED - 1);
            deletions.push_front(Deletion { at: Utc::now().trunc_subsecs(0), namespace, pod, result });
        });
    }

    pub fn status(&self, config: Value, config_refused: bool) -> WeederStatus {
        let recent = self.0.borrow();
        let windows = recent.windows.values().cloned().collect();
        WeederStatus { windows, deletions: recent.deletions.clone(), config, config_refused }
    }
}

impl Status for WeederStatus {
    fn without_lead(&self) -> &'static str {
        "The leader alone deletes; what is shown here is what this one knows."
    }

    fn body(&self) -> Markup {
        let now = Utc::now();
        let since = |then: DateTime<Utc>| html! { time datetime=(then.to_rfc3339()) { (ago((now - then).num_seconds())) } };
        let windows = self.windows.iter().map(|window| {
            let Window { namespace, service, cause, since: then } = window;
            vec![html! { code { (namespace) } }, html! { code { (service) } }, html! { (cause) }, since(*then)]
        });
        let deletions = self.deletions.iter().map(|deletion| {
            let Deletion { at, namespace, pod, result } = deletion;
            vec![since(*at), html! { code { (namespace) } }, html! { code { (pod) } }, html! { (result.replace('_', " ")) }]
        });
        html! {
            @if self.config_refused { p.note { "The config file as it is now is refused (the log says why); the one below is in force." } }
            ul.tiles { li { b { (self.windows.len()) } "open windows" } }
            @if self.windows.is_empty() { p { "No window is open: no pod is deleted until a Service recovers." } }
            (table("Open windows: crash-looping pods that depend on these Services are deleted", &["Namespace", "Service", "Cause", "Opened"], windows))
            (table("Last deletions", &["When", "Namespace", "Pod", "Result"], deletions))
            h2 { "Config in force" }
            details { summary { "defaults included" } pre { (format!("{:#}", self.config)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::news::{Cause, End};

    fn key(name: usize) -> Key {
        Key { namespace: "shoot--a--b".into(), name: name.to_string() }
    }

    #[test]
    fn windows_are_shown_while_they_are_open() {
        let activity = Activity::default();
        activity.window("shoot--a--b", "etcd-main-client", Event::Opened(Cause::Recovery));
        let shown = activity.status(Value::Null, false);
        assert_eq!((shown.windows.len(), shown.windows[0].cause), (1, "recovery"));
        assert!(shown.body().into_string().contains("etcd-main-client"));
        activity.window("shoot--a--b", "etcd-main-client", Event::Closed(End::Over));
        assert!(activity.status(Value::Null, false).windows.is_empty());
    }

    #[test]
    fn the_newest_deletions_are_remembered_and_no_more_than_so_many() {
        let activity = Activity::default();
        for name in 0..REMEMBERED + 5 {
            activity.deletion(&key(name), Answer::Deleted);
        }
        let shown = activity.status(Value::Null, false).deletions;
        assert_eq!((shown.len(), shown[0].pod.as_str()), (REMEMBERED, (REMEMBERED + 4).to_string().as_str()));
    }
}
