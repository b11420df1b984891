//! All that is known of one shoot: what its nodes do, how its dependents and pods are, what keeps
//! the watchdog away, and what happened.
//!
//! It is written to from inside of the stores' locks, so whoever holds it must not use a store.

pub mod judge;
pub mod pods;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use self::judge::{LastingCondition, Sample};
use self::pods::ControlPlanePods;
use super::disturbances::ClearFrom;
use super::truth::{BLUR, LeaseTruth};
use crate::pace::{BEAT, GRACE, PROBE_AGE};
use crate::writes::ScaledDependent;

/// How much of the past is kept: more than a fault of a minute and any probe's age, at ten samples a
/// second and one more for each write.
const SAMPLES: usize = 1000;
const EVENTS: usize = 70;
/// A lease that is not known yet is watched for a beat and so much longer before its silence counts
/// (D-21).
const TOLERANCE: Duration = Duration::from_secs(1);

/// What a node does, and what counts of it.
#[derive(Clone, Debug)]
pub struct NodeState {
    /// When it really renewed its lease last.
    pub renewed: Instant,
    /// Whether it has lost its way to the API server.
    pub cut: bool,
    /// Whether its Machine is neither Failed nor Terminating, and the node itself says nothing
    /// against it.
    pub counts: bool,
}

impl NodeState {
    /// A node that has just renewed.
    pub fn new(now: Instant) -> Self {
        Self {
            renewed: now,
            cut: false,
            counts: true,
        }
    }
}

/// All that is known of one shoot.
#[derive(Debug)]
pub struct ShootRecord {
    pub grace: Duration,
    pub nodes: BTreeMap<String, NodeState>,
    pub dependents: BTreeMap<String, ScaledDependent>,
    /// The replicas that its owner wants of them.
    pub wanted: BTreeMap<String, i64>,
    /// The tokens that it may be probed by, the one in its Secret last.
    pub tokens: Vec<String>,
    pub pods: ControlPlanePods,
    /// What keeps the shoot's API server from answering the watchdog.
    pub api: ClearFrom,
    /// Since when its Cluster says that it must not be probed, or operators have paused it.
    pub left_alone_since: Option<Instant>,
    /// Since when somebody can have been watching it without a break.
    pub watched_from: Instant,
    /// From when until when its API server was away, for its nodes too; without an end while it is.
    away: Option<(Instant, Option<Instant>)>,
    /// Until when it is open which nodes and which grace the watchdog judges by.
    unsettled_until: Instant,
    samples: VecDeque<Sample>,
    events: VecDeque<(Instant, String)>,
    /// When somebody else last changed a dependent: one that is up goes down again with the next
    /// probe, which nothing hastens.
    touched_at: Instant,
    /// Since when complete answers have shown an outage, and when a probe has last seen one.
    failing_since: Option<Instant>,
    seen_failing_at: Option<Instant>,
    exposed: LastingCondition,
    stuck: LastingCondition,
}

impl ShootRecord {
    /// Of a shoot that may be probed from `from` on.
    pub fn new(from: Instant) -> Self {
        Self {
            grace: GRACE,
            nodes: BTreeMap::new(),
            dependents: BTreeMap::new(),
            wanted: BTreeMap::new(),
            tokens: Vec::new(),
            pods: ControlPlanePods::new(from),
            api: Some(from),
            left_alone_since: None,
            watched_from: from,
            away: None,
            unsettled_until: from,
            samples: VecDeque::new(),
            events: VecDeque::new(),
            touched_at: from,
            failing_since: None,
            seen_failing_at: None,
            exposed: LastingCondition::default(),
            stuck: LastingCondition::default(),
        }
    }

    /// Notes what happened.
    pub fn note(&mut self, now: Instant, event: impl Into<String>) {
        keep(&mut self.events, EVENTS, (now, event.into()));
    }

    /// Notes a change of a dependent that is not the watchdog's.
    pub fn others_wrote(&mut self, name: &str, is: ScaledDependent, now: Instant) {
        let was = self.dependents.get(name).cloned().unwrap_or_default();
        if was != is {
            self.note(now, format!("others write {name}: {was:?} -> {is:?}"));
            self.touched_at = now;
        }
        self.dependents.insert(name.to_owned(), is);
    }

    /// Which nodes count, or the grace, have changed: the watchdog may judge by the old or the new
    /// for a while.
    pub fn unsettle(&mut self, now: Instant) {
        self.unsettled_until = now + PROBE_AGE;
    }

    /// The API server goes away, for its nodes too, or is back, and so are the nodes that have their
    /// way to it as soon as each tries again.
    pub fn leave(&mut self, now: Instant, is_away: bool) {
        self.away = match self.away {
            Some((from, _)) if !is_away => Some((from, Some(now))),
            _ => Some((now, None)),
        };
    }

    /// Whether the nodes cannot reach it.
    pub fn is_away(&self) -> bool {
        matches!(self.away, Some((_, None)))
    }

    /// What happened lately, a line each.
    pub fn story(&self, start: Instant) -> Vec<String> {
        let line = |(at, event): &(Instant, String)| {
            format!("{:8.2} s  {event}", (*at - start).as_secs_f64())
        };
        self.events.iter().map(line).collect()
    }

    /// The leases that count now.
    fn leases(&self, now: Instant) -> Vec<LeaseTruth> {
        // While the API server is away, and for a beat and a second after that, what was silent
        // before is evidence of an outage.
        let in_doubt = |until: Option<Instant>| {
            until.is_none_or(|until| now + BLUR < until + BEAT + TOLERANCE)
        };
        let away = self.away.filter(|(_, until)| in_doubt(*until));
        let evidence = away.map_or(now, |(from, _)| from);
        let counted = self.nodes.values().filter(|node| node.counts);
        let lease = |node: &NodeState| LeaseTruth {
            silent: now.saturating_duration_since(node.renewed),
            evident: evidence.saturating_duration_since(node.renewed),
        };
        counted.map(lease).collect()
    }

    /// Whether all that can be taken down is.
    fn is_safe(&self) -> bool {
        let mut dependents = self.dependents.values();
        dependents.all(|dependent| dependent.ignored || dependent.replicas == 0)
    }

    /// Whether nothing is left to be restored.
    fn is_restored(&self) -> bool {
        let mut dependents = self.dependents.values();
        dependents.all(|one| one.ignored || (one.replicas > 0 && !one.marker))
    }

    /// Why the shoot is not idle; none when it is.
    pub fn why_not_idle(&self, now: Instant) -> Option<String> {
        let is_silent = |node: &NodeState| node.cut || now - node.renewed > 2 * BEAT;
        let is_scaled = |one: &ScaledDependent| one.replicas == 0 || one.marker || one.ignored;
        if let Some((name, _)) = self.nodes.iter().find(|(_, node)| is_silent(node)) {
            return Some(format!("{name} does not renew its lease"));
        }
        if let Some((name, one)) = self.dependents.iter().find(|(_, one)| is_scaled(one)) {
            return Some(format!("{name} is {one:?}"));
        }
        self.pods.why_not_idle()
    }
}

/// The newest ones are kept.
fn keep<T>(past: &mut VecDeque<T>, most: usize, newest: T) {
    if past.len() == most {
        past.pop_front();
    }
    past.push_back(newest);
}
