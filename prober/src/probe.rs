//! One probe of one shoot: look, place the leases on the clock, choose candidates, judge, say when to look next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use common::view::Namespaced;

use crate::board::SeenLease;
use crate::clock::Clock;
use crate::core::lease::{Grace, LeaseBook, LeaseClock};
use crate::core::lifecycle::ShootSettings;
use crate::core::moment::Moment;
use crate::core::plan::neat_until;
use crate::core::schedule::verdict_possible;
use crate::core::verdict::{BackedNodes, Candidates, Tally, Verdict, nodes_matter};
use crate::engine::error::{Cause, ProbeError, Stage};
use crate::engine::{Budget, Engine, Seen};
use crate::seed::Seed;
use crate::seed::secret::ShootSecret;

/// So many leases are shown to people: more would be read by nobody, and thousands of shoots may be down at once.
const SHOWN_LEASES: usize = 20;
/// However short a grace a shoot asks for, doubt brings no look sooner than this.
const SHORTEST_GAP: TimeDelta = TimeDelta::seconds(1);

/// What a probe judges by.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The shoot's grace period, or the configured one.
    pub grace: Grace,
    /// From which share of expired leases on there is an outage.
    pub fraction: f64,
    /// Bounds the whole probe.
    pub timeout: Duration,
    /// What the shoot says of its pools.
    pub settings: ShootSettings,
}

/// What a complete probe found.
#[derive(Debug)]
pub struct Finding {
    /// What is to be done.
    pub verdict: Verdict,
    /// The moment that was judged: when the leases were asked for.
    pub judged_at: Moment,
    /// By which grace.
    pub grace: Grace,
    /// The numbers behind it.
    pub tally: Tally,
    /// Whether nodes had to be listed, so that the candidates are known and not just an upper bound.
    pub nodes_listed: bool,
    /// How many leases or nodes did not count, by reason.
    pub excluded: BTreeMap<&'static str, usize>,
    /// How many leases are judged by clocks that differ from ours.
    pub skewed: usize,
    /// The oldest leases that counted, oldest first; none while nodes do not matter.
    pub leases: Vec<SeenLease>,
    /// When the verdict could fall if nothing were renewed from now on.
    pub verdict_possible: Option<Moment>,
    /// See [`Outlook::doubt_from`](crate::core::schedule::Outlook::doubt_from).
    pub doubt_from: Moment,
    /// Until when a scale-down may wait between its levels; see [`neat_until`].
    pub neat_until: Option<Moment>,
}

/// Probes one shoot again and again; what it learned stays.
pub struct Probe {
    namespace: String,
    clock: Clock,
    seed: Arc<Seed>,
    engine: Engine<ShootSecret>,
    leases: LeaseBook,
    /// The Machines that were seen last.
    machines: Arc<Namespaced<String>>,
    /// The nodes of these.
    backed: BackedNodes,
}

impl Probe {
    /// A probe that has not looked yet.
    pub fn new(namespace: String, clock: Clock, seed: Arc<Seed>) -> Self {
        let engine = Engine::new(clock, ShootSecret { seed: Arc::clone(&seed), namespace: namespace.clone() });
        Self {
            namespace,
            clock,
            seed,
            engine,
            leases: LeaseBook::default(),
            machines: Arc::default(),
            backed: BackedNodes::default(),
        }
    }

    /// Looks once. `at_rest` says that a scale-up would find nothing to do.
    ///
    /// # Errors
    /// When there is no complete, most-recent answer to everything that matters; that is never evidence of anything.
    pub async fn look(&mut self, rules: &Rules, at_rest: bool) -> Result<Finding, ProbeError> {
        let budget = Budget::starting_now(rules.timeout);
        let Seen { look, items } = self.engine.leases(budget).await?;
        self.leases.observe(&look, items.iter(), rules.grace);
        drop(items);
        let unknown = ProbeError { stage: Stage::Machines, cause: Cause::SeedUnknown("Machines") };
        self.follow_machines(self.seed.machines(&self.namespace).ok_or(unknown)?);
        let now = look.sent;

        let allowed = Candidates::by_machines(&self.leases, &self.backed);
        let nodes_listed = nodes_matter(allowed.tally(now, rules.grace), at_rest);
        let candidates = if nodes_listed {
            let nodes = self.engine.nodes(budget).await?;
            Candidates::by_nodes(&self.leases, &self.backed, &nodes.items, &rules.settings.pool_conditions)
        } else {
            allowed
        };

        let tally = candidates.tally(now, rules.grace);
        let clocks = candidates.clocks();
        Ok(Finding {
            verdict: tally.verdict(rules.fraction),
            judged_at: now,
            grace: rules.grace,
            tally,
            nodes_listed,
            excluded: self.excluded(&candidates),
            skewed: clocks.clone().filter(|clock| !clock.skew(rules.grace).is_zero()).count(),
            verdict_possible: verdict_possible(clocks.clone(), nodes_listed, rules.fraction, rules.grace),
            doubt_from: now + rules.grace.longest_gap().max(SHORTEST_GAP),
            leases: if nodes_listed { oldest(&candidates, now, rules.grace) } else { Vec::new() },
            neat_until: neat_until(clocks, self.clock.now(), rules.grace),
        })
    }

    /// Healthy shoots keep their Machines, so that their nodes need not be put in order for each look.
    fn follow_machines(&mut self, machines: Arc<Namespaced<String>>) {
        if !Arc::ptr_eq(&machines, &self.machines) {
            self.backed = machines.values().map(|node| node.as_str()).collect();
            self.machines = machines;
        }
    }

    fn excluded(&self, candidates: &Candidates<'_>) -> BTreeMap<&'static str, usize> {
        let mut excluded: BTreeMap<_, _> = candidates.excluded.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        if self.leases.without_renew_time() > 0 {
            excluded.insert("no_renew_time", self.leases.without_renew_time());
        }
        excluded
    }
}

/// What people are shown of the leases.
fn oldest(candidates: &Candidates<'_>, now: Moment, grace: Grace) -> Vec<SeenLease> {
    let mut leases: Vec<_> = candidates.leases.iter().map(|&(node, clock)| (clock.renewed(grace), node, clock)).collect();
    leases.sort_unstable_by_key(|&(renewed, node, _)| (renewed, node));
    leases.truncate(SHOWN_LEASES);
    let seen = |(renewed, node, clock): (Moment, &str, &LeaseClock)| SeenLease {
        node: node.to_owned(),
        renewed,
        state: clock.state(now, grace),
        skew: clock.skew(grace),
    };
    leases.into_iter().map(seen).collect()
}
