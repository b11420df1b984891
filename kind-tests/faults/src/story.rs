//! What happens, chosen by chance: to each shoot, to its Services, to the seed, to the processes and their configs.
//!
//! Here the story of a shoot: outages and healing, with small disturbances before, within and after. Each act undoes what it has done,
//! and ends early when the round is over.

pub mod actor;
mod clocks;
pub mod ills;
mod life;
mod network;
mod operator;
pub mod seed;
pub mod services;

use std::sync::Arc;

use anyhow::Result;
use futures::future::BoxFuture;
use rand::RngExt;
use rand::seq::IndexedRandom;
use testbed::api::MemoryApi;
use tokio::time::{Duration, Instant, sleep};

use self::actor::Actor;
use self::ills::Ill;
use crate::shoot::Shoot;
use crate::world::World;

/// The story of one shoot.
pub struct Story {
    pub world: Arc<World>,
    pub shoot: Arc<Shoot>,
    pub actor: Actor,
}

type Act = for<'a> fn(&'a mut Story) -> BoxFuture<'a, Result<()>>;

/// What may happen beside an outage, and how often each is chosen.
const ACTS: [(u32, &str, Act); 15] = [
    (14, "API fault", |story| Box::pin(story.api_fault())),
    (5, "API server away", |story| Box::pin(story.api_away())),
    (3, "rotation", |story| Box::pin(story.rotation())),
    (2, "bad Secret", |story| Box::pin(story.bad_secret())),
    (5, "clocks", |story| Box::pin(story.clocks())),
    (3, "node conditions", |story| Box::pin(story.node_conditions())),
    (3, "machines", |story| Box::pin(story.machines())),
    (2, "node set", |story| Box::pin(story.node_set())),
    (9, "operator", |story| Box::pin(story.operator())),
    (9, "reconcile", |story| Box::pin(story.reconcile())),
    (2, "hibernation", |story| Box::pin(story.hibernation())),
    (1, "migration", |story| Box::pin(story.migration())),
    (1, "deletion", |story| Box::pin(story.deletion())),
    (2, "pause", |story| Box::pin(story.operators_pause())),
    (2, "grace", |story| Box::pin(story.grace())),
];

impl Story {
    /// Goes on until the round is over; all is undone then.
    pub async fn round(&mut self) {
        self.actor.wait(0.5..=6.0).await;
        while !self.actor.is_over() {
            if self.actor.chance(0.6) {
                self.outage().await;
            } else {
                self.act().await;
            }
            let calm = if self.actor.chance(0.3) { 15.0..=28.0 } else { 1.0..=8.0 };
            self.actor.wait(calm).await;
        }
    }

    /// Some of the nodes, each with this probability.
    fn some_nodes(&mut self, probability: f64) -> Vec<String> {
        let nodes = self.shoot.record().nodes.keys().cloned().collect::<Vec<_>>();
        nodes.into_iter().filter(|_| self.actor.chance(probability)).collect()
    }

    /// Nodes lose their way to the API server for a while.
    async fn outage(&mut self) {
        let share = match self.actor.rng.random_range(0..10) {
            0..5 => 1.0,
            5..8 => 0.8,
            _ => 0.35,
        };
        let nodes = self.some_nodes(share);
        let set_cut = |shoot: &Shoot, nodes: &[String], cut| shoot.change_nodes(nodes, |node, _| node.cut = cut);
        set_cut(&self.shoot, &nodes, true);
        self.world.oracle.ledger.count("cuts");
        self.shoot.note(format!("nodes lose their way: {}", nodes.join(", ")));
        let end = Instant::now() + self.actor.seconds(3.0..=26.0);
        let left = || end.saturating_duration_since(Instant::now());
        if self.actor.chance(0.45) {
            while !left().is_zero() && !self.actor.is_over() {
                if self.actor.chance(0.6) {
                    self.act().await;
                }
                let calm = self.actor.seconds(1.0..=6.0);
                self.actor.pause(calm.min(left())).await;
            }
        } else {
            self.actor.pause(left()).await;
        }
        if self.actor.chance(0.3) {
            for node in &nodes {
                set_cut(&self.shoot, std::slice::from_ref(node), false);
                self.shoot.note(format!("{node} finds its way again"));
                self.actor.wait(0.1..=3.0).await;
            }
        } else {
            set_cut(&self.shoot, &nodes, false);
            self.shoot.note("all nodes find their way again");
        }
    }

    /// Something smaller happens.
    async fn act(&mut self) {
        let act = ACTS.choose_weighted(&mut self.actor.rng, |(weight, ..)| *weight);
        let (_, name, act) = act.expect("the weights are positive");
        self.world.oracle.ledger.count("acts");
        if let Err(error) = act(self).await {
            // The soak's own fault: what it wanted to do could not be done.
            self.shoot.note(format!("{name} failed: {error:#}"));
            self.world.oracle.ledger.count("acts that failed");
        }
    }
}

/// A shoot's API server is away for its nodes too, as when its etcd is started again: nobody is answered, and no lease is renewed. All
/// this time passes, also when the round is over: one that is away for a moment only may stay unnoticed between two looks, and for that
/// nothing is promised.
pub async fn be_away(shoot: &Shoot, api: &MemoryApi, ill: Ill, time: Duration) {
    let fault = ill.begin(api);
    shoot.know(|record, now| record.leave(now));
    sleep(time).await;
    Ill::end(api, fault);
    shoot.know(|record, now| record.come_back(now));
}
