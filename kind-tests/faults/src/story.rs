//! What happens, chosen by chance: to each shoot, to its Services, to the seed, to the processes
//! and their configs.
//!
//! Here the story of a shoot: outages and their ends, with small disturbances before, within and
//! after. Each act undoes what it has done, and ends early when the round is over.

pub mod actor;
pub mod injected_fault;
mod network;
mod nodes;
pub mod seed;
pub mod services;

use std::sync::Arc;

use anyhow::{Result, ensure};
use rand::RngExt;
use rand::seq::IndexedRandom;
use tokio::time::{Duration, Instant, sleep};

use self::actor::Actor;
use self::injected_fault::{InjectedFault, number};
use crate::shoot::{DEPENDENTS, SoakShoot};
use crate::world::SoakWorld;

/// The story of one shoot.
pub struct ShootStory {
    pub world: Arc<SoakWorld>,
    pub shoot: Arc<SoakShoot>,
    pub actor: Actor,
}

/// Acts beside an outage: how often each is chosen, its name, and its steps, as scripts have
/// them. `wait` has the seconds that it takes at least and at most, and what happens `perhaps` does so
/// mostly; NAME is any dependent, # a number of replicas. Without steps it is told elsewhere.
#[rustfmt::skip]
const ACTS: [(u32, &str, &str); 21] = [
    (14, "API fault", ""),
    (5, "API server away", ""),
    (3, "rotation", ""),
    (2, "bad Secret", ""),
    (6, "nodes that do not count", ""),
    (2, "node set", ""),
    (2, "scaled by hand", "others NAME #"),
    (1, "scaled to 0 by hand", "others NAME 0"),
    (1, "ignored", "others NAME ignored; wait 1 8; others NAME heeded"),
    (1, "ignored at 0", "others NAME ignored; others NAME 0; wait 1 8; others NAME heeded"),
    (1, "other memory", "others NAME remembers MEMORY"),
    (1, "no memory", "others NAME forgets"),
    (1, "marker", "others NAME marked"),
    (1, "no marker", "others NAME unmarked"),
    // One that must be there and is not holds up the way back, so it is soon there again.
    (1, "recreated", "others NAME gone; wait 0 1; others NAME new"),
    (9, "reconcile", "reconcile"),
    // The control plane is there again before the shoot may be probed.
    (2, "hibernation", r#"cluster {"shoot":{"spec":{"hibernation":{"enabled":true}}}}; hands off; wait 0.2 3; scale-all 0; wait 1 8; cluster {"shoot":{"spec":{"hibernation":{"enabled":false}},"status":{"hibernated":true}}}; perhaps scale-all up; wait 0.5 3; hands on; cluster {"shoot":{"status":{"hibernated":false}}}"#),
    (1, "migration", r#"cluster {"shoot":{"status":{"lastOperation":{"type":"Migrate","state":"Processing"}}}}; hands off; wait 2 8; cluster {"shoot":{"status":{"lastOperation":{"type":"Restore","state":"Processing"}}}}; wait 0.5 4; hands on; cluster {"shoot":{"status":{"lastOperation":{"type":"Restore","state":"Succeeded"}}}}"#),
    (1, "deletion", r#"cluster {"shoot":{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}}; hands off; wait 0 3; cluster gone; wait 0 6; hands on; cluster new"#),
    (2, "pause", "pause true; hands off; wait 3 12; hands on; pause -"),
    (2, "grace", "grace 12; wait 5 20; grace 8"),
];

/// Memories that somebody writes by hand.
const MEMORIES: [&str; 9] = ["foo", "0", "-1", "", "1.5", "+2", "3", "2147483648", " 2"];

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
        let chosen = ACTS.choose_weighted(&mut self.actor.rng, |(weight, ..)| *weight);
        let (_, name, steps) = chosen.expect("the weights are positive");
        self.world.oracle.violations.count(name);
        let (shoot, actor) = (&*self.shoot, &mut self.actor);
        let done = match *name {
            "API fault" => network::api_fault(shoot, actor).await,
            "API server away" => network::api_away(shoot, actor).await,
            "rotation" => network::rotation(shoot, actor).await,
            "bad Secret" => network::bad_secret(shoot, actor).await,
            "nodes that do not count" => nodes::uncounted(shoot, actor).await,
            "node set" => nodes::node_set(shoot, actor).await,
            _ => self.tell(steps).await,
        };
        if let Err(error) = done {
            // The soak's own fault: what it wanted to do could not be done.
            self.shoot.note(format!("{name} failed: {error:#}"));
            self.world.oracle.violations.count("acts that failed");
        }
    }

    async fn tell(&mut self, steps: &str) -> Result<()> {
        let replicas = self.actor.rng.random_range(1..=4).to_string();
        let steps = steps
            .replace("NAME", self.actor.pick(DEPENDENTS))
            .replace("MEMORY", self.actor.pick(MEMORIES))
            .replace('#', &replicas);
        for step in steps.split("; ") {
            let uncertain = step.strip_prefix("perhaps ");
            if uncertain.is_some() && self.actor.chance(0.3) {
                continue;
            }
            let step = uncertain.unwrap_or(step);
            let wait = step.strip_prefix("wait ");
            match wait.and_then(|range| range.split_once(' ')) {
                Some((least, most)) => self.actor.wait(number(least)?..=number(most)?).await,
                None => ensure!(self.shoot.act(step)?, "nobody knows what {step} is"),
            }
        }
        Ok(())
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
