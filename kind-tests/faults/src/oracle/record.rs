//! All that is known of one shoot: what its nodes do, how its dependents are, what keeps the watchdog away, and what happened.
//!
//! It is written to from inside of the stores' locks, so whoever holds it must not use a store.

pub mod clock;
pub mod episode;
pub mod judge;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use faults::writes::Dependent;
use tokio::time::Instant;

use self::clock::Clock;
use self::episode::Episode;
use super::disturbances::Disturbance;
use super::truth::{BLUR, Judgement, Lease, TOLERANCE};
use crate::pace::{BEAT, FINDING_AGE, GRACE, WELL};

/// How much of the past is kept: more than any finding's age, and than a replica that does not lead waits before it restores, at ten
/// samples a second and one more for each write.
const SAMPLES: usize = 1000;
const EVENTS: usize = 150;

/// What a node does, and what counts of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// When it really renewed its lease last.
    pub renewed: Instant,
    /// Whether it has lost its way to the API server.
    pub cut: bool,
    pub clock: Clock,
    /// Whether its Machine is neither Failed nor Terminating.
    pub backed: bool,
    /// Whether the node itself says nothing against it.
    pub counts: bool,
}

impl Node {
    /// A node that has just renewed.
    pub fn new(now: Instant) -> Self {
        let mut clock = Clock::default();
        clock.stamp();
        Self { renewed: now, cut: false, clock, backed: true, counts: true }
    }
}

/// When a shoot's API server was away, for its nodes too.
#[derive(Clone, Copy, Debug)]
struct Away {
    from: Instant,
    /// None while it is.
    until: Option<Instant>,
}

/// A write that has arrived and is not applied yet.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub at: Instant,
    /// The dependent's name.
    pub name: String,
    /// How it is known that the writer does not lead; none when it does.
    pub leaderless: Option<String>,
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
    pub api: Disturbance,
    /// Since when its Cluster says that it must not be probed.
    pub stopped_since: Option<Instant>,
    /// Since when operators want it left alone.
    pub paused_since: Option<Instant>,
    /// Since when somebody can have been watching it without a break.
    pub watched_from: Instant,
    away: Option<Away>,
    /// Until when it is open which nodes and which grace the watchdog judges by.
    unsettled_until: Instant,
    samples: VecDeque<Sample>,
    events: VecDeque<(Instant, String)>,
    arrivals: VecDeque<Arrival>,
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
            api: Disturbance::clear_from(from),
            stopped_since: None,
            paused_since: None,
            watched_from: from,
            away: None,
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
    pub fn arrived(&mut self, arrival: Arrival) {
        if self.arrivals.len() == EVENTS {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(arrival);
    }

    /// The API server goes away, for its nodes too.
    pub fn leave(&mut self, now: Instant) {
        self.note(now, "the API server is away, for its nodes too");
        self.away = Some(Away { from: now, until: None });
    }

    /// It is back, and so are the nodes that have their way to it as soon as each tries again.
    pub fn come_back(&mut self, now: Instant) {
        self.note(now, "the API server is back");
        if let Some(away) = &mut self.away {
            away.until = Some(now);
        }
    }

    /// Whether the nodes cannot reach it.
    pub fn is_away(&self) -> bool {
        self.away.is_some_and(|away| away.until.is_none())
    }

    /// As much of a node's silence as is evidence of an outage: while its API server is away, and for a beat and a second after that,
    /// what there was before.
    fn evident(&self, renewed: Instant, now: Instant) -> Duration {
        let in_doubt = |away: &Away| away.until.is_none_or(|until| now + BLUR < until + BEAT + TOLERANCE);
        self.away.filter(in_doubt).map_or(now, |away| away.from).saturating_duration_since(renewed)
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
                evident: self.evident(node.renewed, now),
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

    /// Whether an outage beyond doubt, which any replica has seen, lies less than [`WELL`] before this moment.
    fn was_ill_lately(&self, at: Instant) -> bool {
        let from = at - (WELL - FINDING_AGE);
        let mut ill_since = None;
        self.samples.iter().filter(|sample| sample.at >= from && sample.at <= at).any(|sample| {
            let ill = sample.answers && !sample.judgement.may_up;
            ill_since = ill.then(|| ill_since.unwrap_or(sample.at));
            // A look was made in so long a time.
            ill_since.is_some_and(|since| sample.at - since >= FINDING_AGE)
        })
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

    /// Why the shoot is not idle; none when it is.
    pub fn why_not_idle(&self, now: Instant) -> Option<String> {
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
