//! Facts about a shoot in words: the same on the status page and on the command line.

use std::fmt::Write;

use common::status::ago;
use prober_core::judgement::Finding;
use prober_core::lease::{Grace, LeaseState};
use prober_core::lifecycle::{StopReason, WaitReason};
use prober_core::shoot::Intended;
use prober_core::verdict::{Tally, Verdict};

use super::in_seconds;
use super::outcome::SeenLease;
use super::shoot_statuses::{Failure, ShootState};
use super::status::{Found, ProbeStatus};
use super::tone::Tone;
use super::zones::LostZone;
use crate::owner_records::OwnerStatus;
use crate::owner_records::record::Ownership;

#[derive(Clone, Debug)]
pub struct Fact {
    pub name: &'static str,
    pub text: String,
    pub tone: Tone,
}

/// As in `one, two`.
pub fn list(items: impl IntoIterator<Item: ToString>) -> String {
    let items = items.into_iter().map(|item| item.to_string());
    items.collect::<Vec<_>>().join(", ")
}

impl Fact {
    pub fn new(tone: Tone, name: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { name, text, tone }
    }

    pub fn paused() -> Self {
        let text = "yes: its operators want nothing written, in either direction";
        Self::new(Tone::Warn, "Paused", text)
    }
}

impl ShootState {
    pub fn fact(&self) -> Fact {
        let text = format!("{}: {}", <&str>::from(self), self.meaning());
        Fact::new(Tone::Soft, "State", text)
    }

    pub fn meaning(&self) -> String {
        let meaning = match self {
            Self::Probed => "its control plane is there and meant to be: it is probed",
            Self::Stopped(StopReason::Deleting) => "it is being deleted: it is not probed",
            Self::Stopped(StopReason::SelfHosted) => {
                "its control plane runs on its own nodes: it is not probed"
            }
            Self::Stopped(StopReason::Hibernated) => {
                "it hibernates or is about to: it is not probed"
            }
            Self::Stopped(StopReason::Migrating) => {
                "its control plane moves to another seed, or has yet to come from one, whose watchdog looks after it: it is not probed here"
            }
            Self::Stopped(StopReason::Workerless) => {
                "it has no worker pools, and so no nodes that could be lost: it is not probed"
            }
            Self::Waiting(WaitReason::WakingUp) => {
                "it is waking up from hibernation: no probe starts before its control plane is back"
            }
            Self::Waiting(WaitReason::NotYetReconciled) => {
                "no Create, Restore or Reconcile has brought up its control plane yet: no probe starts before"
            }
            Self::NoShoot => "its Cluster holds no shoot; a probe that ran before goes on",
            Self::Unreadable(error) => {
                return format!(
                    "its Cluster cannot be understood ({error}); a probe that ran before goes on"
                );
            }
        };
        meaning.to_owned()
    }
}

impl OwnerStatus {
    pub fn fact(&self) -> Fact {
        let sentence = self.sentence();
        let (tone, text) = match self.standing {
            Ownership::Ours => (Tone::Good, format!("this seed: {sentence}")),
            Ownership::Elsewhere { .. } => (
                Tone::Bad,
                format!("another seed: {sentence}; the prober neither probes nor writes it"),
            ),
            _ => (
                Tone::Warn,
                format!(
                    "not known: {sentence}; for longer than is tolerated, the prober leaves the shoot alone"
                ),
            ),
        };
        Fact::new(tone, "Owner", text)
    }
}

impl ProbeStatus {
    /// Findings of the last probes, and the writes of a dry run.
    pub fn facts(&self) -> Vec<Fact> {
        let failure = self.failure.iter().map(Failure::fact);
        let found = self.found.iter().flat_map(Found::facts);
        let writes = self.would_write.iter().map(|intended| {
            let Intended {
                kind,
                name,
                before,
                after,
            } = intended;
            let write = format!("{kind}/{name} from {before} to {after} replicas");
            Fact::new(Tone::Warn, "Would be written", write)
        });
        let missing = self.missing.iter().map(|missing| {
            let missing = format!("{missing}: the config names it, and not as optional");
            Fact::new(Tone::Warn, "Does not exist", missing)
        });
        failure.chain(found).chain(missing).chain(writes).collect()
    }
}

impl Failure {
    fn fact(&self) -> Fact {
        let Self {
            stage,
            category,
            message,
            failed_probes,
        } = self;
        let text = format!(
            "{failed_probes} in a row ({category} at {stage}), so nothing is concluded: {message}"
        );
        Fact::new(Tone::Warn, "Failed probes", text)
    }
}

impl Found {
    fn facts(&self) -> Vec<Fact> {
        let Finding {
            verdict,
            tally,
            skewed,
            fraction,
            grace,
            ..
        } = *self.outcome.finding;
        let Tally {
            candidates,
            expired,
            undecided,
        } = tally;
        let tone = match verdict {
            Verdict::ScaleDown => Tone::Bad,
            verdict if verdict.is_up() => Tone::Good,
            _ => Tone::Warn,
        };
        let mut facts = vec![Fact::new(tone, "Verdict", describe_verdict(verdict))];

        let mut leases = format!("{expired} of {candidates} leases expired");
        // Writing to a String does not fail.
        for (count, what) in [(undecided, "undecided"), (skewed, "by clocks that differ")] {
            if count > 0 {
                let _ = write!(leases, ", {count} {what}");
            }
        }
        let threshold = in_seconds(grace.threshold());
        let _ = write!(leases, " (expired after {threshold}s");
        if candidates > 1 {
            let _ = write!(leases, ", an outage from {:.0}% on", fraction * 100.0);
        }
        let _ = write!(leases, "), probed {}", ago(self.seconds_ago));
        facts.push(Fact::new(Tone::Soft, "Leases", leases));

        if grace.is_too_short() {
            facts.push(Fact::new(Tone::Warn, "Grace", describe_short(grace)));
        }

        let not_counted = excluded(&self.outcome.finding);
        if !not_counted.is_empty() {
            facts.push(Fact::new(Tone::Soft, "Excluded", not_counted));
        }
        for LostZone {
            zone,
            candidates,
            expired,
        } in &self.outcome.lost_zones
        {
            let lost = format!(
                "{zone} is lost: {expired} of its {candidates} leases expired; nothing is scaled for that"
            );
            facts.push(Fact::new(Tone::Warn, "Zone", lost));
        }
        facts
    }
}

/// Describes a grace that is too short, and its price.
pub(super) fn describe_short(grace: Grace) -> String {
    let [period, threshold] = [grace.period(), grace.threshold()].map(in_seconds);
    format!(
        "nodeMonitorGracePeriod ({period}s) is shorter than two renewals of the nodes' leases: they expire after {threshold}s, so that protection may come too late"
    )
}

/// As in `no_node: 2, not_managed: 1`.
pub(super) fn excluded(finding: &Finding) -> String {
    let counts = finding.excluded.iter();
    list(counts.map(|(reason, count)| format!("{reason}: {count}")))
}

/// As in `scale_up: the nodes reach their API server`.
pub fn describe_verdict(verdict: Verdict) -> String {
    let meaning = match verdict {
        Verdict::ScaleUp => "the nodes reach their API server",
        Verdict::ScaleUpHeldDown => {
            "the nodes that count reach their API server: what is held down may come back"
        }
        Verdict::ScaleDown => "the nodes have lost the way to their API server",
        Verdict::HoldSingleCandidate => {
            "only one node counts, and its lease is not known to be valid: nothing is concluded"
        }
        Verdict::HoldNoMachines => {
            "there are leases and not a single Machine: nothing is concluded until none was renewed for ten minutes"
        }
        Verdict::HoldUndecided => {
            "some leases cannot be judged yet, since their stamps may be wrong or no renewal was seen since something was taken down: nothing is concluded"
        }
    };
    format!("{}: {meaning}", verdict.into_str())
}

/// Node, age, state, and by how much the node's clock differs.
pub fn lease_cells(lease: &SeenLease) -> (Tone, [String; 4]) {
    let tone = match lease.state {
        LeaseState::Valid => Tone::Good,
        LeaseState::Undecided => Tone::Warn,
        LeaseState::Expired => Tone::Bad,
    };
    let (age, state) = (
        format!("{:.1}s", in_seconds(lease.age)),
        lease.state.into_str(),
    );
    let clock = match in_seconds(lease.skew) {
        0.0 => String::new(),
        skew => format!("{:+.0}s", -skew),
    };
    (tone, [lease.node.clone(), age, state.to_owned(), clock])
}

#[cfg(test)]
mod tests;
