//! What each replica is shown of the seed, and when.

use std::sync::Arc;

use rand::RngExt;

use super::driver::{Life, LifeReplica, place};
use super::plan::Leadership;
use super::{Seconds, at};
use crate::config::Dependent;
use crate::moment::Moment;
use crate::plan::ByDirection;
use crate::replicas::{DependentState, Observed};
use crate::shoot::Environment;

/// D-61: three retry periods and a second after a renewal was seen, by a poll up to 2 s after it.
const SILENT_AFTER: Seconds = 9.0;

pub fn state(object: &Option<Observed>) -> DependentState {
    let object = object.clone().map(Arc::new);
    object.map_or(DependentState::Absent, DependentState::Present)
}

impl LifeReplica {
    /// True while its views show what changes.
    fn is_shown(&self, t: Seconds) -> bool {
        self.machine.is_some() && self.view.is_some() && !self.stale.contains(&t)
    }

    /// True while it sees the Clusters, without which nothing is written.
    pub fn sees_clusters(&self) -> bool {
        self.env.seed_since.down.is_some()
    }

    /// From now on it sees the Clusters without a break.
    pub fn see_clusters(&mut self, t: Seconds) {
        let (up, down) = (Some(at(t)), Some(at(t)));
        self.env.seed_since = ByDirection { up, down };
        self.memory.is_free(t);
    }
}

impl Life {
    /// A leader that works has renewed its Lease every 2 s.
    pub fn renew_lease(&mut self) {
        let t = self.t;
        let works =
            |replica: &LifeReplica| replica.machine.is_some() && replica.suspended_until <= t;
        let mut replicas = self.replicas.iter();
        if replicas.any(|replica| replica.env.leads && works(replica)) {
            self.leader_renewed = (t / 2.0).floor() * 2.0;
        }
    }

    /// Returns the replica's view of now.
    pub fn env(&mut self, by: usize) -> Environment {
        self.renew_lease();
        let t = self.t;
        let leads = self.replicas[by].env.leads;
        let silent_from = match self.plan.leadership {
            Leadership::Nobody => Some(Moment::START),
            Leadership::Go | Leadership::Hangs => Some(at(t + SILENT_AFTER)),
            Leadership::One => (!leads).then(|| at(self.leader_renewed + SILENT_AFTER)),
        };
        let stale = &self.replicas[by].stale;
        let shown = if stale.contains(&t) { stale.start } else { t };
        let machines = self.nodes.machines(shown - 0.2);
        let chance = self.answers.random();
        let replica = &mut self.replicas[by];
        let shown = |one: &Dependent| match &replica.view {
            Some(view) => view[place(one)].clone(),
            None => DependentState::Unknown,
        };
        replica.env.dependents = replica.env.config.dependents.iter().map(shown).collect();
        replica.env.machines = replica.view.is_some().then_some(machines);
        replica.env.leader_silent_from = silent_from;
        replica.env.chance = chance;
        replica.env.clone()
    }

    pub fn view(&mut self, by: usize) {
        if !self.replicas[by].is_shown(self.t) {
            return;
        }
        self.replicas[by].view = Some(self.objects.iter().map(state).collect());
        for (place, object) in self.objects.iter().enumerate() {
            self.replicas[by]
                .memory
                .sees(place, object.as_ref(), self.t);
        }
        self.wake(by);
    }

    /// Reads the shoot's Cluster and namespace.
    pub fn view_shoot(&mut self, by: usize) {
        let (t, paused, is_ours) = (self.t, self.paused.0, self.is_ours.0);
        let replica = &mut self.replicas[by];
        if !replica.is_shown(t) {
            return;
        }
        let before = (replica.env.paused, replica.env.is_ours);
        (replica.env.paused, replica.env.is_ours) = (Some(paused), is_ours);
        let memory = &mut replica.memory;
        let protects = replica.env.leads && memory.paused == Some(false);
        match before {
            (Some(false), true) => {}
            // A leader has protected meanwhile.
            (None, true) if protects => memory.free_since.up = t,
            _ => memory.is_free(t),
        }
        memory.paused = Some(paused);
        self.wake(by);
    }

    /// Gives the replica its view of the seed back.
    pub fn view_all(&mut self, by: usize) {
        let replica = &mut self.replicas[by];
        if replica.machine.is_none() {
            return;
        }
        replica.stale = 0.0..0.0;
        replica.view.get_or_insert_default();
        if !replica.sees_clusters() {
            replica.see_clusters(self.t);
        }
        self.after(0.0, move |life| life.view_shoot(by));
        self.view(by);
    }
}
