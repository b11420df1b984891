//! The machine as a model whose states are all visited: two replicas of the prober, either of which
//! may lead, or a Go replica that does, against an API server that others write to as well, with
//! everything going wrong that can, at every step.
//!
//! ```text
//!  two machines: watch, probe, decide -- requests, each with the version it rests on --> the object
//!       ^ crash, start, take the lead, time   applied | refused | lost | answer lost        ^
//!  nodes lose their way and find it                    operators, gardenlet, a Go replica --'
//! ```
//!
//! Nothing is decided here: the machines are the product's. What is played is what they are shown
//! and what becomes of what they ask for.

mod calm;
mod object;
mod replica;
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use chrono::TimeDelta;

use self::object::{Edit, ModelObject};
use self::replica::{ModelReplica, Opinion, Request};
use crate::moment::Moment;
use crate::tests::explore::Explorable;

/// Number of things that may still go wrong or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    /// The nodes lose their way, or find it.
    turns: u8,
    edits: u8,
    crashes: u8,
    /// Requests or answers that get lost, probes and reads that fail.
    losses: u8,
    /// Number of times that time goes on to the next moment at which a machine wants to be woken.
    ticks: u8,
}

/// Leadership of the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LeadHolder {
    Nobody,
    Replica(usize),
    /// A replica of the Go original.
    Go,
}

/// The world around the machines.
#[derive(Clone, Debug, Hash)]
struct ModelWorld {
    object: ModelObject,
    outage: bool,
    paused: bool,
    /// Time at which the shoot was last paused, or no longer.
    freed: Moment,
    now: Moment,
    leader: LeadHolder,
    replicas: [Option<ModelReplica>; 2],
    requests: Vec<Request>,
    left: Left,
}

/// A world among those that were visited, distinguished by a hash: the worlds themselves are large.
#[derive(Clone)]
struct WorldState {
    world: Arc<ModelWorld>,
    digest: (u64, u64),
}

impl From<ModelWorld> for WorldState {
    fn from(world: ModelWorld) -> Self {
        let hash = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            (seed, &world).hash(&mut hasher);
            hasher.finish()
        };
        Self {
            digest: (hash(0), hash(1)),
            world: Arc::new(world),
        }
    }
}

impl PartialEq for WorldState {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for WorldState {}

impl Hash for WorldState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl std::fmt::Debug for WorldState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ModelWorld {
            object,
            outage,
            paused,
            now,
            leader,
            replicas,
            requests,
            ..
        } = &*self.world;
        let seconds = now.elapsed_since_start().as_seconds_f64();
        write!(
            f,
            "{seconds:.1} s, {}, {leader:?} leads, paused {paused}, {object:?}",
            if *outage { "outage" } else { "well" }
        )?;
        replicas
            .iter()
            .enumerate()
            .try_for_each(|(by, replica)| match replica {
                Some(replica) => write!(f, "; {by}: {replica:?}"),
                None => write!(f, "; {by}: -"),
            })?;
        write!(f, "; {requests:?}")
    }
}

/// An event.
#[derive(Clone, Copy, Debug)]
#[expect(
    dead_code,
    reason = "what the fields say is shown with a counterexample"
)]
enum ModelStep {
    OutageTurns,
    Edit(Edit),
    TimeGoesOn,
    Starts(usize),
    Leads(usize),
    Crashes(usize),
    Observes(usize),
    Probes(usize, Opinion),
    ProbeFails(usize),
    IsPermitted(usize),
    Reads(usize),
    ReadFails(usize),
    Verifies(usize),
    VerifyFails(usize),
    Arrives(usize),
    ArrivesButNoAnswerDoes(usize),
    IsLost(usize),
    Go,
}

/// The kind of world that is visited.
#[derive(Clone, Copy, Debug)]
struct Machines {
    /// True if the replica 1 always thinks that there is an outage, as with another config.
    disagree: bool,
}

impl ModelWorld {
    /// The replicas run, and the nodes are well.
    fn start(leader: LeadHolder, left: Left) -> Result<Self, String> {
        let mut world = Self {
            object: ModelObject::running(2),
            outage: false,
            paused: false,
            freed: Moment::START,
            now: Moment::START,
            leader,
            replicas: [None, None],
            requests: Vec::new(),
            left,
        };
        for by in 0..2 {
            world.start_replica(by)?;
        }
        Ok(world)
    }

    /// Time goes on to the next moment at which a machine wants to be woken. False if there is
    /// none.
    fn go_on(&mut self) -> Result<bool, String> {
        let next = self
            .replicas
            .iter()
            .flatten()
            .filter_map(ModelReplica::next)
            .filter(|&next| next > self.now)
            .min();
        let Some(next) = next else { return Ok(false) };
        self.now = next;
        for by in 0..2 {
            self.wake(by)?;
        }
        Ok(true)
    }

    /// Returns what a replica that probes may find, which is the truth.
    fn opinion(&self, by: usize, machines: Machines) -> Opinion {
        match self.outage || machines.disagree && by == 1 {
            true => Opinion::Down,
            false => Opinion::Up,
        }
    }

    fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Pause => (self.paused, self.freed) = (!self.paused, self.now),
            edit => self.object.edit(edit),
        }
    }
}

impl Explorable for Machines {
    type Vertex = WorldState;
    type Edge = ModelStep;

    fn steps(&self, state: &WorldState, mut to: impl FnMut(ModelStep, Result<WorldState, String>)) {
        let world = &*state.world;
        let mut step = |step: ModelStep, change: &dyn Fn(&mut ModelWorld) -> Result<(), String>| {
            let mut next = world.clone();
            let result = change(&mut next);
            to(step, result.map(|()| WorldState::from(next)));
        };
        let left = world.left;
        if left.turns > 0 {
            step(ModelStep::OutageTurns, &|next| {
                next.outage = !next.outage;
                next.left.turns -= 1;
                Ok(())
            });
        }
        if left.edits > 0 {
            for edit in Edit::ALL {
                step(ModelStep::Edit(edit), &|next| {
                    next.left.edits -= 1;
                    next.edit(edit);
                    Ok(())
                });
            }
        }
        if left.ticks > 0 {
            step(ModelStep::TimeGoesOn, &|next| {
                next.left.ticks -= 1;
                next.go_on().map(drop)
            });
        }
        if world.leader == LeadHolder::Go && world.object.go_has_work(world.outage) {
            step(ModelStep::Go, &|next| {
                next.object.go_works(next.outage);
                Ok(())
            });
        }
        for by in 0..2 {
            self.replica_steps(world, by, &mut step);
        }
        for (place, request) in world.requests.iter().enumerate() {
            step(ModelStep::Arrives(place), &|next| next.deliver(place, true));
            if left.losses > 0 || !request.awaited {
                let paid = u8::from(request.awaited);
                if request.awaited {
                    step(ModelStep::ArrivesButNoAnswerDoes(place), &|next| {
                        next.left.losses -= paid;
                        next.deliver(place, false)
                    });
                }
                step(ModelStep::IsLost(place), &|next| {
                    next.left.losses -= paid;
                    next.lose(place)
                });
            }
        }
    }

    fn check(&self, state: &WorldState) -> Result<(), String> {
        state.world.object.check()?;
        calm::comes_right(&state.world, *self)
    }
}

impl Machines {
    fn replica_steps(
        &self,
        world: &ModelWorld,
        by: usize,
        step: &mut impl FnMut(ModelStep, &dyn Fn(&mut ModelWorld) -> Result<(), String>),
    ) {
        let Some(replica) = &world.replicas[by] else {
            return step(ModelStep::Starts(by), &|next| next.start_replica(by));
        };
        if world.leader == LeadHolder::Nobody {
            step(ModelStep::Leads(by), &|next| next.lead(by));
        }
        if world.left.crashes > 0 {
            step(ModelStep::Crashes(by), &|next| {
                next.left.crashes -= 1;
                next.crash(by);
                Ok(())
            });
        }
        if !replica.has_observed(&world.object) {
            step(ModelStep::Observes(by), &|next| next.observe(by));
        }
        let lossy = world.left.losses > 0;
        if replica.is_probing() {
            let opinion = world.opinion(by, *self);
            step(ModelStep::Probes(by, opinion), &|next| {
                next.probe(by, Some(opinion))
            });
            if lossy {
                step(ModelStep::ProbeFails(by), &|next| {
                    next.left.losses -= 1;
                    next.probe(by, None)
                });
            }
        }
        if replica.awaits_permit() {
            step(ModelStep::IsPermitted(by), &|next| next.permit(by));
        }
        if replica.reads() {
            step(ModelStep::Reads(by), &|next| next.read(by, true));
            if lossy {
                step(ModelStep::ReadFails(by), &|next| {
                    next.left.losses -= 1;
                    next.read(by, false)
                });
            }
        }
        if replica.verifies() {
            step(ModelStep::Verifies(by), &|next| next.verify(by, true));
            if lossy {
                step(ModelStep::VerifyFails(by), &|next| {
                    next.left.losses -= 1;
                    next.verify(by, false)
                });
            }
        }
    }
}

/// A span of so many seconds.
const fn seconds(seconds: i64) -> TimeDelta {
    TimeDelta::seconds(seconds)
}
