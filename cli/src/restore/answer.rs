//! What `restore` answers: of each shoot what would be written, and what was.

use prober::restore::RestoreEvent;
use prober_core::config::ResourceRef;
use serde::Serialize;

use super::plan::Step;
use crate::output::{bad, good, plain, table, warn};
use crate::{output, why};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    pub(crate) shoots: Vec<Shoot>,
    pub(crate) config_from: String,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shoot {
    pub(crate) namespace: String,
    pub(crate) state: &'static str,
    /// None when the namespaces cannot be read. A pause binds the prober, and not this command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<bool>,
    /// None when the leases were not looked at, or could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<&'static str>,
    pub(crate) steps: Vec<Step>,
    /// Whether all of it was written.
    pub(crate) restored: bool,
    /// The command that ends the pause which `--force` needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unpause: Option<String>,
    /// Why it is not restored, or would not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

impl Shoot {
    pub(crate) fn is_pending(&self) -> bool {
        self.steps.iter().any(|step| step.writes)
    }

    /// Notes what became of a step; the line that says so.
    pub(crate) fn note(
        &mut self,
        event: RestoreEvent,
        failed: &mut Vec<(ResourceRef, String)>,
    ) -> String {
        match event {
            RestoreEvent::Written {
                resource,
                before,
                after,
                used_default_replicas,
            } => {
                let outcome = match used_default_replicas {
                    _ if before == after => {
                        format!("keeps its {after} replicas, annotations removed")
                    }
                    false => format!("scaled from {before} to {after}"),
                    true => format!(
                        "scaled from {before} to {after}, since what was remembered cannot be used"
                    ),
                };
                self.set_outcome(&resource, &outcome);
                format!("{resource} {outcome}")
            }
            RestoreEvent::Failed(resource, error) => {
                let outcome = plain(&format!("cannot be scaled: {error}"));
                self.set_outcome(&resource, &outcome);
                let line = bad(&format!("{resource} {outcome}"));
                failed.push((resource, outcome));
                line
            }
            RestoreEvent::NotReady(resource) => {
                warn(&format!("{resource} is not ready yet, going on"))
            }
            RestoreEvent::KeepsChanging(resource) => {
                warn(&format!("somebody else keeps writing {resource}"))
            }
        }
    }

    fn set_outcome(&mut self, resource: &ResourceRef, outcome: &str) {
        if let Some(step) = self
            .steps
            .iter_mut()
            .find(|step| step.resource == *resource)
        {
            step.outcome = Some(outcome.to_owned());
        }
    }

    pub(crate) fn text(&self, because: &str, yes: bool, force: bool) -> String {
        let mut text = String::from("\n");
        let mut line = |name: &str, value: &str| text.push_str(&output::line(name, value));
        line("Namespace", &self.namespace);
        line("State", &format!("{}: {because}", self.state));
        if self.paused == Some(true) {
            line(
                "Paused",
                &warn("yes: that binds the prober, and not this command"),
            );
        }
        match self.verdict {
            Some(word) if self.problem.is_none() => {
                line("Leases", &good(&format!("{word}: {}", why::verdict(word))))
            }
            Some(word) => line("Leases", &bad(&format!("{word}: {}", why::verdict(word)))),
            None if force && self.is_pending() => {
                line("Leases", &warn("not looked at, as --force says"))
            }
            None => {}
        }
        let rows: Vec<_> = self.steps.iter().map(row).collect();
        text.push_str(&table(
            &["LEVEL", "RESOURCE", "REPLICAS", "COMES BACK TO", "WHY"],
            &rows,
        ));
        text.push_str(match (self.is_pending(), yes, force) {
            (false, ..) => "Nothing to restore.\n",
            (true, false, true) if self.problem.is_none() => {
                "Nothing is written; --yes pauses the shoot and does it.\n"
            }
            (true, false, false) if self.problem.is_none() => {
                "Nothing is written; --yes does it.\n"
            }
            (true, ..) => "",
        });
        text
    }
}

fn row(step: &Step) -> Vec<String> {
    let replicas = step
        .replicas
        .map_or_else(|| "-".to_owned(), |count| count.to_string());
    let (to, delay) = match step.restored_to {
        Some(count) if step.delay_seconds > 0.0 => (
            count.to_string(),
            format!(" (after {} s)", step.delay_seconds),
        ),
        Some(count) => (count.to_string(), String::new()),
        None => ("-".to_owned(), String::new()),
    };
    let because = format!("{}{delay}", plain(&step.because));
    vec![
        step.level.to_string(),
        step.resource.to_string(),
        replicas,
        to,
        if step.writes { warn(&because) } else { because },
    ]
}
