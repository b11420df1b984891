//! What the weeder shows of itself at `/statusz`: its open windows, and what it deleted last.

use std::collections::{BTreeSet, VecDeque};

use chrono::{DateTime, SubsecRound, Utc};
use common::change::Key;
use common::status::{Status, ago, table};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use weeder_core::news::Event;

use crate::delete::Answer;

/// So many deletions are remembered: enough for what a recovery of one shoot deletes.
const REMEMBERED: usize = 50;

/// What the controller did lately. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Activity(watch::Sender<Recent>);

#[derive(Clone, Debug, Default, Serialize)]
pub struct Recent {
    /// Those that are open.
    pub windows: BTreeSet<Window>,
    /// What was deleted last, the newest first.
    pub deletions: VecDeque<Deletion>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Window {
    pub namespace: String,
    /// Whose dependants are deleted when they crash-loop.
    pub service: String,
    pub cause: &'static str,
    pub since: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize)]
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
    #[serde(flatten)]
    pub recent: Recent,
    /// The config in force, defaults included.
    pub config: Value,
    /// Whether the config file as it is now is refused, so that an older one is in force.
    pub config_refused: bool,
}

impl Activity {
    pub fn window(&self, namespace: &str, service: &str, event: Event) {
        let (namespace, service) = (namespace.to_owned(), service.to_owned());
        self.0.send_modify(|Recent { windows, .. }| match event {
            Event::Opened(cause) => {
                let since = Utc::now().trunc_subsecs(0);
                windows.insert(Window {
                    namespace,
                    service,
                    cause: cause.into_str(),
                    since,
                });
            }
            Event::Closed(_) => windows
                .retain(|window| (&window.namespace, &window.service) != (&namespace, &service)),
        });
    }

    pub fn deletion(&self, pod: &Key, answer: Answer) {
        let (namespace, pod, result) = (pod.namespace.clone(), pod.name.clone(), answer.into_str());
        self.0.send_modify(|Recent { deletions, .. }| {
            deletions.truncate(REMEMBERED - 1);
            deletions.push_front(Deletion {
                at: Utc::now().trunc_subsecs(0),
                namespace,
                pod,
                result,
            });
        });
    }

    pub fn status(&self, config: Value, config_refused: bool) -> WeederStatus {
        WeederStatus {
            recent: self.0.borrow().clone(),
            config,
            config_refused,
        }
    }
}

impl Status for WeederStatus {
    fn without_lead(&self) -> &'static str {
        "The leader alone deletes; what is shown here is what this one knows."
    }

    fn body(&self) -> Markup {
        let (now, Recent { windows, deletions }) = (Utc::now(), &self.recent);
        let since = |then: DateTime<Utc>| html! { time datetime=(then.to_rfc3339()) { (ago((now - then).num_seconds())) } };
        let open = windows.iter().map(|window| {
            let Window {
                namespace,
                service,
                cause,
                since: then,
            } = window;
            vec![
                html! { code { (namespace) } },
                html! { code { (service) } },
                html! { (cause) },
                since(*then),
            ]
        });
        let last = deletions.iter().map(|deletion| {
            let Deletion {
                at,
                namespace,
                pod,
                result,
            } = deletion;
            vec![
                since(*at),
                html! { code { (namespace) } },
                html! { code { (pod) } },
                html! { (result.replace('_', " ")) },
            ]
        });
        html! {
            @if self.config_refused { p.note { "The config file as it is now is refused (the log says why); the one below is in force." } }
            ul.tiles { li { b { (windows.len()) } "open windows" } }
            @if windows.is_empty() { p { "No window is open: no pod is deleted until a Service recovers." } }
            (table("Open windows: crash-looping pods that depend on these Services are deleted", &["Namespace", "Service", "Cause", "Opened"], open))
            (table("Last deletions", &["When", "Namespace", "Pod", "Result"], last))
            h2 { "Config in force" }
            details { summary { "defaults included" } pre { (format!("{:#}", self.config)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weeder_core::news::{Cause, End};

    fn key(name: usize) -> Key {
        Key {
            namespace: "shoot--a--b".into(),
            name: name.to_string(),
        }
    }

    #[test]
    fn windows_are_shown_while_they_are_open() {
        let activity = Activity::default();
        activity.window(
            "shoot--a--b",
            "etcd-main-client",
            Event::Opened(Cause::Recovery),
        );
        let shown = activity.status(Value::Null, false);
        assert_eq!(
            shown
                .recent
                .windows
                .iter()
                .map(|window| window.cause)
                .collect::<Vec<_>>(),
            ["recovery"]
        );
        assert!(shown.body().into_string().contains("etcd-main-client"));
        activity.window("shoot--a--b", "etcd-main-client", Event::Closed(End::Over));
        assert!(
            activity
                .status(Value::Null, false)
                .recent
                .windows
                .is_empty()
        );
    }

    #[test]
    fn the_newest_deletions_are_remembered_and_no_more_than_so_many() {
        let activity = Activity::default();
        for name in 0..REMEMBERED + 5 {
            activity.deletion(&key(name), Answer::Deleted);
        }
        let shown = activity.status(Value::Null, false).recent.deletions;
        assert_eq!(
            (shown.len(), shown[0].pod.as_str()),
            (REMEMBERED, (REMEMBERED + 4).to_string().as_str())
        );
    }
}
