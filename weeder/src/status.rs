//! The weeder's status page, `/statusz`: its open windows, and what it deleted last.

use std::collections::{BTreeSet, VecDeque};

use chrono::{DateTime, SubsecRound, Utc};
use common::status::{Status, table, timestamp};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use weeder_core::config::Config;
use weeder_core::deletion::Deletion;
use weeder_core::window::{WindowChange, WindowEvent};

use crate::config::warnings;

/// This many deletions are remembered: enough for what a recovery of one shoot deletes.
const REMEMBERED: usize = 50;

/// The controller's recent work. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Activity(watch::Sender<Recent>);

#[derive(Clone, Debug, Default, Serialize)]
pub struct Recent {
    pub windows: BTreeSet<OpenWindow>,
    /// The last ones, the newest first.
    pub deletions: VecDeque<PastDeletion>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OpenWindow {
    pub namespace: String,
    pub service: String,
    pub cause: &'static str,
    pub since: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PastDeletion {
    pub at: DateTime<Utc>,
    pub namespace: String,
    pub pod: String,
    pub because: String,
    pub result: &'static str,
}

/// A snapshot for `/statusz`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WeederStatus {
    #[serde(flatten)]
    pub recent: Recent,
    /// The config in force, defaults included.
    pub config: Config,
    /// Possible surprises in the config in force.
    pub config_warnings: Vec<String>,
    /// True if the current config file is refused, so that an older config is in force.
    pub config_refused: bool,
}

impl Activity {
    pub fn window(&self, event: &WindowEvent) {
        let (namespace, service) = (event.namespace.clone(), event.service.to_string());
        self.0.send_modify(|recent| match event.change {
            WindowChange::Opened(reason) => {
                recent.windows.insert(OpenWindow {
                    namespace,
                    service,
                    cause: reason.into_str(),
                    since: now(),
                });
            }
            WindowChange::Closed(_) => recent
                .windows
                .retain(|window| (&window.namespace, &window.service) != (&namespace, &service)),
        });
    }

    pub fn deletion(&self, deletion: &Deletion, result: &'static str) {
        self.0.send_modify(|recent| {
            recent.deletions.truncate(REMEMBERED - 1);
            recent.deletions.push_front(PastDeletion {
                at: now(),
                namespace: deletion.pod.namespace.clone(),
                pod: deletion.pod.name.clone(),
                because: deletion.because(),
                result,
            });
        });
    }

    pub fn status(&self, config: &Config, config_refused: bool) -> WeederStatus {
        WeederStatus {
            recent: self.0.borrow().clone(),
            config: config.clone(),
            config_warnings: warnings(config),
            config_refused,
        }
    }
}

fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(0)
}

impl Status for WeederStatus {
    fn without_lead(&self) -> &'static str {
        "The leader alone deletes; what is shown here is what this one knows."
    }

    fn body(&self) -> Markup {
        let Recent { windows, deletions } = &self.recent;
        let code = |name: &str| html! { code { (name) } };
        let open = windows.iter().map(|window| {
            vec![
                code(&window.namespace),
                code(&window.service),
                html! { (window.cause) },
                timestamp(window.since),
            ]
        });
        let last = deletions.iter().map(|deletion| {
            vec![
                timestamp(deletion.at),
                code(&deletion.namespace),
                code(&deletion.pod),
                html! { (deletion.because) },
                html! { (deletion.result.replace('_', " ")) },
            ]
        });
        html! {
            @if self.config_refused { p.note { "The config file as it is now is refused (the log says why); the one below is in force." } }
            @for warning in &self.config_warnings { p.note { "Config: " (warning) "." } }
            @if windows.is_empty() { p { "No window is open: no pod is deleted until a Service recovers." } }
            (table("Open windows: crash-looping pods that depend on these Services are deleted", &["Namespace", "Service", "Cause", "Opened"], open))
            (table("Last deletions", &["When", "Namespace", "Pod", "Because", "Result"], last))
            h2 { "Config in force" }
            details { summary { "defaults included" } pre { (format!("{:#}", json!(self.config))) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weeder_core::window::{CloseReason, OpenReason};

    #[test]
    fn open_windows_the_newest_deletions_and_an_empty_selector_are_shown() {
        let activity = Activity::default();
        for (service, change) in [
            ("etcd", WindowChange::Opened(OpenReason::Recovery)),
            ("api", WindowChange::Opened(OpenReason::Start)),
            ("etcd", WindowChange::Closed(CloseReason::Over)),
        ] {
            activity.window(&WindowEvent {
                namespace: "shoot--a--b".to_owned(),
                service: service.into(),
                change,
            });
        }
        let mut deletion = Deletion {
            pod: common::view::Key {
                namespace: "shoot--a--b".to_owned(),
                name: String::new(),
            },
            uid: String::new(),
            resource_version: String::new(),
            service: "etcd-main-client".into(),
            cause: OpenReason::Recovery,
        };
        for number in 0..REMEMBERED + 5 {
            deletion.pod.name = number.to_string();
            activity.deletion(&deletion, "deleted");
        }
        let text = "servicesAndDependantSelectors: {etcd: {podSelectors: [null, {}]}}";
        let config = crate::config::parse(text).expect("a config").config;
        let status = activity.status(&config, false);
        let Recent { windows, deletions } = &status.recent;
        let open = windows
            .iter()
            .map(|window| (&*window.service, window.cause));
        assert_eq!(open.collect::<Vec<_>>(), [("api", "start")]);
        assert_eq!((deletions.len(), &*deletions[0].pod), (REMEMBERED, "54"));
        let body = status.body().into_string();
        assert!(body.contains("<code>api</code>"));
        assert!(body.contains("etcd-main-client is ready again"));
        let note = "podSelectors[1]: it is empty, so it selects every pod of the namespace";
        assert!(body.contains(note) && status.config_warnings[0].ends_with(note));
    }
}
