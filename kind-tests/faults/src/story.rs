//! What happens, chosen by chance: to each shoot, to its Services, to the seed, to the processes
//! and their configs.
//!
//! Here the story of a shoot: outages and their ends, with small disturbances before, within and
//! after. Each act undoes what it has done, and ends early when the round is over.

pub mod actor;
pub mod injected_fault;
pub mod life;
mod network;
mod nodes;
mod operator;
pub mod seed;
pub mod services;

use std::sync::Arc;

use anyhow::Result;
use rand::RngExt;
use rand::seq::IndexedRandom;
use tokio::time::{Duration, Instant, sleep};

use self::actor::Actor;
use self::injected_fault::InjectedFault;
use crate::shoot::SoakShoot;
use crate::world::SoakWorld;

/// The story of one shoot.
pub struct ShootStory {
    pub world: Arc<SoakWorld>,
    pub shoot: Arc<SoakShoot>,
    pub actor: Actor,
}

/// What may happen beside an outage, and how often each is chosen.
const ACTS: [(u32, &str); 14] = [
    (14, "API fault"),
    (5, "API server away"),
    (3, "rotation"),
    (2, "bad Secret"),
    (5, "clocks"),
    (6, "nodes that do not count"),
    (2, "node set"),
    (9, "operator"),
    (9, "reconcile"),
    (2, "hibernation"),
    (1, "migration"),
    (1, "deletion"),
    (2, "pause"),
    (2, "grace"),
];

async fn act(name: &str, shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    match name {
        "API fault" => network::api_fault(shoot, actor).await,
        "API server away" => network::api_away(shoot, actor).await,
        "rotation" => network::rotation(shoot, actor).await,
        "bad Secret" => network::bad_secret(shoot, actor).await,
        "clocks" => nodes::clocks(shoot, actor).await,
        "nodes that do not count" => nodes::uncounted(shoot, actor).await,
        "node set" => nodes::node_set(shoot, actor).await,
        "operator" => operator::operator(shoot, actor).await,
        "reconcile" => operator::reconcile(shoot, actor),
        "hibernation" => life::hibernation(shoot, actor).await,
        "migration" => life::migration(shoot, actor).await,
        "deletion" => life::deletion(shoot, actor).await,
        "pause" => life::operators_pause(shoot, actor).await,
        _ => life::grace(shoot, actor).await,
    }
}

impl ShootStory {
    /// Goes on until the round is over; all is undone then.
    pub async fn round(mut self) {
        self.actor.wait(0.5..=6.0).await;
        while !self.actor.is_over() {
            if self.actor.chance(0.6) {
                self.outage().await;
            } else {
                self.act().await;
            }
            let calm = if self.actor.chance(0.3) {
                15.0..=28.0
            } else {
                1.0..=8.0
            };
            self.actor.wait(calm).await;
        }
    }

    /// Nodes lose their way to the API server for a while.
    async fn outage(&mut self) {
        let share = match self.actor.rng.random_range(0..10) {
            0..5 => 1.0,
            5..8 => 0.8,
            _ => 0.35,
        };
        let nodes = some_nodes(&self.shoot, &mut self.actor, share);
        self.shoot.change_nodes(&nodes, |node, _| node.cut = true);
        self.world.oracle.violations.count("cuts");
        self.shoot
            .note(format!("nodes lose their way: {}", nodes.join(", ")));
        let end = Instant::now() + self.actor.seconds(3.0..=26.0);
        let left = || end.saturating_duration_since(Instant::now());
        let eventful = self.actor.chance(0.45);
        while eventful && !left().is_zero() && !self.actor.is_over() {
            if self.actor.chance(0.6) {
                self.act().await;
            }
            let calm = self.actor.seconds(1.0..=6.0);
            self.actor.pause(calm.min(left())).await;
        }
        self.actor.pause(left()).await;
        let at_once = if self.actor.chance(0.3) {
            1
        } else {
            nodes.len().max(1)
        };
        for nodes in nodes.chunks(at_once) {
            self.shoot.change_nodes(nodes, |node, _| node.cut = false);
            self.shoot
                .note(format!("nodes find their way again: {}", nodes.join(", ")));
            self.actor.wait(0.1..=3.0).await;
        }
    }

    /// Something smaller happens.
    async fn act(&mut self) {
        let chosen = ACTS.choose_weighted(&mut self.actor.rng, |(weight, _)| *weight);
        let (_, name) = chosen.expect("the weights are positive");
        let violations = &self.world.oracle.violations;
        violations.count(name);
        if let Err(error) = act(name, &self.shoot, &mut self.actor).await {
            // The soak's own fault: what it wanted to do could not be done.
            self.shoot.note(format!("{name} failed: {error:#}"));
            violations.count("acts that failed");
        }
    }
}

/// Some of the nodes, each with this probability.
fn some_nodes(shoot: &SoakShoot, actor: &mut Actor, probability: f64) -> Vec<String> {
    let nodes = shoot.record().nodes.keys().cloned().collect::<Vec<_>>();
    nodes
        .into_iter()
        .filter(|_| actor.chance(probability))
        .collect()
}

/// A shoot's API server is away for its nodes too, as when its etcd is started again: nobody is
/// answered, and no lease is renewed. All this time passes, also when the round is over: one that
/// is away for a moment only may stay unnoticed between two probes, and for that nothing is
/// promised.
pub async fn be_away(shoot: &SoakShoot, injected: InjectedFault, time: Duration) {
    let away = async {
        shoot.update_record(|record, now| record.leave(now));
        sleep(time).await;
    };
    injected.during(&shoot.api, away).await;
    shoot.update_record(|record, now| record.come_back(now));
}
