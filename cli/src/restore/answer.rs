//! The answer of `restore`: of each shoot what would be written, and what was.

use std::borrow::Cow;

use prober::restore::RestoreEvent;
use prober::{Fact, ShootEntry, Tone, describe_verdict};
use prober_core::config::ResourceRef;
use prober_core::verdict::Verdict;
use serde::Serialize;

use super::plan::PlannedStep;
use crate::commands::RestoreArgs;
use crate::output::{lines, table};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RestoreAnswer {
    pub shoots: Vec<ShootRestore>,
    pub config_from: String,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShootRestore {
    pub namespace: String,
    pub state: Cow<'static, str>,
    /// `None` if the namespaces cannot be read. A pause binds the prober, and not this command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Verdict of the prober; `None` if it was not asked, or has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    pub steps: Vec<PlannedStep>,
    /// True if all of it was written.
    pub restored: bool,
    /// The command that ends the pause which `--force` needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpause: Option<String>,
    /// Reason why it is not restored, or would not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ShootRestore {
    pub(crate) fn is_pending(&self) -> bool {
        self.steps.iter().any(|step| step.writes)
    }

    /// Notes what became of a step; the line that says so.
    pub(crate) fn note(&mut self, event: RestoreEvent) -> String {
        let (resource, outcome, failed) = match event {
            RestoreEvent::NotReady(resource) => {
                return format!("{resource} is not ready yet, going on");
            }
            RestoreEvent::LeftBehind(resource) => {
                return format!("{resource} could not be restored in time, going on without it");
            }
            RestoreEvent::KeepsChanging(resource) => {
                return format!("somebody else keeps writing {resource}");
            }
            RestoreEvent::Failed(resource, error) => {
                (resource, format!("cannot be scaled: {error}"), true)
            }
            RestoreEvent::Written {
                resource,
                before,
                after,
                used_default_replicas,
            } => {
                let outcome = if before == after {
                    format!("keeps its {after} replicas, annotations removed")
                } else if used_default_replicas {
                    format!(
                        "scaled from {before} to {after}, since what was remembered cannot be used"
                    )
                } else {
                    format!("scaled from {before} to {after}")
                };
                (resource, outcome, false)
            }
        };
        let line = format!("{resource} {outcome}");
        let mut steps = self.steps.iter_mut();
        if let Some(step) = steps.find(|step| step.dependent.resource == resource) {
            step.outcome = Some(outcome);
            step.failed = failed;
        }
        line
    }

    /// Problems after a restore that has ended with these resources `remaining`.
    pub(crate) fn unrestored(&self, remaining: &[&ResourceRef]) -> Vec<String> {
        let problem = |step: &PlannedStep| {
            let resource = &step.dependent.resource;
            match &step.outcome {
                Some(outcome) if step.failed => Some(format!("{resource} {outcome}")),
                _ if remaining.contains(&resource) => Some(format!("{resource} was not restored")),
                _ => None,
            }
        };
        self.steps.iter().filter_map(problem).collect()
    }

    pub(crate) fn text(&self, seen: &ShootEntry, args: &RestoreArgs, is_refused: bool) -> String {
        let mut facts = vec![
            Fact::new(Tone::Soft, "Namespace", &self.namespace),
            Fact::new(
                Tone::Soft,
                "State",
                format!("{}: {}", seen.state, seen.because),
            ),
        ];
        if self.paused == Some(true) {
            let paused = "yes: that binds the prober, and not this command";
            facts.push(Fact::new(Tone::Warn, "Paused", paused));
        }
        if let Some(verdict) = self.verdict {
            let tone = if is_refused { Tone::Bad } else { Tone::Good };
            facts.push(Fact::new(tone, "Verdict", describe_verdict(verdict)));
        } else if args.force && self.is_pending() {
            facts.push(Fact::new(
                Tone::Warn,
                "Verdict",
                "not asked for, as --force says",
            ));
        }
        let steps = table(
            ["LEVEL", "RESOURCE", "REPLICAS", "COMES BACK TO", "WHY"],
            self.steps.iter().map(PlannedStep::row).collect(),
        );
        let next = if !self.is_pending() {
            "Nothing to restore.\n"
        } else if args.yes || is_refused {
            ""
        } else if args.force {
            "Nothing is written; --yes pauses the shoot and does it.\n"
        } else {
            "Nothing is written; --yes does it.\n"
        };
        format!("\n{}{steps}{next}", lines(&facts))
    }
}
