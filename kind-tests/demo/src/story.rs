//! The timeline: what is done to the world and when, and what is seen to happen.

use testbed::gardener::{KCM, MCM};
use testbed::seed::ReplicaState;

use crate::record::DemoRecord;
use crate::scene::{
    DEPENDENTS, DemoScene, EXPIRED, GRACE, NEEDED, NODES, REPLICAS, ShootScene, initials,
};
use crate::world::DemoWorld;

/// How long the demo goes on when all is as before, in seconds: it is to stay so.
const AFTERWARDS: f64 = 3.0;
/// How long a replica that does not lead waits for the leader after its verdict, in seconds.
const PATIENCE: f64 = 1.5;
/// How far what is noted may be off, in seconds: a step of the story.
const STEP: f64 = 0.1;
/// Something that is done to the world once: its name, when it is due, and what is said of it.
type DemoStep = (&'static str, fn(&DemoRecord) -> Option<f64>, &'static str);

const STEPS: [DemoStep; 4] = [
    (
        "cut",
        // One round of renewals, so that viewers see leases renewed. An odd number: nodes
        // renew at even ones.
        |record| Some(record.number("watched")?.max(11.0)),
        "cut-off: the network between nodes and API server breaks. The nodes themselves run on unharmed.",
    ),
    (
        "killed",
        // As late as it hurts most: far too late for another one to be elected, which takes 15 s. A
        // leader renews its Lease every 2 s and counts as silent 7 s after that (D-61): killed
        // much earlier it might be given less than its patience.
        |record| Some(record.number("verdict")? - 1.4),
        "{leader}, the leader, is killed (SIGKILL) before it has done anything. Its Lease runs on for up to 15s.",
    ),
    (
        "healed",
        // Time for a controller that is running to mark the last node Unknown. An odd number, as above.
        |record| Some(record.number("last end")? + 3.0),
        "cut-off: the network is back. Each node renews its lease at its next beat.",
    ),
    (
        "time is up",
        // The first probes are spread over half of initialDelay, and nothing of the demo takes
        // longer than the rest.
        |record| Some(if record.has("watched") { 115.0 } else { 20.0 }),
        "Time is up, and what should come next has not come.",
    ),
];

/// The demo as far as it has gone.
pub struct DemoStory {
    pub record: DemoRecord,
    /// The world as it was at the last step.
    pub scene: DemoScene,
}

impl DemoStory {
    pub fn new(scene: DemoScene) -> Self {
        let mut record = DemoRecord::default();
        for (name, number) in [
            ("nodes", NODES as f64),
            ("needed", NEEDED as f64),
            ("patience", PATIENCE),
            ("grace", GRACE),
        ] {
            record.note(name, number);
        }
        let text = "Two clusters (Gardener calls them shoots) run; their control planes live in one seed. Two replicas of \
                    the prober start.";
        record.tell(text);
        Self { record, scene }
    }

    pub fn is_over(&self) -> bool {
        self.record
            .number("restored")
            .is_some_and(|restored| self.scene.now >= restored + AFTERWARDS)
            || self.record.has("time is up")
    }

    /// Notes what has changed and takes the steps that are due.
    pub fn step(&mut self, world: &mut DemoWorld) {
        let before = std::mem::replace(&mut self.scene, world.scene());
        let (record, now) = (&mut self.record, self.scene.now);
        record.now = now;
        see_cut_off(record, &before.shoots[0], &self.scene.shoots[0]);
        see_probers(record, &self.scene);
        for (name, due, text) in STEPS {
            if record.has(name) || due(record).is_none_or(|due| now < due) {
                continue;
            }
            record.tell_once(name, true, text);
            match name {
                "cut" => foresee(record, world.cut()),
                "killed" => world.kill(record.word("leader")),
                "healed" => world.reconnect(),
                _ => {}
            }
        }
    }
}

/// What follows from when the nodes that are cut off renewed last.
fn foresee(record: &mut DemoRecord, scene: DemoScene) {
    let mut renewed = scene.shoots[0]
        .ages
        .iter()
        .map(|age| scene.now - age)
        .collect::<Vec<_>>();
    renewed.sort_by(f64::total_cmp);
    let verdict = renewed[NEEDED - 1] + EXPIRED;
    // kube-controller-manager marks the first node Unknown, and the last.
    record.note("first end", renewed[0] + GRACE);
    record.note("last end", renewed[NODES - 1] + GRACE);
    // Enough leases are expired; and then a replica may act that does not lead.
    record.note("verdict", verdict);
    record.note("patience over", verdict + PATIENCE - STEP);
    let text = "cut-off: kube-controller-manager marks nodes Unknown after {grace}s of silence, the first {at first end}.";
    record.tell(text);
}

fn see_probers(record: &mut DemoRecord, scene: &DemoScene) {
    if let Some(leader) = scene.leader {
        let other = if leader == REPLICAS[0] {
            REPLICAS[1]
        } else {
            REPLICAS[0]
        };
        record.words.entry("leader").or_insert(leader.to_owned());
        record.words.entry("other").or_insert(other.to_owned());
        record.words.insert("leading", leader.to_owned());
        let text = "{leader} got the Lease, so it leads. The other one watches the same shoots, and stands by.";
        record.tell_once("led", true, text);
        let is_other = record.word("other") == leader;
        let text = "{leading} leads now: the Lease of the dead leader has run out.";
        record.tell_once("took over", is_other, text);
    }
    let text = "Both have probed every shoot: all nodes renew their leases every 10s.";
    record.tell_once("watched", scene.watched && record.has("led"), text);
}

fn see_cut_off(record: &mut DemoRecord, before: &ShootScene, shoot: &ShootScene) {
    for ((name, old), new) in before.deployments().zip(&shoot.dependents) {
        let (way, text) = match (old.replicas, new.replicas) {
            (1.., 0) => ("down", scaled_down(record, name, old.replicas, new)),
            (0, 1..) => ("up", format!("cut-off: {name} 0 -> {}.", new.replicas)),
            _ => continue,
        };
        record.note(way, record.now);
        record.note(format!("{} {way}", initials(name)), record.now);
        *record.numbers.entry(format!("times {way}")).or_default() += 1.0;
        record.tell(&text);
    }
    let text = "cut-off: kube-controller-manager's pods are gone, {resting..first end} before the first node's end.";
    record.tell_once("resting", shoot.dependents[0].ready == 0, text);
    let (expired, healed) = (shoot.expired(), record.has("healed"));
    let text = format!(
        "cut-off: {expired} of {NODES} leases are expired: the network is at fault, not the nodes. Somebody must act."
    );
    record.tell_once("expired", expired >= NEEDED, &text);
    let text = format!(
        "cut-off: {} of {NODES} nodes have renewed their leases, which turns the verdict.",
        NODES - expired
    );
    record.tell_once("enough back", healed && expired < NEEDED, &text);
    let whole =
        healed && record.number("times up") >= Some(DEPENDENTS.len() as f64) && shoot.is_whole();
    let text = "cut-off: everything is as it was before the outage.";
    record.tell_once("restored", whole, text);
}

/// Notes that a Deployment is at 0 now, and who led then. What is to be said of it.
fn scaled_down(record: &mut DemoRecord, name: &str, replicas: i64, new: &ReplicaState) -> String {
    let memory = new.memory.as_deref().unwrap_or_default();
    let text = "cut-off: the leader has done nothing for {verdict..down}. {other}, which does not lead, acts in its place:";
    record.tell_once("down", true, text);
    let leading = record.word("leading").to_owned();
    record.words.insert("led then", leading);
    record.note(
        format!("{} memory", initials(name)),
        memory.parse().unwrap_or(f64::NAN),
    );
    let why = match name {
        KCM => "nobody marks nodes Unknown now",
        MCM => "nobody replaces machines now",
        _ => "nobody adds or removes machines now",
    };
    format!("cut-off: {name} {replicas} -> 0, remembered as \"{memory}\": {why}.")
}
