//! The timeline: what is done to the world and when, and what is seen to happen.

use anyhow::Result;

use crate::probers::Probers;
use crate::record::{Record, What};
use crate::scene::{Scene, ShootScene};
use crate::world::{DEPENDENTS, KCM, MCM, NEEDED, NODES, REPLICAS, World};

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
/// How long the probers may take until each has looked at every shoot, in seconds: the first looks are spread over half of initialDelay.
const OPENING: f64 = 20.0;
/// Nothing of the play takes longer than this, in seconds; then it has failed.
const LIMIT: f64 = 115.0;

/// Something that is done to the world once, when it is due, and what is told of it. LEADER stands for the leader's name.
struct Cue {
    what: What,
    due: fn(&Record) -> Option<f64>,
    text: &'static str,
}

const CUES: [Cue; 7] = [
    Cue {
        what: What::Cut,
        due: |record| Some(record.at(What::Watched)?.max(PEACE)),
        text: "cut-off, moving: the network between nodes and API server breaks. The nodes themselves run on unharmed.",
    },
    Cue {
        what: What::Migrated,
        due: |record| Some(record.at(What::Cut)? + UNTIL_MIGRATION),
        text: "moving: Gardener begins to migrate this cluster to another seed (lastOperation Migrate).",
    },
    Cue {
        what: What::TakenDown,
        due: |record| Some(record.at(What::Migrated)? + UNTIL_TAKE_DOWN),
        text: "moving: Gardener itself takes the old control plane out of service.",
    },
    Cue {
        // As late as it hurts most.
        what: What::Killed,
        due: |record| Some(record.verdict()? - KILL_AHEAD),
        text: "LEADER, the leader, is killed (SIGKILL) before it has done anything. Its Lease runs on for up to 15s.",
    },
    Cue {
        what: What::Healed,
        due: |record| Some(record.last_end()? + PROOF),
        text: "cut-off, moving: the network is back. Each node renews its lease at its next beat.",
    },
    Cue {
        what: What::TimeUp,
        due: |record| (!record.has(What::Watched)).then_some(OPENING),
        text: "Not every prober has looked at every shoot yet; without that there is nothing to show.",
    },
    Cue { what: What::TimeUp, due: |_| Some(LIMIT), text: "Time is up." },
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
        let seen = self.record.at(What::Restored).is_some_and(|restored| self.scene.now >= restored + CURTAIN);
        seen || self.record.has(What::TimeUp)
    }

    /// Notes what has changed and gives the cues that are due.
    pub async fn step(&mut self, world: &World, probers: &mut Probers) -> Result<()> {
        let before = std::mem::replace(&mut self.scene, world.scene());
        let ([old_cut_off, old_moving, _], [cut_off, moving, _]) = (&before.shoots, &self.scene.shoots);
        let (record, now) = (&mut self.record, self.scene.now);
        see_cut_off(record, now, old_cut_off, cut_off);
        see_moving(record, now, old_moving, moving);
        see_probers(record, &self.scene);
        for cue in CUES {
            if !record.has(cue.what) && (cue.due)(record).is_some_and(|due| now >= due) {
                let leader = record.leader().unwrap_or_default();
                record.note(now, cue.what, "", cue.text.replace("LEADER", leader));
                match cue.what {
                    What::Cut => cut(record, world, now),
                    What::Migrated => world.migrate()?,
                    What::TakenDown => world.take_down()?,
                    What::Killed => probers.kill(leader).await?,
                    What::Healed => world.heal(),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn cut(record: &mut Record, world: &World, now: f64) {
    world.cut();
    let [cut_off, ..] = world.scene().shoots;
    record.renewed = cut_off.nodes.iter().map(|node| now - node.age).collect();
    record.renewed.sort_by(f64::total_cmp);
    let first = record.first_end().unwrap_or_default();
    record.note(now, What::Aside, "", format!("cut-off: kube-controller-manager would give up the first node at {first:.1}s."));
}

fn see_probers(record: &mut Record, scene: &Scene) {
    let now = scene.now;
    let before = record.all(What::Leads).last().map(|event| event.whom);
    if let Some(leader) = scene.leader.filter(|leader| before != Some(leader)) {
        let text = if before.is_none() {
            let others: Vec<&str> = REPLICAS.into_iter().filter(|name| *name != leader).collect();
            format!("{leader} got the Lease, so it leads. {} watches the same shoots, and stands by.", others.join(", "))
        } else {
            format!("{leader} leads now: the Lease of the dead leader has run out.")
        };
        record.note(now, What::Leads, leader, text);
    }
    if scene.watched && record.has(What::Leads) && !record.has(What::Watched) {
        let text = "Both have taken their first look at every shoot: all nodes renew their leases every 10s.";
        record.note(now, What::Watched, "", text);
    }
}

/// Nobody should touch it from the migration on but Gardener, which takes it down.
fn see_moving(record: &mut Record, now: f64, before: &ShootScene, shoot: &ShootScene) {
    for ((name, _, old), new) in before.deployments().zip(&shoot.dependents) {
        let rescaled = old.replicas != new.replicas && !record.has(What::TakenDown);
        if old.marker != new.marker || rescaled {
            let text = format!("moving: {name} is at {} replicas now, marker {}", new.replicas, new.marker.is_some());
            record.note(now, What::Aside, "", text);
        }
    }
}

fn see_cut_off(record: &mut Record, now: f64, before: &ShootScene, shoot: &ShootScene) {
    let given_up = shoot.given_up;
    if given_up > before.given_up {
        let text = format!(
            "cut-off: kube-controller-manager has given up {given_up} of {NODES} nodes; their machines will be replaced."
        );
        record.note(now, What::Aside, "", text);
    }
    for ((name, _, old), new) in before.deployments().zip(&shoot.dependents) {
        if old.replicas > 0 && new.replicas == 0 {
            scaled_down(record, now, name, old.replicas, new.memory.clone().unwrap_or_default());
        } else if old.replicas == 0 && new.replicas > 0 {
            record.note(now, What::Up, name, format!("cut-off: {name} 0 -> {}.", new.replicas));
        }
        if old.marker.is_some() && new.marker.is_none() && new.replicas > 0 {
            record.note(now, What::Aside, name, format!("cut-off: {name}: annotations removed."));
        }
    }
    if before.kcm().ready > 0 && shoot.kcm().ready == 0 && !record.has(What::Resting) {
        let spare = record.first_end().map_or(0.0, |end| end - now);
        let text = format!("cut-off: kube-controller-manager's pods are gone, {spare:.1}s before the first node's end.");
        record.note(now, What::Resting, "", text);
    }
    let (expired, total) = (shoot.expired(), shoot.nodes.len());
    if record.has(What::Healed) && !record.has(What::EnoughBack) && expired < NEEDED {
        let text = format!("cut-off: {} of {total} nodes have renewed their leases, which turns the verdict.", total - expired);
        record.note(now, What::EnoughBack, "", text);
    }
    if record.has(What::Cut) && !record.has(What::Down) && !record.has(What::Verdict) && expired >= NEEDED {
        let text = format!(
            "cut-off: {expired} of {total} leases are expired: the network is at fault, not the nodes. Now somebody must act."
        );
        record.note(now, What::Verdict, "", text);
    }
    let all_up = record.has(What::Healed) && record.all(What::Up).count() >= DEPENDENTS.len();
    if all_up && !record.has(What::Restored) && shoot.is_whole() {
        record.note(now, What::Restored, "", "cut-off: everything is as it was before the outage.");
    }
}

fn scaled_down(record: &mut Record, now: f64, name: &'static str, replicas: i64, memory: String) {
    if !record.has(What::Down)
        && let (Some(verdict), Some(other)) = (record.verdict(), record.other())
    {
        let waited = now - verdict;
        let text =
            format!("cut-off: the leader has done nothing for {waited:.1}s. {other} does not lead, and acts in its place:");
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
