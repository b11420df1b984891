//! The model, made from what the tasks report and the seed's objects show.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use common::view::Namespaced;
use prober_core::config::{Config, Dependent};
use prober_core::moment::Moment;
use prober_core::options::ResolvedOptions;
use prober_core::replicas::DependentState;

use super::in_seconds;
use super::outcome::ProbeOutcome;
use super::settings::ShownOption;
use super::shoot_statuses::{ShootState, ShootStatus, ShootStatuses};
use super::status::{Found, ProbeStatus, ProberStatus, ShootEntry, ShownDependent};
use super::waits::{ShownWait, reason};
use super::why::{self, Condition};
use crate::clock::Clock;
use crate::config;
use crate::seed::Seed;

/// A probe that is due takes probeTimeout at most; after this much more it is overdue.
const SLACK: Duration = Duration::from_secs(1);

/// State of a shoot by the seed's objects, besides its Cluster.
#[derive(Debug, Default)]
pub struct SeedFacts {
    /// Number of its nodes that usable Machines back; `None` while the Machines are not known.
    pub machines: Option<usize>,
    /// `None` while the namespaces are not known.
    pub options: Option<ResolvedOptions>,
    /// In the order of the config.
    pub dependents: Vec<DependentState>,
}

impl Seed {
    /// Returns what the seed shows of a shoot, besides its Cluster.
    pub(crate) fn facts(&self, config: &Config, namespace: &str) -> SeedFacts {
        let backed = |machines: Arc<Namespaced<Option<Arc<str>>>>| {
            machines.values().filter(|node| node.is_some()).count()
        };
        let dependents = config.dependents.iter();
        SeedFacts {
            machines: self.machines(namespace).map(backed),
            options: self.options(config, namespace),
            dependents: dependents
                .map(|dependent| self.state(&dependent.resource, namespace))
                .collect(),
        }
    }

    /// Returns what the seed shows besides its shoots.
    pub(crate) fn status(&self, config: &Config) -> ProberStatus {
        let settings = self.seed_options(config);
        ProberStatus {
            unknown: self.unknown().map(Into::into),
            missing_rights: self.missing_rights.all(),
            settings: settings.iter().flat_map(ShownOption::overruled).collect(),
            config: config::to_json(config),
            ..ProberStatus::default()
        }
    }
}

impl ProberStatus {
    /// Adds all shoots and outages; `facts` says what the seed shows of a shoot.
    pub(crate) fn with_shoots(
        mut self,
        statuses: &ShootStatuses,
        config: &Config,
        facts: impl Fn(&str) -> SeedFacts,
    ) -> Self {
        let clock = statuses.clock;
        self.outages = statuses.outages();
        let entry = |(namespace, state, status): (String, ShootState, Option<ShootStatus>)| {
            let mut facts = facts(&namespace);
            // The last known ones stay in effect while they are unknown.
            let known = status.as_ref().and_then(|status| status.options);
            facts.options = known.or(facts.options);
            let owner = statuses.owners.status(&namespace, clock.now());
            let mut shoot = ShootEntry::new(namespace, &state, &facts, config);
            shoot.owner = owner;
            if let Some(status) = status {
                shoot.note_reports(&status, clock, config);
            }
            shoot
        };
        self.with_entries(statuses.shoots().into_iter().map(entry))
    }

    /// Adds shoots, in the order in which they are shown.
    pub(crate) fn with_entries(mut self, shoots: impl Iterator<Item = ShootEntry>) -> Self {
        self.shoots.extend(shoots);
        for shoot in &self.shoots {
            let count = self.shoots_by_state.entry(shoot.state.clone());
            *count.or_default() += 1;
        }
        self.shoots
            .sort_by(|a, b| (a.urgency(), &a.namespace).cmp(&(b.urgency(), &b.namespace)));
        self
    }
}

impl ShootEntry {
    /// A shoot as the seed shows it.
    pub fn new(namespace: String, state: &ShootState, facts: &SeedFacts, config: &Config) -> Self {
        let options = facts.options.as_ref();
        let only_held_down = options.map_or(config.restore_only_held_down, |options| {
            options.restore_only_held_down.value
        });
        let dependents = config.dependents.iter().zip(&facts.dependents);
        Self {
            namespace,
            state: <&str>::from(state).into(),
            because: state.meaning(),
            machines: facts.machines,
            paused: options.map(|options| options.pause.value),
            settings: options
                .map(ShownOption::all)
                .into_iter()
                .flatten()
                .collect(),
            owner: None,
            dependents: dependents
                .map(|(dependent, state)| ShownDependent::new(dependent, state, only_held_down))
                .collect(),
            probe: None,
        }
    }

    /// Adds what the task of the shoot has reported.
    fn note_reports(&mut self, status: &ShootStatus, clock: Clock, config: &Config) {
        let (now, wall) = (clock.now(), clock.wall_now());
        let time = |at: Moment| -> DateTime<Utc> { (wall + (at - now)).trunc_subsecs(0) };
        for dependent in &mut self.dependents {
            let resource = &dependent.resource;
            dependent.since = status.held_down.get(resource).copied().map(time);
            dependent.not_scaled = status.not_scaled.get(resource).cloned();
            let mut waits = status.waits.iter();
            let waits = waits.find(|(of, _)| of == resource);
            dependent.waits = waits.map(|(_, waits)| ShownWait {
                kind: waits.reason.into_str().into(),
                reason: reason(waits.reason).into(),
                until: waits.until.map(time),
            });
            let mut intended = status.intended.iter();
            let intended = intended
                .find(|(of, _)| of == resource);
            dependent.would_become = intended.map(|(_, after)| *after);
        }
        let late = (now - status.due).to_std().unwrap_or_default();
        self.probe = Some(ProbeStatus {
            scaling: status.scaling.map(|direction| direction.into_str().into()),
            next_probe_in_seconds: (status.due - now).num_seconds(),
            overdue: late > config.probe_timeout + SLACK && !status.has_stood_down(),
            found: status
                .outcome
                .as_ref()
                .map(|outcome| Found::new(outcome, now)),
            failure: status.failure.clone(),
        });
    }
}

impl ShownDependent {
    /// A dependent as the seed shows it.
    pub fn new(dependent: &Dependent, state: &DependentState, only_held_down: bool) -> Self {
        let observed = match state {
            DependentState::Present(observed) => Some(observed),
            _ => None,
        };
        Self {
            resource: dependent.resource.clone(),
            condition: Condition::of(dependent, state),
            replicas: observed.map(|observed| observed.replicas),
            ready: observed.map(|observed| observed.ready),
            remembered: observed.and_then(|observed| observed.marks.replicas.clone()),
            because: why::dependent(dependent, state, only_held_down),
            since: None,
            waits: None,
            not_scaled: None,
            would_become: None,
        }
    }
}

impl Found {
    fn new(outcome: &ProbeOutcome, now: Moment) -> Self {
        let finding = &outcome.finding;
        let excluded = finding.excluded.iter();
        Self {
            seconds_ago: (now - finding.judged_at).num_seconds(),
            verdict: finding.verdict,
            candidates: finding.tally.candidates,
            expired: finding.tally.expired,
            undecided: finding.tally.undecided,
            skewed: finding.skewed,
            fraction: finding.fraction,
            expired_after_seconds: in_seconds(finding.grace.threshold()),
            unknown_after_seconds: in_seconds(finding.grace.period()),
            grace_too_short: finding.grace.is_too_short(),
            excluded: excluded
                .map(|(&reason, &count)| (reason.into(), count))
                .collect(),
            leases: outcome.leases.clone(),
        }
    }
}
