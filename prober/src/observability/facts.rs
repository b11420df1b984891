//! Facts about a shoot in words: the same on the status page and on the command line.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use common::status::{TIMESTAMP, ago};
use common::text::time_span;
use prober_core::lease::LeaseState;
use prober_core::lifecycle::{StopReason, WaitReason};
use prober_core::verdict::Verdict;

use super::in_seconds;
use super::outage::MARKS_NODES;
use super::outcome::SeenLease;
use super::shoot_statuses::{Failure, ShootState};
use super::status::{Found, ProbeStatus, ShootEntry, ShownDependent};
use super::tone::Tone;
use super::why::Condition;
use crate::owner::{OwnerStatus, Standing};

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
}

impl ShootState {
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

impl ShootEntry {
    /// All but its dependents, its leases and when it is probed next.
    pub fn facts(&self) -> Vec<Fact> {
        let state = format!("{}: {}", self.state, self.because);
        let mut facts = vec![Fact::new(Tone::Soft, "State", state)];
        match self.paused {
            Some(true) => {
                let paused = "yes: its operators want nothing written, in either direction";
                facts.push(Fact::new(Tone::Warn, "Paused", paused));
            }
            Some(false) => {}
            None => facts.push(Fact::new(
                Tone::Warn,
                "Paused",
                "not known: the namespaces could not be read",
            )),
        }
        if !self.settings.is_empty() {
            facts.push(Fact::new(Tone::Soft, "Settings", list(&self.settings)));
        }
        facts.extend(self.owner.as_ref().map(OwnerStatus::fact));
        if let Some(machines) = self.machines {
            let machines = format!("{machines} that back nodes");
            facts.push(Fact::new(Tone::Soft, "Machines", machines));
        }
        facts.extend(self.probe.iter().flat_map(ProbeStatus::facts));
        let unprotected = self.unprotected();
        facts.extend(unprotected.map(|told| Fact::new(Tone::Bad, "Not protected", told)));
        facts
    }

    /// Says in short what keeps the shoot from being protected, or what is done for it; empty while
    /// all is well.
    pub fn notes(&self) -> Vec<String> {
        let Some(probe) = &self.probe else {
            return Vec::new();
        };
        let mut notes: Vec<_> = probe.failure.iter().map(Failure::note).collect();
        match probe.verdict() {
            Some(Verdict::ScaleDown) => notes.push("in an outage".to_owned()),
            Some(verdict) if verdict.aim().is_none() => notes.push(describe_verdict(verdict)),
            // Also between the tries of a restore that fails.
            Some(_) if self.paused != Some(true) && !self.names(Condition::HeldDown).is_empty() => {
                notes.push("being restored".to_owned());
            }
            _ => {}
        }
        notes.extend(self.unprotected());
        if self.machines == Some(0) {
            notes.push("no Machine backs a node".to_owned());
        }
        if probe
            .found
            .as_ref()
            .is_some_and(|found| found.grace_too_short)
        {
            notes.push("its grace is too short".to_owned());
        }
        notes
    }

    /// Says which controllers are up in an outage, and why, and when nodes are marked Unknown for
    /// that; `None` where none is.
    fn unprotected(&self) -> Option<String> {
        let probe = self.probe.as_ref()?;
        if probe.verdict() != Some(Verdict::ScaleDown) {
            return None;
        }
        let up = self.dependents.iter().filter_map(|dependent| {
            let cause = match (&dependent.not_scaled, &dependent.waits) {
                _ if dependent.condition == Condition::HeldDown => return None,
                (Some(cause), _) => cause.clone(),
                (None, Some(wait)) => format!("waits for {}", wait.reason),
                _ if dependent.condition == Condition::Missing => "does not exist".to_owned(),
                _ => return None,
            };
            Some(format!("{} ({cause})", dependent.resource.name))
        });
        let up = list(up);
        if up.is_empty() {
            return None;
        }
        let is_held = |name| self.names(Condition::HeldDown).contains(&name);
        let marked = probe.found.as_ref().and_then(Found::first_unknown);
        let marked = marked.filter(|_| !is_held(MARKS_NODES)).map(|left| {
            if left > 0 {
                format!("; the first node is marked Unknown in {}", time_span(left))
            } else {
                let since = ago(-left);
                format!("; nodes are marked Unknown since {since}, unless kube-controller-manager was started later")
            }
        });
        Some(format!("{up}{}", marked.unwrap_or_default()))
    }
}

impl ShownDependent {
    /// Says all that is known of its condition, and how that is to be taken.
    pub fn why(&self) -> (Tone, String) {
        let tone = match self.condition {
            _ if self.not_scaled.is_some() => Tone::Bad,
            Condition::HeldDown | Condition::Missing => Tone::Bad,
            Condition::Running => Tone::Good,
            _ => Tone::Warn,
        };
        let mut why = self.because.clone();
        if let Some(since) = self.since {
            why += &format!(" (since {} or longer)", since.format(TIMESTAMP));
        }
        if let Some(cause) = &self.not_scaled {
            why += &format!("; it could not be scaled: {cause}");
        }
        if let Some(wait) = &self.waits {
            why += &format!("; its write waits for {}", wait.reason);
            if let Some(until) = wait.until {
                why += &format!(", until {}", until.format(TIMESTAMP));
            }
        }
        if let Some(replicas) = self.would_become {
            why += &format!("; without the dry run it would be scaled to {replicas}");
        }
        (tone, why)
    }
}

impl OwnerStatus {
    pub fn fact(&self) -> Fact {
        let sentence = self.sentence();
        let (tone, text) = match self.standing {
            Standing::Ours => (Tone::Good, format!("this seed: {sentence}")),
            Standing::Elsewhere => (
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
    /// Findings of the last probes, and when the next one is due.
    fn facts(&self) -> Vec<Fact> {
        let mut facts: Vec<_> = self.failure.iter().map(Failure::fact).collect();
        facts.extend(self.found.iter().flat_map(Found::facts));
        if let Some(direction) = &self.scaling {
            facts.push(Fact::new(Tone::Soft, "Scaling", direction.as_ref()));
        }
        let tone = if self.overdue { Tone::Bad } else { Tone::Soft };
        facts.push(Fact::new(
            tone,
            "Next probe",
            due(self.next_probe_in_seconds),
        ));
        facts
    }
}

/// As in `in 5s` or `due for 2s`.
pub(super) fn due(seconds: i64) -> String {
    if seconds < 0 {
        format!("due for {}", time_span(-seconds))
    } else {
        format!("in {}", time_span(seconds))
    }
}

impl Failure {
    fn fact(&self) -> Fact {
        let Self {
            stage,
            category,
            message,
            failed_probes,
            since,
        } = self;
        let since = since.format(TIMESTAMP);
        let text = format!(
            "{failed_probes} in a row since {since} ({category} at {stage}), so nothing is concluded: {message}"
        );
        Fact::new(Tone::Warn, "Failed probes", text)
    }

    fn note(&self) -> String {
        let Self {
            stage,
            category,
            message,
            since,
            ..
        } = self;
        let since = since.format(TIMESTAMP);
        format!("probes fail ({category} at {stage}): {message}, since {since}")
    }
}

impl Found {
    fn facts(&self) -> Vec<Fact> {
        let Self {
            verdict,
            candidates,
            expired,
            expired_after_seconds,
            ..
        } = *self;
        let tone = match verdict {
            Verdict::ScaleDown => Tone::Bad,
            verdict if verdict.is_up() => Tone::Good,
            _ => Tone::Warn,
        };
        let mut facts = vec![Fact::new(tone, "Verdict", describe_verdict(verdict))];

        let mut leases = format!("{expired} of {candidates} leases expired");
        // Writing to a String does not fail.
        for (count, what) in [
            (self.undecided, "undecided"),
            (self.skewed, "by clocks that differ"),
        ] {
            if count > 0 {
                let _ = write!(leases, ", {count} {what}");
            }
        }
        let _ = write!(leases, " (expired after {expired_after_seconds}s");
        if candidates > 1 {
            let _ = write!(leases, ", an outage from {:.0}% on", self.fraction * 100.0);
        }
        let _ = write!(leases, "), probed {}", ago(self.seconds_ago));
        facts.push(Fact::new(Tone::Soft, "Leases", leases));

        if self.grace_too_short {
            let price = describe_short(self.unknown_after_seconds, expired_after_seconds);
            facts.push(Fact::new(Tone::Warn, "Grace", price));
        }

        let not_counted = excluded(&self.excluded);
        if !not_counted.is_empty() {
            facts.push(Fact::new(Tone::Soft, "Excluded", not_counted));
        }
        facts
    }

    /// Time until the first node with an expired lease is marked Unknown, in seconds; not above 0
    /// where one is so since then. `None` while no lease is expired.
    fn first_unknown(&self) -> Option<i64> {
        let expired = self.leases.iter();
        let expired = expired.filter(|lease| lease.state == LeaseState::Expired);
        let oldest = expired.map(|lease| lease.age.num_seconds()).max()?;
        Some(self.unknown_after_seconds as i64 - oldest - self.seconds_ago)
    }
}

/// Describes a grace that is too short, and its price.
pub(super) fn describe_short(grace_seconds: f64, expired_after_seconds: f64) -> String {
    format!(
        "nodeMonitorGracePeriod ({grace_seconds}s) is shorter than two renewals of the nodes' leases: they expire after {expired_after_seconds}s, so that protection may come too late"
    )
}

/// As in `no_node: 2, not_managed: 1`.
pub(super) fn excluded(counts: &BTreeMap<impl Display, usize>) -> String {
    list(
        counts
            .iter()
            .map(|(reason, count)| format!("{reason}: {count}")),
    )
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
