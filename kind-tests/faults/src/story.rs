//! What happens to one shoot, chosen by chance: outages and healing, with small disturbances before, within and after.
//!
//! Each act undoes what it has done, and ends early when rest is called for.

mod clocks;
mod life;
mod network;
mod operator;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::rng::Rng;
use crate::shoot::Shoot;
use crate::world::World;

/// The story of one shoot.
pub struct Story {
    pub world: Arc<World>,
    pub shoot: Arc<Shoot>,
    pub rng: Rng,
    rest: watch::Receiver<bool>,
}

/// What may happen beside an outage.
#[derive(Clone, Copy, Debug)]
enum Act {
    ApiFault,
    ApiAway,
    Rotation,
    BadSecret,
    Clocks,
    NodeConditions,
    Machines,
    NodeSet,
    Operator,
    Reconcile,
    Hibernation,
    Migration,
    Deletion,
    Pause,
    Grace,
}

/// How often each act is chosen.
const ACTS: [(u32, Act); 15] = [
    (14, Act::ApiFault),
    (5, Act::ApiAway),
    (3, Act::Rotation),
    (2, Act::BadSecret),
    (5, Act::Clocks),
    (3, Act::NodeConditions),
    (3, Act::Machines),
    (2, Act::NodeSet),
    (9, Act::Operator),
    (9, Act::Reconcile),
    (2, Act::Hibernation),
    (1, Act::Migration),
    (1, Act::Deletion),
    (2, Act::Pause),
    (2, Act::Grace),
];

impl Story {
    /// The story of this shoot.
    pub fn new(world: Arc<World>, shoot: Arc<Shoot>, seed: u64, rest: watch::Receiver<bool>) -> Self {
        let rng = Rng::new(seed, &shoot.namespace);
        Self { world, shoot, rng, rest }
    }

    /// Goes on until rest is called for; all is undone then.
    pub async fn round(mut self) -> Self {
        let calm = self.rng.seconds(0.5, 6.0);
        self.pause(calm).await;
        while !self.resting() {
            if self.rng.chance(0.6) {
                self.outage().await;
            } else {
                self.act().await;
            }
            let calm = if self.rng.chance(0.3) { self.rng.seconds(15.0, 28.0) } else { self.rng.seconds(1.0, 8.0) };
            self.pause(calm).await;
        }
        self
    }

    fn resting(&self) -> bool {
        *self.rest.borrow()
    }

    /// Waits, but no longer than until rest is called for.
    async fn pause(&mut self, time: Duration) {
        let until = Instant::now() + time;
        timeout_at(until, self.rest.wait_for(|rest| *rest)).await.ok();
    }

    fn node_names(&self) -> Vec<String> {
        self.shoot.record().nodes.keys().cloned().collect()
    }

    /// Nodes lose their way to the API server for a while.
    async fn outage(&mut self) {
        let nodes = self.node_names();
        let (words, share) = self.rng.weighted(&[(5, ("all", 1.0)), (3, ("most", 0.8)), (2, ("some", 0.35))]);
        let cut = self.rng.some(&nodes, share);
        self.set_cut(&cut, true);
        self.world.ledger.count("cuts");
        self.shoot.note(format!("{words} nodes lose their way: {}", cut.join(", ")));
        let end = Instant::now() + self.rng.seconds(3.0, 26.0);
        if self.rng.chance(0.45) {
            while Instant::now() < end && !self.resting() {
                if self.rng.chance(0.6) {
                    self.act().await;
                }
                let calm = self.rng.seconds(1.0, 6.0);
                self.pause(calm.min(end.saturating_duration_since(Instant::now()))).await;
            }
        } else {
            self.pause(end.saturating_duration_since(Instant::now())).await;
        }
        if self.rng.chance(0.3) {
            for node in &cut {
                self.set_cut(std::slice::from_ref(node), false);
                self.shoot.note(format!("{node} finds its way again"));
                let calm = self.rng.seconds(0.1, 3.0);
                self.pause(calm).await;
            }
        } else {
            self.set_cut(&cut, false);
            self.shoot.note("all nodes find their way again");
        }
    }

    fn set_cut(&self, nodes: &[String], cut: bool) {
        let mut record = self.shoot.record();
        for name in nodes {
            if let Some(node) = record.nodes.get_mut(name) {
                node.cut = cut;
            }
        }
    }

    /// Something smaller happens.
    async fn act(&mut self) {
        let act = self.rng.weighted(&ACTS);
        self.world.ledger.count("acts");
        let done = match act {
            Act::ApiFault => self.api_fault().await,
            Act::ApiAway => self.api_away().await,
            Act::Rotation => self.rotation().await,
            Act::BadSecret => self.bad_secret().await,
            Act::Clocks => self.clocks().await,
            Act::NodeConditions => self.node_conditions().await,
            Act::Machines => self.machines().await,
            Act::NodeSet => self.node_set().await,
            Act::Operator => self.operator().await,
            Act::Reconcile => self.reconcile().await,
            Act::Hibernation => self.hibernation().await,
            Act::Migration => self.migration().await,
            Act::Deletion => self.deletion().await,
            Act::Pause => self.operators_pause().await,
            Act::Grace => self.grace().await,
        };
        if let Err(error) = done {
            // The soak's own fault: what it wanted to do could not be done.
            self.shoot.note(format!("{act:?} failed: {error:#}"));
            self.world.ledger.count("acts that failed");
        }
    }
}
