//! One moment of the play, as values: all that the view needs.

use tokio::time::Instant;

use crate::stand_ins::NodeLifecycle;
use crate::story::{Act, Story};
use crate::world::{DEPENDENTS, Deployment, EXPIRED, GRACE, NEEDED, Node, Part, REPLICAS, World};

/// One moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub now: f64,
    pub act: Act,
    /// What each replica of the prober is.
    pub replicas: Vec<String>,
    pub shoots: Vec<ShootScene>,
    /// Seconds and text, oldest first.
    pub events: Vec<(f64, String)>,
}

/// One shoot in it.
#[derive(Clone, Debug, PartialEq)]
pub struct ShootScene {
    pub part: Part,
    pub nodes: Vec<Node>,
    pub deployments: Vec<Deployment>,
    /// What the leases amount to.
    pub verdict: String,
    /// Seconds until kube-controller-manager gives up the next node; `None` while it is at rest.
    pub countdown: Option<f64>,
    pub given_up: usize,
    /// Whether it is told in full or on one line.
    pub in_full: bool,
}

impl Scene {
    pub fn of(world: &World, story: &Story, lifecycle: &NodeLifecycle, started: Instant) -> Self {
        let now = Instant::now();
        let shoots = Part::ALL.map(|part| {
            let (nodes, deployments) = (world.nodes(part), world.deployments(part));
            let verdict = match part {
                Part::Moving if story.facts.migrated.is_some() => {
                    "being migrated: not these probers' business any more".to_owned()
                }
                _ => verdict(&nodes, &deployments),
            };
            let silences = nodes.iter().filter(|node| !node.unknown).filter_map(|node| lifecycle.silence(part, node.age, now));
            let countdown = silences.max_by(f64::total_cmp).map(|longest| GRACE - longest);
            ShootScene {
                part,
                nodes,
                deployments,
                verdict,
                countdown,
                given_up: lifecycle.given_up(part),
                in_full: part == Part::CutOff,
            }
        });
        let leader = world.leader();
        let replicas = REPLICAS.map(|name| {
            let is = |one: &Option<String>| one.as_deref() == Some(name);
            let role = match (story.facts.killed.is_some() && is(&story.facts.leader), is(&leader)) {
                (true, _) => "was killed",
                (false, true) => "leads",
                (false, false) => "stands by",
            };
            format!("{name} {role}")
        });
        Self {
            now: now.duration_since(started).as_secs_f64(),
            act: story.act,
            replicas: replicas.into(),
            shoots: shoots.into(),
            events: story.events.clone(),
        }
    }
}

/// The prober's rule, applied to what is on the stage.
fn verdict(nodes: &[Node], deployments: &[Deployment]) -> String {
    let expired = nodes.iter().filter(|node| node.age >= EXPIRED).count();
    let held = deployments.iter().any(|deployment| deployment.held);
    let whole = deployments.iter().zip(DEPENDENTS).all(|(deployment, (_, replicas))| deployment.wanted == replicas);
    let meaning = match (expired >= NEEDED, held, whole) {
        (true, _, true) => "the network is at fault: protect",
        (true, _, false) => "the network is at fault: hold",
        (false, true, _) => "back again: restore",
        (false, false, _) if expired > 0 => "not enough for a verdict",
        (false, false, _) => "healthy",
    };
    format!("{expired} of {} leases expired, {NEEDED} make a verdict: {meaning}", nodes.len())
}
