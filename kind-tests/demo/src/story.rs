//! The timeline: what is done to the world and when, and what is seen to happen.

use anyhow::Result;
use testbed::gardener::{KCM, MCM};

use crate::probers::Probers;
use crate::record::{Record, What};
use crate::scene::{DEPENDENTS, GRACE, NEEDED, NODES, Scene, ShootScene};
use crate::world::World;

/// How long the play goes on when all is as before, in seconds: it is to stay so.
const CURTAIN: f64 = 3.0;
/// Something that is done to the world once: when it is due, and what is told of it. LEADER stands for the leader's name.
type Cue = (What, fn(&Record) -> Option<f64>, &'static str);

const CUES: [Cue; 6] = [
    (
        What::Cut,
        // One round of renewals, so that the audience sees hearts beat. An odd number: nodes renew at even ones.
        |record| Some(record.at(What::Watched)?.max(11.0)),
        "cut-off, moving: the network between nodes and API server breaks. The nodes themselves run on unharmed.",
    ),
    (
        What::Migrated,
        // Well before the first lease expires.
        |record| Some(record.at(What::Cut)? + 12.0),
        "moving: Gardener begins to migrate this cluster to another seed (lastOperation Migrate).",
    ),
    (
        What::TakenDown,
        |record| Some(record.at(What::Migrated)? + 3.0),
        "moving: Gardener itself takes the old control plane out of service.",
    ),
    (
        What::Killed,
        // As late as it hurts most: far too late for another one to be elected, which takes 15 s.
        |record| Some(record.verdict()? - 2.0),
        "LEADER, the leader, is killed (SIGKILL) before it has done anything. Its Lease runs on for up to 15s.",
    ),
    (
        What::Healed,
        // Time for a controller that is awake to give up the last node. An odd number, as above.
        |record| Some(record.last_end()? + 3.0),
        "cut-off, moving: the network is back. Each node renews its lease at its next beat.",
    ),
    (
        What::TimeUp,
        // The first looks are spread over half of initialDelay, and nothing of the play takes longer than the rest.
        |record| Some(if record.has(What::Watched) { 115.0 } else { 20.0 }),
        "Time is up, and what should come next has not come.",
    ),
];

/// The play as far as it has gone.
pub struct Story {
    pub record: Record,
    /// The world as it was at the last step.
    pub scene: Scene,
}

impl Story {
    pub fn new(scene: Scene) -> Self {
        let mut record = Record::default();
        let text = "Three clusters (Gardener calls them shoots) run; their control planes live in one seed. Two replicas of the prober start.";
        record.note(0.0, What::Aside, "", text);
        Self { record, scene }
    }

    pub fn is_over(&self) -> bool {
        self.record.at(What::Restored).is_some_and(|restored| self.scene.now >= restored + CURTAIN)
            || self.record.has(What::TimeUp)
    }

    /// Notes what has changed and gives the cues that are due.
    pub async fn step(&mut self, world: &mut World, probers: &mut Probers) -> Result<()> {
        let before = std::mem::replace(&mut self.scene, world.scene());
        let (record, now) = (&mut self.record, self.scene.now);
        see_cut_off(record, now, &before.shoots[0], &self.scene.shoots[0]);
        see_probers(record, &self.scene);
        for (what, due, text) in CUES {
            if record.has(what) || due(record).is_none_or(|due| now < due) {
                continue;
            }
            let leader = record.leader();
            record.note(now, what, "", text.replace("LEADER", leader));
            match what {
                What::Cut => cut(record, world, now),
                What::Migrated => world.migrate()?,
                What::TakenDown => world.take_down()?,
                What::Killed => probers.kill(leader).await?,
                What::Healed => world.heal(),
                _ => {}
            }
        }
        Ok(())
    }
}

fn cut(record: &mut Record, world: &mut World, now: f64) {
    world.cut();
    let scene = world.scene();
    record.renewed = scene.shoots[0].ages.iter().map(|age| scene.now - age).collect();
    record.renewed.sort_by(f64::total_cmp);
    let first = record.first_end().unwrap_or_default();
    let text = format!("cut-off: kube-controller-manager gives up nodes silent for {GRACE:.0}s, the first at {first:.1}s.");
    record.note(now, What::Aside, "", text);
}

fn see_probers(record: &mut Record, scene: &Scene) {
    let before = record.all(What::Leads).last().map(|event| event.whom);
    if let Some(leader) = scene.leader.filter(|leader| before != Some(leader)) {
        let text = match before {
            None => format!("{leader} got the Lease, so it leads. The other one watches the same shoots, and stands by."),
            Some(_) => format!("{leader} leads now: the Lease of the dead leader has run out."),
        };
        record.note(scene.now, What::Leads, leader, text);
    }
    let text = "Both have taken their first look at every shoot: all nodes renew their leases every 10s.";
    record.note_once(scene.now, What::Watched, scene.watched && before.is_some(), text);
}

fn see_cut_off(record: &mut Record, now: f64, before: &ShootScene, shoot: &ShootScene) {
    for ((name, old), new) in before.deployments().zip(&shoot.dependents) {
        if old.replicas > 0 && new.replicas == 0 {
            scaled_down(record, now, name, old.replicas, new.memory.clone().unwrap_or_default());
        } else if old.replicas == 0 && new.replicas > 0 {
            record.note(now, What::Up, name, format!("cut-off: {name} 0 -> {}.", new.replicas));
        }
    }
    let spare = record.first_end().unwrap_or_default() - now;
    let text = format!("cut-off: kube-controller-manager's pods are gone, {spare:.1}s before the first node's end.");
    record.note_once(now, What::Resting, shoot.countdown.is_none(), text);
    let (expired, healed) = (shoot.expired(), record.has(What::Healed));
    let text =
        format!("cut-off: {expired} of {NODES} leases are expired: the network is at fault, not the nodes. Somebody must act.");
    record.note_once(now, What::Verdict, expired >= NEEDED, text);
    let text = format!("cut-off: {} of {NODES} nodes have renewed their leases, which turns the verdict.", NODES - expired);
    record.note_once(now, What::EnoughBack, healed && expired < NEEDED, text);
    let whole = healed && record.all(What::Up).count() >= DEPENDENTS.len() && shoot.is_whole();
    record.note_once(now, What::Restored, whole, "cut-off: everything is as it was before the outage.");
}

fn scaled_down(record: &mut Record, now: f64, name: &'static str, replicas: i64, memory: String) {
    if !record.has(What::Down) {
        let (other, waited) = (record.other(), now - record.verdict().unwrap_or_default());
        let text =
            format!("cut-off: the leader has done nothing for {waited:.1}s. {other}, which does not lead, acts in its place:");
        record.note(now, What::Aside, "", text);
    }
    let why = match name {
        KCM => "nobody gives up nodes now",
        MCM => "nobody replaces machines now",
        _ => "nobody adds or removes machines now",
    };
    record.note(now, What::Down, name, format!("cut-off: {name} {replicas} -> 0, remembered as \"{memory}\": {why}."));
    record.remembered.push((name, memory));
}
