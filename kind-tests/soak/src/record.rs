//! All that is known of one shoot: what its nodes do, how its dependents are, what keeps the watchdog away, and what happened.
//!
//! It is written to from inside of the stores' locks, so whoever holds it must not use a store.

pub mod clock;
pub mod episode;
pub mod judge;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use self::clock::Clock;
use self::episode::Episode;
use crate::pace::{BEAT, FINDING_AGE, GRACE};
use crate::truth::{Judgement, Lease};
use crate::weather::Weather;
use crate::writes::Dependent;

/// How much of the past is kept: more than any finding's age.
const SAMPLES: usize = 600;
const EVENTS: usize = 150;

/// What a node does, and what counts of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// When it really renewed its lease last.
    pub renewed: Instant,
    /// When it renews next.
    pub due: Instant,
    /// Whether it has lost its way to the API server.
    pub cut: bool,
    pub clock: Clock,
    /// Whether its Machine is neither Failed nor Terminating.
    pub backed: bool,
    /// Whether the node itself says nothing against it.
    pub counts: bool,
}

impl Node {
    /// A node that has just renewed, and will again at its phase.
    pub fn new(now: Instant, phase: Duration) -> Self {
        let mut clock = Clock::default();
        clock.stamp();
        Self { renewed: now, due: now + phase, cut: false, clock, backed: true, counts: true }
    }
}

/// The oracle's view at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Instant,
    pub judgement: Judgement,
    /// Whether the shoot's API server could be asked.
    pub answers: bool,
}

/// All that is known of one shoot.
#[derive(Debug)]
pub struct Record {
    pub namespace: String,
    pub grace: Duration,
    pub nodes: BTreeMap<String, Node>,
    pub dependents: BTreeMap<String, Dependent>,
    /// What keeps the shoot's API server from answering the watchdog.
    pub api: Weather,
    /// Since when its Cluster says that it must not be probed.
    pub stopped_since: Option<Instant>,
    /// Since when operators want it left alone.
    pub paused_since: Option<Instant>,
    /// Since when somebody can have been watching it without a break.
    pub watched_from: Instant,
    /// Until when it is open which nodes and which grace the watchdog judges by.
    unsettled_until: Instant,
    samples: VecDeque<Sample>,
    events: VecDeque<(Instant, String)>,
    /// Writes that have arrived and are not applied yet.
    arrivals: VecDeque<(Instant, String)>,
    /// When somebody else last brought a dependent up: it goes down again with the next look, which nothing hastens.
    raised_at: Option<Instant>,
    exposed_since: Option<Instant>,
    stuck_since: Option<Instant>,
    pub episode: Option<Episode>,
}

impl Record {
    /// Of a shoot that may be probed from `from` on.
    pub fn new(namespace: String, from: Instant) -> Self {
        Self {
            namespace,
            grace: GRACE,
            nodes: BTreeMap::new(),
            dependents: BTreeMap::new(),
            api: Weather::clear_from(from),
            stopped_since: None,
            paused_since: None,
            watched_from: from,
            unsettled_until: from,
            samples: VecDeque::new(),
            events: VecDeque::new(),
            arrivals: VecDeque::new(),
            raised_at: None,
            exposed_since: None,
            stuck_since: None,
            episode: None,
        }
    }

    /// Notes what happened.
    pub fn note(&mut self, now: Instant, event: impl Into<String>) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((now, event.into()));
    }

    /// Notes a change of a dependent that is not the watchdog's.
    pub fn others_wrote(&mut self, name: &str, was: &Dependent, is: &Dependent, now: Instant) {
        self.note(now, format!("others write {name}: {was} -> {is}"));
        if is.replicas > was.replicas {
            self.raised_at = Some(now);
        }
    }

    /// Which nodes count, or the grace, have changed: the watchdog may judge by the old or the new for a while.
    pub fn unsettle(&mut self, now: Instant) {
        self.unsettled_until = now + FINDING_AGE;
    }

    /// A write to a dependent has arrived at the seed.
    pub fn arrived(&mut self, name: &str, now: Instant) {
        if self.arrivals.len() == EVENTS {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back((now, name.to_owned()));
    }

    /// What happened lately, a line each.
    pub fn story(&self, start: Instant) -> Vec<String> {
        self.events.iter().map(|(at, event)| format!("{:8.2} s  {event}", (*at - start).as_secs_f64())).collect()
    }

    /// The leases that count now.
    fn leases(&self, watched_from: Instant, now: Instant) -> Vec<Lease> {
        let counted = self.nodes.values().filter(|node| node.backed && node.counts);
        let watched = now.saturating_duration_since(watched_from);
        counted
            .map(|node| Lease {
                silent: now.saturating_duration_since(node.renewed),
                skewed: node.clock.is_off(now),
                early: node.clock.early(self.grace * 3 / 4),
                watched,
            })
            .collect()
    }

    /// Whether there has been no trace of an outage for so long.
    pub fn healthy_for(&self, time: Duration) -> bool {
        self.judged_for(time, |judgement| !judgement.may_down)
    }

    /// Whether there has been an outage beyond doubt for so long.
    pub fn ill_for(&self, time: Duration) -> bool {
        self.judged_for(time, |judgement| !judgement.may_up)
    }

    fn judged_for(&self, time: Duration, so: impl Fn(&Judgement) -> bool) -> bool {
        let Some(last) = self.samples.back() else { return false };
        let from = last.at - time;
        self.samples.front().is_some_and(|first| first.at < from)
            && self.samples.iter().rev().take_while(|sample| sample.at >= from).all(|sample| so(&sample.judgement))
    }

    /// Whether all that can be taken down is.
    fn is_safe(&self) -> bool {
        self.dependents.values().all(|dependent| dependent.ignored || dependent.replicas == 0)
    }

    /// Whether nothing is left to be restored.
    fn is_restored(&self) -> bool {
        self.dependents.values().all(|dependent| dependent.ignored || (dependent.replicas > 0 && !dependent.marker))
    }

    /// Why the shoot is not at rest; none when it is.
    pub fn unrest(&self, now: Instant) -> Option<String> {
        let silent = self.nodes.iter().find(|(_, node)| node.cut || now - node.renewed > 2 * BEAT);
        let held = self.dependents.iter().find(|(_, dependent)| {
            dependent.replicas == 0 || dependent.marker || dependent.ignored || dependent.ready != dependent.replicas
        });
        match (silent, held) {
            (Some((name, _)), _) => Some(format!("{name} does not renew its lease")),
            (None, Some((name, dependent))) => Some(format!("{name} is at {dependent}, {} ready", dependent.ready)),
            (None, None) => None,
        }
    }
}
