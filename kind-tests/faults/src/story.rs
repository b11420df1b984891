//! What happens, chosen by chance: to each shoot, to its Services, to the seed, to the processes
//! and their configs.
//!
//! Here the story of a shoot: outages and their ends, with small disturbances before, within and
//! after. Each act undoes what it has done, and ends early when the round is over.

pub mod actor;
pub mod injected_fault;
pub mod seed;

use std::sync::Arc;

use anyhow::{Result, ensure};
use rand::RngExt;
use rand::seq::IndexedRandom;
use tokio::time::{Instant, sleep};

use self::actor::Actor;
use self::injected_fault::number;
use crate::shoot::{DEPENDENTS, SoakShoot};
use crate::world::SoakWorld;

/// The story of one shoot.
pub struct ShootStory {
    pub world: Arc<SoakWorld>,
    pub shoot: Arc<SoakShoot>,
    pub actor: Actor,
}

/// Acts beside an outage: how often each is chosen, its name, and its steps, as scripts have
/// them. `wait` has the seconds that it takes at least and at most unless the round is over, `pass`
/// also then, and what happens `perhaps` does so mostly. What is in capitals is chosen by chance.
#[rustfmt::skip]
const ACTS: [(u32, &str, &str); 24] = [
    (13, "API fault", "shoot FAULT; wait 1 8; over"),
    (1, "connections cut", "shoot cut; over"),
    // 25 to 60 s with a grace of 40 s. One that is away for a moment only may stay unnoticed between
    // two probes, and all nodes can renew before it is away again: else nothing is promised.
    (2, "API server in trouble", "shoot * *: 503; api away; pass 5 12; api back; over; wait 4 4"),
    (3, "API server away", "shoot refused; api away; pass 5 12; api back; over; wait 4 4"),
    (1, "rotation", "secret renewed; wait 0 3; secret expired; over"),
    (1, "late rotation", "secret expired; wait 0 3; secret renewed; over"),
    (2, "bad Secret", "secret SECRET; wait 0.5 6; secret good; over"),
    (6, "nodes that do not count", "spoil SPOILED; wait 2 12; mend SPOILED"),
    (2, "node set", "joins GUEST; wait 2 12; leaves GUEST"),
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

/// The same for a Service and the pods that need it. What is left of these would come back by itself
/// when its back-off is over. The last one crashes for a reason of its own, long after a recovery.
const SERVICE_ACTS: [(&str, &str); 4] = [
    ("Services that went down", DOWN),
    ("Services that went down", DOWN),
    ("Services that went down", DOWN),
    (
        "pods that crashed",
        "wait 18 18; pods # crash; wait 1 8; pods # run",
    ),
];
const DOWN: &str =
    "service # down; wait 0.5 3; pods # crash; wait 0.5 6; service # up; wait 5 11; pods # run";

/// Memories that somebody writes by hand.
const MEMORIES: [&str; 9] = ["foo", "0", "-1", "", "1.5", "+2", "3", "2147483648", " 2"];

/// What an API server in memory does to the probes.
const FAULTS: [&str; 15] = [
    "* *: throttles 1",
    "* *: 503",
    "list leases: 500",
    "list leases: 403",
    "list leases: 404",
    "list nodes: 403",
    "list nodes: 500",
    "list leases: stalls",
    "* *: stalls",
    "* *: closes",
    "refused",
    "silent",
    "* *: slow",
    "list leases: truncated",
    "list leases: garbage",
];
const SECRETS: [&str; 5] = ["gone", "empty", "nonsense", "plugin", "elsewhere"];
const SPOILED: [&str; 5] = ["pressure", "update", "unmanaged", "failed", "terminating"];

impl ShootStory {
    /// Goes on until the round is over; all is undone then.
    pub async fn round(mut self) {
        self.actor.wait(0.5..=6.0).await;
        while !self.actor.is_over() {
            if self.actor.chance(0.6) {
                self.outage().await;
            } else {
                self.act_by_chance().await;
            }
            let calm = if self.actor.chance(0.3) {
                15.0..=28.0
            } else {
                1.0..=8.0
            };
            self.actor.wait(calm).await;
        }
    }

    /// What happens to the Services that its pods need, until the round is over.
    pub async fn services(mut self) {
        loop {
            self.actor.wait(2.0..=30.0).await;
            if self.actor.is_over() {
                return;
            }
            let (name, steps) = self.actor.pick(SERVICE_ACTS);
            let service = self.actor.pick(["0", "1"]);
            self.act(name, &steps.replace('#', service)).await;
        }
    }

    /// Nodes lose their way to the API server for a while.
    async fn outage(&mut self) {
        let share = match self.actor.rng.random_range(0..10) {
            0..5 => 1.0,
            5..8 => 0.8,
            _ => 0.35,
        };
        let nodes = self.some_nodes(share);
        self.act("cuts", &format!("cut {}", nodes.join(","))).await;
        let end = Instant::now() + self.actor.seconds(3.0..=26.0);
        let left = || end.saturating_duration_since(Instant::now());
        let eventful = self.actor.chance(0.45);
        while eventful && !left().is_zero() && !self.actor.is_over() {
            if self.actor.chance(0.6) {
                self.act_by_chance().await;
            }
            let calm = self.actor.seconds(1.0..=6.0);
            self.actor.pause(calm.min(left())).await;
        }
        self.actor.pause(left()).await;
        let at_once = if self.actor.chance(0.3) {
            1
        } else {
            nodes.len()
        };
        for nodes in nodes.chunks(at_once) {
            let steps = format!("heal {}; wait 0.1 3", nodes.join(","));
            self.act("heals", &steps).await;
        }
    }

    /// Something smaller happens.
    async fn act_by_chance(&mut self) {
        let chosen = ACTS.choose_weighted(&mut self.actor.rng, |(weight, ..)| *weight);
        let (_, name, steps) = chosen.expect("the weights are positive");
        let nodes = self.some_nodes(0.5).join(",");
        let spoiled = format!("{} {nodes}", self.actor.pick(SPOILED));
        let guest = format!("guest-{}", self.actor.rng.random_range(0..1_000_000));
        let replicas = self.actor.rng.random_range(1..=4).to_string();
        let steps = steps
            .replace("NAME", self.actor.pick(DEPENDENTS))
            .replace("MEMORY", self.actor.pick(MEMORIES))
            .replace("FAULT", self.actor.pick(FAULTS))
            .replace("SECRET", self.actor.pick(SECRETS))
            .replace("SPOILED", &spoiled)
            .replace("GUEST", &guest)
            .replace('#', &replicas);
        self.act(name, &steps).await;
    }

    async fn act(&mut self, name: &'static str, steps: &str) {
        self.world.oracle.violations.count(name);
        if let Err(error) = self.tell(steps).await {
            // The soak's own fault: what it wanted to do could not be done.
            self.shoot.note(&format!("{name} failed: {error:#}"));
            self.world.oracle.violations.count("acts that failed");
        }
    }

    /// Does these steps.
    pub async fn tell(&mut self, steps: &str) -> Result<()> {
        for step in steps.split("; ") {
            let uncertain = step.strip_prefix("perhaps ");
            if uncertain.is_some() && self.actor.chance(0.3) {
                continue;
            }
            let step = uncertain.unwrap_or(step);
            match step.split(' ').collect::<Vec<_>>()[..] {
                ["wait", least, most] => self.actor.wait(number(least)?..=number(most)?).await,
                ["pass", least, most] => {
                    sleep(self.actor.seconds(number(least)?..=number(most)?)).await;
                }
                _ => ensure!(self.shoot.act(step)?, "nobody knows what {step} is"),
            }
        }
        Ok(())
    }

    /// Some of the nodes, each with this probability, or one.
    fn some_nodes(&mut self, probability: f64) -> Vec<String> {
        let all: Vec<String> = self.shoot.record().nodes.keys().cloned().collect();
        let one = self.actor.pick(&all).clone();
        let mut some = all;
        some.retain(|name| *name == one || self.actor.chance(probability));
        some
    }
}
