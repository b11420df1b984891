//! What is shown of a shoot and of the prober, in words: `explain` and the page print all of it,
//! `status` what is worth a note. Pure.

use std::fmt::Display;

use common::status::{TIMESTAMP, ago};
use common::text::time_span;
use prober_core::lease::LeaseState;
use prober_core::options::Source;
use prober_core::replicas::Marks;
use prober_core::shoot::Reason;
use prober_core::verdict::{Tally, Verdict};
use strum::IntoStaticStr;

use super::status::ProberStatus;
use super::view::{
    Condition, Failure, Found, SeenLease, ShootView, ShownDependent, ShownOption, ShownWait,
};
use crate::owner::{OwnerStatus, Standing};

/// Deployment in a shoot's control plane that marks nodes Unknown, by Gardener's name.
const MARKS_NODES: &str = "kube-controller-manager";

/// Urgency: a class on the page. From `Note` on `status` shows it, from `Warn` on it needs attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Tone {
    Soft,
    Good,
    #[strum(serialize = "noted")]
    Note,
    Warn,
    Bad,
    /// Held down: as bad, but no note, since `status` names it beside its notes.
    #[strum(serialize = "bad")]
    Held,
}

#[derive(Clone, Debug)]
pub struct Fact {
    pub tone: Tone,
    pub text: String,
}

impl Fact {
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { tone, text }
    }
}

impl ProberStatus {
    /// Facts that hold for all shoots.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Some(unknown) = &self.unknown {
            let text =
                format!("the seed's {unknown} are not known: nothing is concluded without them");
            facts.push(Fact::new(Tone::Bad, text));
        }
        if self.config_refused {
            let text = "the config file as it is now is refused (the log says why), an earlier one is in force";
            facts.push(Fact::new(Tone::Warn, text));
        }
        let settings = self.settings.iter().map(ToString::to_string);
        facts.extend(settings.map(|setting| Fact::new(Tone::Warn, setting)));
        facts
    }
}

impl ShootView {
    /// All that is said of it.
    pub fn facts(&self) -> Vec<Fact> {
        let tone = match &*self.state {
            "no_shoot" | "unreadable" => Tone::Warn,
            _ => Tone::Soft,
        };
        let mut facts = vec![Fact::new(tone, self.describe_state())];
        facts.extend(self.settings.iter().map(ShownOption::fact));
        if self.settings.is_empty() {
            let text = "paused or not: the namespaces could not be read";
            facts.push(Fact::new(Tone::Warn, text));
        }
        facts.extend(self.owner.as_ref().map(|owner| owner.fact(self.decree)));
        facts.extend(self.machines.map(|count| match count {
            0 if self.probe.is_some() => Fact::new(Tone::Warn, "no Machine backs a node"),
            _ => Fact::new(Tone::Soft, format!("{count} Machines back nodes")),
        }));
        if let Some(probe) = &self.probe {
            if probe.overdue {
                facts.push(Fact::new(Tone::Bad, "its probe is overdue"));
            }
            facts.extend(probe.failure.as_ref().map(Failure::fact));
            facts.extend(probe.found.iter().flat_map(Found::facts));
        }
        facts.extend(self.course());
        facts.extend(self.dependents.iter().map(|dependent| self.why(dependent)));
        facts
    }

    /// Facts that are worth a note beside its state and the names of what is held down.
    pub fn notes(&self) -> Vec<Fact> {
        let mut facts = self.facts();
        facts.retain(|fact| (Tone::Note..=Tone::Bad).contains(&fact.tone));
        facts
    }

    /// Tone of its worst fact, if it needs attention.
    pub fn concern(&self) -> Option<Tone> {
        let tones = self.facts().into_iter().map(|fact| fact.tone);
        tones.max().filter(|tone| *tone >= Tone::Warn)
    }

    /// As in `hibernated: it hibernates or is about to: it is not probed`.
    pub fn describe_state(&self) -> String {
        let error = self.unreadable.as_ref();
        let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
        format!("{}: {}{error}", self.state, meaning(&self.state))
    }

    /// Fact about an outage: what is done about it, or what it costs.
    fn course(&self) -> Option<Fact> {
        let held = self.held_down();
        match self.verdict()? {
            Verdict::ScaleDown if !held.contains(&MARKS_NODES) => {
                let text = match self.found()?.first_unknown()? {
                    left @ 1.. => {
                        format!("the first node is marked Unknown in {}", time_span(left))
                    }
                    left => format!(
                        "nodes are marked Unknown since {}, unless kube-controller-manager was started later",
                        ago(-left)
                    ),
                };
                Some(Fact::new(Tone::Bad, text))
            }
            // Also between the tries of a restore that fails.
            verdict if verdict.is_up() && !self.is_set("pause") && !held.is_empty() => {
                Some(Fact::new(Tone::Warn, "being restored"))
            }
            _ => None,
        }
    }

    /// Says what the condition of a dependent means.
    fn because(&self, dependent: &ShownDependent) -> (Tone, &'static str) {
        let is_lost = self.verdict() == Some(Verdict::ScaleDown);
        let (tone, text) = match dependent.condition {
            Condition::HeldDown if dependent.is_held_down() => {
                (Tone::Held, "held down by the watchdog")
            }
            Condition::Running | Condition::HeldDown if is_lost => (Tone::Bad, "not protected"),
            Condition::Running => (Tone::Good, "runs"),
            Condition::HeldDown => (
                Tone::Warn,
                "runs, and still carries the marker of a protection: the next healthy probe removes it",
            ),
            Condition::AtZero if dependent.since.is_some() => (
                Tone::Warn,
                "held down by the watchdog, and somebody removed its marker: a healthy probe brings it back",
            ),
            Condition::AtZero if self.is_set("restoreOnlyHeldDown") => (
                Tone::Note,
                "scaled to 0 not by the watchdog, and with restoreOnlyHeldDown it stays so",
            ),
            Condition::AtZero => (
                Tone::Note,
                "scaled to 0 not by the watchdog: a healthy probe brings it back",
            ),
            Condition::Ignored => (
                Tone::Note,
                "annotated with ignore-scaling: the watchdog leaves it as it is",
            ),
            Condition::Absent => (
                Tone::Soft,
                "it does not exist, which is no error since it is optional",
            ),
            Condition::Missing => (
                Tone::Bad,
                "it does not exist, though it must: a restore waits for it, for its timeout at most, before those of later levels",
            ),
            Condition::Unscalable => (Tone::Bad, "it is not protected"),
            Condition::Unknown => (Tone::Warn, "it could not be read"),
        };
        match tone {
            // Before a probe it may be about to be created, or down with its shoot.
            Tone::Note | Tone::Bad if self.found().is_none() => (Tone::Soft, text),
            _ => (tone, text),
        }
    }

    /// Says why a dependent is as it is, and what becomes of it.
    fn why(&self, dependent: &ShownDependent) -> Fact {
        let ShownDependent {
            resource,
            condition,
            ..
        } = dependent;
        let (mut tone, because) = self.because(dependent);
        let mut parts = vec![match (dependent.replicas, dependent.ready) {
            (Some(replicas), Some(ready)) => {
                format!("{resource} at {replicas}, {ready} ready: {because}")
            }
            _ => format!("{resource}: {because}"),
        }];
        if dependent.is_held_down() {
            parts.push(match self.probe {
                Some(_) => dependent.comes_back(),
                None => "it stays so while the shoot is not probed".to_owned(),
            });
        }
        if let Some(cause) = &dependent.not_scaled {
            parts.push(format!("it could not be scaled: {cause}"));
            tone = Tone::Bad;
        }
        let is_said = matches!(condition, Condition::Missing | Condition::Unscalable);
        if let Some(words) = dependent.refused.as_ref().filter(|_| !is_said) {
            parts.push(format!("in an outage it would be refused: {words}"));
            tone = Tone::Bad;
        }
        if let Some(ShownWait { reason, until, .. }) = &dependent.waits {
            let until = until.map(|until| format!(", until {}", until.format(TIMESTAMP)));
            let until = until.unwrap_or_default();
            parts.push(format!("its write waits for {reason}{until}"));
        }
        let would_become = dependent.would_become;
        parts.extend(
            would_become
                .map(|replicas| format!("without the dry run it would be scaled to {replicas}")),
        );
        Fact::new(tone, parts.join("; "))
    }
}

impl ShownDependent {
    /// Says with how many replicas it comes back, and since when it is held down.
    fn comes_back(&self) -> String {
        let marks = Marks {
            replicas: self.remembered.clone(),
            ..Marks::default()
        };
        let replicas = marks.remembered().unwrap_or(1);
        let mut text = format!("it comes back with {replicas} replicas");
        if marks.remembered().is_none() {
            let saved = self.remembered.as_deref().unwrap_or("nothing");
            text += &format!(", since what is remembered ({saved:?}) cannot be used");
        }
        if let Some(since) = self.since {
            text += &format!(" (since {} or longer)", since.format(TIMESTAMP));
        }
        text
    }
}

/// Meaning of a state by the Cluster.
fn meaning(state: &str) -> &'static str {
    match state {
        "probed" => "its control plane is there and meant to be",
        "deleting" => "it is being deleted: it is not probed",
        "self_hosted" => "its control plane runs on its own nodes: it is not probed",
        "hibernated" => "it hibernates or is about to: it is not probed",
        "migrating" => {
            "its control plane moves to another seed, or has yet to come from one, whose watchdog looks after it: it is not probed here"
        }
        "workerless" => {
            "it has no worker pools, and so no nodes that could be lost: it is not probed"
        }
        "waking_up" => {
            "it is waking up from hibernation: no probe starts before its control plane is back"
        }
        "not_yet_reconciled" => {
            "no Create, Restore or Reconcile has brought up its control plane yet: no probe starts before"
        }
        "no_shoot" => "its Cluster holds no shoot; a probe that ran before goes on",
        "unreadable" => "its Cluster cannot be understood; a probe that ran before goes on",
        _ => "a state that only a later version knows",
    }
}

impl Display for ShownOption {
    /// `restoreOnlyHeldDown true (garden)`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            setting,
            value,
            from,
        } = self;
        write!(f, "{setting} {value} ({})", from.into_str())
    }
}

impl ShownOption {
    fn fact(&self) -> Fact {
        if self.setting == "pause" && self.value == "true" {
            let text = format!("{self}: its operators want nothing written, in either direction");
            return Fact::new(Tone::Warn, text);
        }
        // What `garden` sets stands above all shoots.
        let tone = match self.from {
            Source::Namespace => Tone::Note,
            _ => Tone::Soft,
        };
        Fact::new(tone, self.to_string())
    }
}

impl OwnerStatus {
    fn fact(&self, decree: Option<Verdict>) -> Fact {
        let (tone, is_ours, then) = match self.standing {
            Standing::Ours => (Tone::Good, "owned by this seed", ""),
            Standing::Elsewhere if decree.is_some() => (
                Tone::Bad,
                "owned by another seed",
                "; the prober does not probe it, and takes its controllers to 0",
            ),
            Standing::Elsewhere => (
                Tone::Bad,
                "owned by another seed",
                "; the prober neither probes nor writes it",
            ),
            _ => (
                Tone::Warn,
                "not known to be ours",
                "; for longer than is tolerated, the prober leaves the shoot alone",
            ),
        };
        Fact::new(tone, format!("{is_ours}: {}{then}", self.sentence()))
    }
}

impl Failure {
    fn fact(&self) -> Fact {
        let text = format!(
            "probes fail ({} at {}), so nothing is concluded: {}, {} in a row since {}",
            self.category,
            self.stage,
            self.message,
            self.failed_probes,
            self.since.format(TIMESTAMP)
        );
        Fact::new(Tone::Warn, text)
    }
}

impl Found {
    fn facts(&self) -> Vec<Fact> {
        let tone = match self.verdict {
            Verdict::ScaleDown => Tone::Bad,
            verdict if verdict.is_up() => Tone::Good,
            _ => Tone::Warn,
        };
        let Tally {
            candidates,
            expired,
            undecided,
        } = self.tally;
        let leases = format!(
            "{expired} of {candidates} leases expired, {undecided} undecided, {} by clocks that differ (expired after {}s, an outage from {:.0}% on), probed {}",
            self.skewed,
            self.expired_after_seconds,
            self.fraction * 100.0,
            ago(self.seconds_ago)
        );
        let mut facts = vec![
            Fact::new(tone, describe_verdict(self.verdict)),
            Fact::new(Tone::Soft, leases),
        ];
        if self.grace_too_short {
            let text = format!("its grace is too short: {}", describe_short(self));
            facts.push(Fact::new(Tone::Warn, text));
        }
        if !self.excluded.is_empty() {
            let text = format!("not counted: {}", self.list_excluded());
            facts.push(Fact::new(Tone::Soft, text));
        }
        facts
    }

    /// As in `no_node: 1, no_lease: 2`.
    pub(super) fn list_excluded(&self) -> String {
        let excluded = self.excluded.iter();
        let excluded = excluded.map(|(reason, count)| format!("{reason}: {count}"));
        excluded.collect::<Vec<_>>().join(", ")
    }

    /// Time until the first node with an expired lease is marked Unknown, in seconds; not above 0
    /// where one is so since then. `None` while no lease is expired.
    fn first_unknown(&self) -> Option<i64> {
        // The oldest come first.
        let mut leases = self.leases.iter();
        let oldest = leases.find(|lease| lease.state == LeaseState::Expired)?;
        Some((self.unknown_after_seconds - oldest.age_seconds) as i64 - self.seconds_ago)
    }
}

/// Describes a grace that is too short, and its price.
pub(super) fn describe_short(found: &Found) -> String {
    format!(
        "nodeMonitorGracePeriod ({}s) is shorter than two renewals of the nodes' leases: they expire after {}s, so that protection may come too late",
        found.unknown_after_seconds, found.expired_after_seconds
    )
}

/// As in `scale_up: the nodes reach their API server`.
pub fn describe_verdict(verdict: Verdict) -> String {
    let meaning = match verdict {
        Verdict::ScaleUp => "the nodes reach their API server",
        Verdict::ScaleUpHeldDown => {
            "the nodes that count reach their API server: what is held down may come back"
        }
        Verdict::ScaleDown => "in an outage, the nodes have lost the way to their API server",
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

/// Description of what a write waits for.
pub(super) const fn waits_for(reason: Reason) -> &'static str {
    match reason {
        Reason::NotOurs => "the Cluster to name this seed",
        Reason::NotOwned => "the owner record to name this seed",
        Reason::Paused => "the pause to be lifted",
        Reason::SeedUnseen => "the seed's Clusters to be read",
        Reason::InitialDelay => "the end of initialDelay",
        Reason::Order => "its level and its delay",
        Reason::Terms => "a probe since leadership, config or settings changed",
        Reason::Stabilization => "the verdict to last for scaleUpStabilization",
        Reason::Leader => "the leader, whose turn it is",
        Reason::Undone => "the last write, which others have undone, to be some seconds ago",
        Reason::Backoff => "another attempt after the last one, which failed",
        Reason::Changed => "a probe since others changed it",
        Reason::Answer => "a probe of the last seconds",
        Reason::Permit => "other writes, which go first",
    }
}

/// Node, age, state, and by how much the node's clock differs.
pub fn lease_cells(lease: &SeenLease) -> (Tone, [String; 4]) {
    let tone = match lease.state {
        LeaseState::Valid => Tone::Good,
        LeaseState::Undecided => Tone::Warn,
        LeaseState::Expired => Tone::Bad,
    };
    let clock = lease.skew_seconds.map(|skew| format!("{:+.0}s", -skew));
    let cells = [
        lease.node.clone(),
        format!("{:.1}s", lease.age_seconds),
        lease.state.into_str().to_owned(),
        clock.unwrap_or_default(),
    ];
    (tone, cells)
}

#[cfg(test)]
mod tests;
