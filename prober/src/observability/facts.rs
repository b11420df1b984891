//! What is shown of a shoot and of the prober, in words: `explain` and the page print all of it,
//! `status` what is worth a note. Pure.

use std::fmt::{Display, Write};

use common::status::{TIMESTAMP, ago};
use common::text::time_span;
use prober_core::lease::LeaseState;
use prober_core::options::Source;
use prober_core::replicas::Marks;
use prober_core::shoot::Reason;
use prober_core::verdict::Verdict;
use strum::IntoStaticStr;

use super::in_seconds;
use super::status::ProberStatus;
use super::view::{
    Condition, Failure, Found, ProbeStatus, SeenLease, ShootView, ShownDependent, ShownOption,
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
}

#[derive(Clone, Debug)]
pub struct Fact {
    pub tone: Tone,
    pub text: String,
}

/// As in `one, two`.
pub(super) fn list(items: impl IntoIterator<Item: ToString>) -> String {
    let items = items.into_iter().map(|item| item.to_string());
    items.collect::<Vec<_>>().join(", ")
}

impl Fact {
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { tone, text }
    }
}

impl ProberStatus {
    /// What holds for all shoots.
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
        let setting = |option: &ShownOption| Fact::new(Tone::Warn, option.to_string());
        facts.extend(self.settings.iter().map(setting));
        facts
    }
}

impl ShootView {
    /// All that is said of it.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = self.own_facts();
        facts.extend(self.dependents.iter().map(|dependent| self.why(dependent)));
        facts
    }

    /// What is worth a note beside its state and the names of what is held down.
    pub fn notes(&self) -> Vec<Fact> {
        let is_named =
            |dependent: &ShownDependent| dependent.is_held_down() && dependent.not_scaled.is_none();
        let mut facts = self.own_facts();
        let others = self.dependents.iter().filter(|one| !is_named(one));
        facts.extend(others.map(|dependent| self.why(dependent)));
        facts.retain(|fact| fact.tone >= Tone::Note);
        facts
    }

    /// Tone of its worst fact, if it needs attention.
    pub fn concern(&self) -> Option<Tone> {
        let tones = self.facts().into_iter().map(|fact| fact.tone);
        tones.max().filter(|tone| *tone >= Tone::Warn)
    }

    fn own_facts(&self) -> Vec<Fact> {
        let mut facts = vec![self.state_fact()];
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
            facts.push(probe.next());
            facts.extend(probe.failure.as_ref().map(Failure::fact));
        }
        // A shoot that is left alone is not probed, but what it has may be taken down.
        let owner = self.owner.as_ref();
        if owner.is_none_or(|owner| !owner.standing.is_lost()) {
            facts.extend(self.found().into_iter().flat_map(Found::facts));
            facts.extend(self.course());
        }
        facts
    }

    fn state_fact(&self) -> Fact {
        let tone = match &*self.state {
            "no_shoot" | "unreadable" => Tone::Warn,
            _ => Tone::Soft,
        };
        Fact::new(tone, self.describe_state())
    }

    /// As in `hibernated: it hibernates or is about to: it is not probed`.
    pub fn describe_state(&self) -> String {
        let mut text = format!("{}: {}", self.state, meaning(&self.state));
        if let Some(error) = &self.unreadable {
            let _ = write!(text, " ({error})");
        }
        text
    }

    /// What is done about an outage, and what it costs.
    fn course(&self) -> Option<Fact> {
        let held = self.held_down();
        let (tone, text) = match self.verdict()? {
            Verdict::ScaleDown if !held.contains(&MARKS_NODES) => {
                match self.found()?.first_unknown()? {
                    left @ 1.. => (
                        Tone::Bad,
                        format!("the first node is marked Unknown in {}", time_span(left)),
                    ),
                    left => (
                        Tone::Bad,
                        format!(
                            "nodes are marked Unknown since {}, unless kube-controller-manager was started later",
                            ago(-left)
                        ),
                    ),
                }
            }
            // Also between the tries of a restore that fails.
            verdict if verdict.is_up() && self.paused != Some(true) => {
                (!held.is_empty()).then_some((Tone::Warn, "being restored".to_owned()))?
            }
            _ => return None,
        };
        Some(Fact::new(tone, text))
    }

    /// Says what the condition of a dependent means.
    fn because(&self, dependent: &ShownDependent) -> (Tone, &'static str) {
        let is_lost = self.verdict() == Some(Verdict::ScaleDown);
        // Before, it may be about to be created, or down with its shoot.
        let judged = |tone| match self.found() {
            Some(_) => tone,
            None => Tone::Soft,
        };
        match dependent.condition {
            Condition::Running if is_lost => (Tone::Bad, "not protected"),
            Condition::Running => (Tone::Good, "runs"),
            Condition::HeldDown if dependent.is_held_down() => {
                (Tone::Bad, "held down by the watchdog")
            }
            Condition::HeldDown if is_lost => (
                Tone::Bad,
                "not protected, though it carries the marker of a protection",
            ),
            Condition::HeldDown => (
                Tone::Warn,
                "runs, and still carries the marker of a protection: the next healthy probe removes it",
            ),
            Condition::AtZero if self.is_set("restoreOnlyHeldDown") => (
                judged(Tone::Note),
                "scaled to 0 not by the watchdog, and with restoreOnlyHeldDown it stays so",
            ),
            Condition::AtZero => (
                judged(Tone::Note),
                "scaled to 0 not by the watchdog: a healthy probe brings it back",
            ),
            Condition::Ignored => (
                judged(Tone::Note),
                "annotated with ignore-scaling: the watchdog leaves it as it is",
            ),
            Condition::Absent => (
                Tone::Soft,
                "it does not exist, which is no error since it is optional",
            ),
            Condition::Missing => (
                judged(Tone::Bad),
                "it does not exist, though it must: a restore waits for it, for its timeout at most, before those of later levels",
            ),
            Condition::Unscalable => (judged(Tone::Bad), "it is not protected"),
            Condition::Unknown => (Tone::Warn, "it could not be read"),
        }
    }

    /// Says why a dependent is as it is, and what becomes of it.
    fn why(&self, dependent: &ShownDependent) -> Fact {
        let (mut tone, because) = self.because(dependent);
        let mut text = dependent.resource.to_string();
        if let (Some(replicas), Some(ready)) = (dependent.replicas, dependent.ready) {
            let _ = write!(text, " at {replicas}, {ready} ready");
        }
        let _ = write!(text, ": {because}");
        if dependent.is_held_down() {
            let _ = match self.probe {
                Some(_) => write!(text, "; it comes back with {}", dependent.saved()),
                None => write!(text, "; it stays so while the shoot is not probed"),
            };
        }
        if let Some(since) = dependent.since {
            let _ = write!(text, " (since {} or longer)", since.format(TIMESTAMP));
        }
        if let Some(cause) = &dependent.not_scaled {
            let _ = write!(text, "; it could not be scaled: {cause}");
            if dependent.condition != Condition::Absent {
                tone = Tone::Bad;
            }
        }
        let is_said = matches!(
            dependent.condition,
            Condition::Missing | Condition::Unscalable
        );
        if let Some(words) = dependent.refused.as_ref().filter(|_| !is_said) {
            let _ = write!(text, "; in an outage it would be refused: {words}");
            tone = Tone::Bad;
        }
        if let Some(wait) = &dependent.waits {
            let _ = write!(text, "; its write waits for {}", wait.reason);
            let until = wait.until.map(|until| until.format(TIMESTAMP));
            let _ = until.map(|until| write!(text, ", until {until}"));
        }
        if let Some(replicas) = dependent.would_become {
            let _ = write!(
                text,
                "; without the dry run it would be scaled to {replicas}"
            );
        }
        Fact::new(tone, text)
    }
}

impl ShownDependent {
    /// Replicas with which it comes back.
    fn saved(&self) -> String {
        let marks = Marks {
            replicas: self.remembered.clone(),
            ..Marks::default()
        };
        match (marks.remembered(), &self.remembered) {
            (Some(replicas), _) => format!("{replicas} replicas"),
            (None, saved) => {
                let saved = saved.as_deref().unwrap_or("nothing");
                format!("1 replica, since what is remembered ({saved:?}) cannot be used")
            }
        }
    }
}

/// What a state by the Cluster means.
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
            Standing::Elsewhere => {
                let then = match decree {
                    Some(_) => "; the prober does not probe it, and takes its controllers to 0",
                    None => "; the prober neither probes nor writes it",
                };
                (Tone::Bad, "owned by another seed", then)
            }
            _ => {
                let then = "; for longer than is tolerated, the prober leaves the shoot alone";
                (Tone::Warn, "not known to be ours", then)
            }
        };
        Fact::new(tone, format!("{is_ours}: {}{then}", self.sentence()))
    }
}

impl ProbeStatus {
    fn next(&self) -> Fact {
        let due = due(self.next_probe_in_seconds);
        match self.overdue {
            true => Fact::new(Tone::Bad, format!("its probe is overdue, {due}")),
            false => Fact::new(Tone::Soft, format!("next probe {due}")),
        }
    }
}

/// As in `in 5s` or `due for 2s`.
pub(super) fn due(seconds: i64) -> String {
    match seconds {
        ..0 => format!("due for {}", time_span(-seconds)),
        _ => format!("in {}", time_span(seconds)),
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
            "probes fail ({category} at {stage}), so nothing is concluded: {message}, {failed_probes} in a row since {since}"
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
        let mut leases = format!("{} of {} leases expired", self.expired, self.candidates);
        for (count, what) in [
            (self.undecided, "undecided"),
            (self.skewed, "by clocks that differ"),
        ] {
            if count > 0 {
                let _ = write!(leases, ", {count} {what}");
            }
        }
        let _ = write!(leases, " (expired after {}s", self.expired_after_seconds);
        if self.candidates > 1 {
            let _ = write!(leases, ", an outage from {:.0}% on", self.fraction * 100.0);
        }
        let _ = write!(leases, "), probed {}", ago(self.seconds_ago));
        let mut facts = vec![
            Fact::new(tone, describe_verdict(self.verdict)),
            Fact::new(Tone::Soft, leases),
        ];
        if self.grace_too_short {
            let price = describe_short(self.unknown_after_seconds, self.expired_after_seconds);
            facts.push(Fact::new(
                Tone::Warn,
                format!("its grace is too short: {price}"),
            ));
        }
        if !self.excluded.is_empty() {
            let excluded = self.excluded.iter();
            let excluded = list(excluded.map(|(reason, count)| format!("{reason}: {count}")));
            facts.push(Fact::new(Tone::Soft, format!("not counted: {excluded}")));
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

/// What a write waits for.
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
    let clock = match in_seconds(lease.skew) {
        0.0 => String::new(),
        skew => format!("{:+.0}s", -skew),
    };
    let (age, state) = (in_seconds(lease.age), lease.state.into_str());
    (
        tone,
        [
            lease.node.clone(),
            format!("{age:.1}s"),
            state.into(),
            clock,
        ],
    )
}

#[cfg(test)]
mod tests;
