//! The timeline: what happens when, and what is seen to happen.
//!
//! Stepped ten times a second. It gives the cues (cut, migrate, kill, heal), notes what the probers do about them, and tells
//! both.

use anyhow::Result;

use crate::child::Probers;
use crate::facts::{Facts, Moment};
use crate::world::{DEPENDENTS, Deployment, EXPIRED, GRACE, KCM, MCM, NEEDED, NODES, Part, REPLICAS, World};

/// Peace to begin with, in seconds: one round of renewals, so that the audience sees hearts beat. An odd number: nodes renew at even ones.
const PEACE: f64 = 11.0;
/// From the cut to the migration, in seconds: well before the first lease expires.
const UNTIL_MIGRATION: f64 = 12.0;
/// From the migration to the moment when Gardener takes the old control plane down, in seconds.
const UNTIL_TAKE_DOWN: f64 = 3.0;
/// How long before the verdict the leader is killed, in seconds: far too late for another one to be elected, which takes 15 s.
const KILL_AHEAD: f64 = 2.0;
/// How much longer the outage lasts than the last node would have, in seconds: time for a controller that is awake to act. An odd
/// number, as above.
const PROOF: f64 = 3.0;
/// How long the audience may look at the end, in seconds.
const CURTAIN: f64 = 3.0;
/// From one second after the migration on nobody should ask that shoot anything: a removed probe ends within 1 s.
const REMOVAL: f64 = 1.0;
/// How long the probers may take until each has looked at every shoot, in seconds: the first looks are spread over half of initialDelay.
const OPENING: f64 = 20.0;
/// Nothing of the play takes longer than this, in seconds; then it has failed.
const LIMIT: f64 = 115.0;

/// Where the play is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The probers have not looked at every shoot yet.
    Opening,
    Peace,
    Outage,
    /// The same, and the leader is dead.
    Leaderless,
    Rescued,
    Return,
    Curtain,
    Over,
}

/// The state of the play.
pub struct Story {
    pub act: Act,
    pub facts: Facts,
    /// Seconds and text.
    pub events: Vec<(f64, String)>,
    taken_down: bool,
    verdict_told: bool,
    /// The shoot that is cut off as it was at the last step.
    before: Vec<Deployment>,
    moving_before: Vec<Deployment>,
}

impl Story {
    pub fn new(world: &World) -> Self {
        let mut story = Self {
            act: Act::Opening,
            facts: Facts::default(),
            events: Vec::new(),
            taken_down: false,
            verdict_told: false,
            before: world.deployments(Part::CutOff),
            moving_before: world.deployments(Part::Moving),
        };
        story.tell(
            0.0,
            "Three clusters (Gardener calls them shoots) run; their control planes live in one seed. Two replicas of the prober start.",
        );
        story
    }

    /// Gives the cues that are due and notes what has changed. `given_up` counts the nodes of the shoot that is cut off.
    pub fn step(&mut self, world: &World, probers: &mut Probers, given_up: usize, now: f64) -> Result<()> {
        if given_up > self.facts.given_up_cut_off {
            self.facts.given_up_cut_off = given_up;
            let text = format!(
                "cut-off: kube-controller-manager has given up {given_up} of {NODES} nodes; their machines will be replaced."
            );
            self.tell(now, text);
        }
        self.watch(world, now);
        self.watch_lease(world, now);
        self.cue(world, now)?;
        self.kill(probers, now)?;
        if now > LIMIT && self.act != Act::Over {
            self.tell(now, "Time is up.");
            self.act = Act::Over;
        }
        self.facts.end = now;
        Ok(())
    }

    fn tell(&mut self, now: f64, text: impl Into<String>) {
        self.events.push((now, text.into()));
    }

    fn cue(&mut self, world: &World, now: f64) -> Result<()> {
        if let (Some(cut), None) = (self.facts.cut, self.facts.migrated)
            && now >= cut + UNTIL_MIGRATION
        {
            let so_far = world.shoot(Part::Moving).api.requests().total();
            self.facts.moving_requests_before = usize::try_from(so_far)?;
            world.begin_migration(Part::Moving)?;
            self.facts.migrated = Some(now);
            self.tell(now, "moving: Gardener begins to migrate this cluster to another seed (lastOperation Migrate).");
        }
        if self.facts.migrated.is_some_and(|migrated| !self.taken_down && now >= migrated + UNTIL_TAKE_DOWN) {
            self.taken_down = true;
            world.take_down(Part::Moving)?;
            self.tell(now, "moving: Gardener itself takes the old control plane out of service.");
        }
        match self.act {
            Act::Opening if self.facts.leader.is_some() && world.is_watched() => {
                self.tell(now, "Both have taken their first look at every shoot: all nodes renew their leases every 10s.");
                self.act = Act::Peace;
            }
            Act::Opening if now >= OPENING => {
                self.tell(now, "Not every prober has looked at every shoot yet; without that there is nothing to show.");
                self.act = Act::Over;
            }
            Act::Peace if now >= PEACE => self.cut(world, now),
            Act::Outage | Act::Leaderless | Act::Rescued if self.facts.last_end.is_some_and(|end| now >= end + PROOF) => {
                self.heal(world, now)
            }
            Act::Return if self.facts.restored.is_some() => self.act = Act::Curtain,
            Act::Curtain if self.facts.restored.is_some_and(|restored| now >= restored + CURTAIN) => self.act = Act::Over,
            _ => {}
        }
        Ok(())
    }

    /// Kills the leader, as late as it hurts most.
    fn kill(&mut self, probers: &mut Probers, now: f64) -> Result<()> {
        let (Act::Outage, Some(verdict), Some(leader), None) =
            (self.act, self.facts.verdict, self.facts.leader.clone(), self.facts.killed)
        else {
            return Ok(());
        };
        if now < verdict - KILL_AHEAD {
            return Ok(());
        }
        probers.kill(&leader)?;
        self.facts.killed = Some(now);
        self.act = Act::Leaderless;
        self.tell(
            now,
            format!("{leader}, the leader, is killed (SIGKILL) before it has done anything. Its Lease runs on for up to 15s."),
        );
        Ok(())
    }

    fn cut(&mut self, world: &World, now: f64) {
        for part in [Part::CutOff, Part::Moving] {
            world.shoot(part).nodes.cut_all();
        }
        let mut renewed: Vec<f64> = world.nodes(Part::CutOff).into_iter().map(|node| now - node.age).collect();
        renewed.sort_by(f64::total_cmp);
        self.facts.cut = Some(now);
        self.facts.first_end = renewed.first().map(|renewed| renewed + GRACE);
        self.facts.last_end = renewed.last().map(|renewed| renewed + GRACE);
        self.facts.verdict = renewed.get(NEEDED - 1).map(|renewed| renewed + EXPIRED);
        self.act = Act::Outage;
        let first = self.facts.first_end.unwrap_or_default();
        self.tell(now, "cut-off, moving: the network between nodes and API server breaks. The nodes themselves run on unharmed.");
        self.tell(now, format!("cut-off: kube-controller-manager would give up the first node at {first:.1}s."));
    }

    fn heal(&mut self, world: &World, now: f64) {
        for part in [Part::CutOff, Part::Moving] {
            world.shoot(part).nodes.heal_all();
        }
        self.facts.healed = Some(now);
        self.act = Act::Return;
        self.tell(now, "cut-off, moving: the network is back. Each node renews its lease at its next beat.");
    }

    /// Notes who leads.
    fn watch_lease(&mut self, world: &World, now: f64) {
        let Some(leader) = world.leader() else { return };
        if self.facts.leader.is_none() {
            let other = REPLICAS.into_iter().find(|name| *name != leader).unwrap_or_default().to_owned();
            self.tell(now, format!("{leader} got the Lease, so it leads. {other} watches the same shoots, and stands by."));
            (self.facts.leader, self.facts.other) = (Some(leader), Some(other));
        } else if self.facts.took_over.is_none() && self.facts.leader.as_ref() != Some(&leader) {
            self.facts.took_over = Some(now);
            self.tell(now, format!("{leader} leads now: the Lease of the dead leader has run out."));
        }
    }

    /// Notes what has changed since the last step.
    fn watch(&mut self, world: &World, now: f64) {
        let deployments = world.deployments(Part::CutOff);
        let before = std::mem::replace(&mut self.before, deployments.clone());
        for (old, new) in before.iter().zip(&deployments) {
            self.compare(world, now, old, new);
        }
        let moving = world.deployments(Part::Moving);
        let before = std::mem::replace(&mut self.moving_before, moving.clone());
        for (old, new) in before.iter().zip(&moving) {
            if old.held != new.held || (old.wanted != new.wanted && !self.taken_down) {
                self.tell(now, format!("moving: {} is at {} replicas now, marker {}", new.name, new.wanted, new.held));
            }
        }
        let expired = world.nodes(Part::CutOff).iter().filter(|node| node.age >= EXPIRED).count();
        let total = world.nodes(Part::CutOff).len();
        if self.facts.healed.is_some() && self.facts.enough_back.is_none() && expired < NEEDED {
            self.facts.enough_back = Some(now);
            self.tell(
                now,
                format!("cut-off: {} of {total} nodes have renewed their leases, which turns the verdict.", total - expired),
            );
        }
        if self.facts.verdict.is_some() && self.facts.down.is_empty() && !self.verdict_told && expired >= NEEDED {
            self.verdict_told = true;
            self.tell(
                now,
                format!("cut-off: {expired} of {total} leases are expired: the network is at fault, not the nodes. Now somebody must act."),
            );
        }
        let as_before = |(name, replicas): &(&str, i64)| {
            let whole =
                |one: &Deployment| one.wanted == *replicas && one.ready == *replicas && !one.held && one.remembered.is_none();
            deployments.iter().any(|one| one.name == *name && whole(one))
        };
        if self.act == Act::Return
            && self.facts.restored.is_none()
            && self.facts.up.len() >= DEPENDENTS.len()
            && DEPENDENTS.iter().all(as_before)
        {
            self.facts.restored = Some(now);
            self.tell(now, "cut-off: everything is as it was before the outage.");
        }
    }

    /// Notes what has happened to one Deployment of the shoot that is cut off.
    fn compare(&mut self, world: &World, now: f64, old: &Deployment, new: &Deployment) {
        let moment = Moment { at: now, name: new.name.clone() };
        if old.wanted > 0 && new.wanted == 0 {
            if self.facts.down.is_empty()
                && let (Some(verdict), Some(other)) = (self.facts.verdict, &self.facts.other)
            {
                let waited = now - verdict;
                self.tell(
                    now,
                    format!(
                        "cut-off: the leader has done nothing for {waited:.1}s. {other} does not lead, and acts in its place:"
                    ),
                );
            }
            if new.name == KCM {
                self.facts.leader_at_rescue = world.leader();
            }
            self.facts.down.push(moment);
            let remembered = new.remembered.clone().unwrap_or_default();
            let why = match new.name.as_str() {
                KCM => "nobody gives up nodes now",
                MCM => "nobody replaces machines now",
                _ => "nobody adds or removes machines now",
            };
            self.tell(now, format!("cut-off: {} {} -> 0, remembered as \"{remembered}\": {why}.", new.name, old.wanted));
            self.facts.remembered.push((new.name.clone(), remembered));
        } else if old.wanted == 0 && new.wanted > 0 {
            self.facts.up.push(moment);
            self.tell(now, format!("cut-off: {} 0 -> {}.", new.name, new.wanted));
        }
        if new.name == KCM && old.ready > 0 && new.ready == 0 && self.facts.resting.is_none() {
            self.facts.resting = Some(now);
            if matches!(self.act, Act::Outage | Act::Leaderless) {
                self.act = Act::Rescued;
            }
            let spare = self.facts.first_end.map_or(0.0, |end| end - now);
            self.tell(now, format!("cut-off: kube-controller-manager's pods are gone, {spare:.1}s before the first node's end."));
        }
        if old.held && !new.held && new.wanted > 0 {
            self.tell(now, format!("cut-off: {}: annotations removed.", new.name));
        }
    }

    /// Gathers what can only be told at the end.
    pub fn conclude(&mut self, world: &World, started: tokio::time::Instant, given_up: impl Fn(Part) -> usize) {
        let facts = &mut self.facts;
        facts.finally = world.deployments(Part::CutOff);
        facts.moving_finally = world.deployments(Part::Moving);
        facts.given_up_cut_off = given_up(Part::CutOff);
        facts.given_up_healthy = given_up(Part::Healthy);
        let seed = world.seed.requests();
        let writes_in = |part: Part| seed.count(|record| record.is_write() && record.namespace == part.namespace());
        let late = |at: tokio::time::Instant| {
            let seconds = at.duration_since(started).as_secs_f64();
            facts.migrated.is_some_and(|migrated| seconds > migrated + REMOVAL)
        };
        let moving = world.shoot(Part::Moving).api.requests();
        facts.moving_requests_after = moving.count(|record| record.at.is_some_and(late));
        facts.moving_writes = writes_in(Part::Moving) + usize::try_from(moving.writes()).unwrap_or(usize::MAX);
        let healthy = &world.shoot(Part::Healthy).api;
        facts.healthy_requests = healthy.requests().total();
        facts.healthy_connections = healthy.connections().handshakes;
        facts.healthy_writes = healthy.requests().writes() + writes_in(Part::Healthy) as u64;
        let writes_of = |name: &Option<String>| name.as_deref().map_or(0, |name| world.scale_writes(name));
        (facts.writes_of_leader, facts.writes_of_other) = (writes_of(&facts.leader), writes_of(&facts.other));
        facts.did_not_act = world.events("LeaderDidNotAct");
        facts.refusals = world.refusals();
        facts.seed_requests = seed.total();
        facts.scale_writes = seed.count(|record| record.is_write() && record.resource.starts_with("deployments.apps"));
        facts.own_writes = seed.count(|record| record.is_write() && record.namespace == "garden");
    }
}
