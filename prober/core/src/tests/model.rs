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

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::TimeDelta;

use self::object::{Edit, ModelObject};
use self::replica::{ModelReplica, Opinion, Pending, Request};
use crate::moment::Moment;

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
    /// True if the replica 1 always thinks that there is an outage, as with another config.
    disagree: bool,
}

/// A world that was visited, the place of the one from which it was first reached, and how.
struct Visit {
    world: ModelWorld,
    from: Option<(usize, ModelStep)>,
}

type Change<'a> = &'a dyn Fn(&mut ModelWorld) -> Result<(), String>;

/// Visits every world that can be reached, breadth first, so that what leads to a wrong one is the
/// shortest way there, and returns how many there are. Worlds are told apart by hashes: they
/// themselves are large.
fn explore(start: ModelWorld) -> usize {
    let digest = |world: &ModelWorld| {
        [0, 1].map(|seed| {
            let mut hasher = DefaultHasher::new();
            (seed, world).hash(&mut hasher);
            hasher.finish()
        })
    };
    let mut known = HashSet::from([digest(&start)]);
    let mut visits = vec![Visit {
        world: start,
        from: None,
    }];
    let mut next = 0;
    while next < visits.len() {
        let world = visits[next].world.clone();
        world.steps(&mut |step: ModelStep, change: Change<'_>| {
            let mut after = world.clone();
            let changed = change(&mut after);
            if changed.is_ok() && !known.insert(digest(&after)) {
                return;
            }
            let wrong = changed.and_then(|()| after.check()).err();
            visits.push(Visit {
                world: after,
                from: Some((next, step)),
            });
            if let Some(wrong) = wrong {
                panic!("{wrong}\n{}", way(&visits));
            }
        });
        next += 1;
    }
    visits.len()
}

/// The way to the last world.
fn way(visits: &[Visit]) -> String {
    let (mut at, mut way) = (visits.len() - 1, vec![]);
    while let Some((from, step)) = visits[at].from {
        way.push(format!("  --{step:?}--> {:?}", visits[at].world));
        at = from;
    }
    way.reverse();
    way.join("\n")
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
    IsAnswered(usize, Pending),
    IsNotAnswered(usize, Pending),
    Arrives(usize),
    ArrivesButNoAnswerDoes(usize),
    IsLost(usize),
    Go,
}

impl ModelWorld {
    /// The replicas run, and the nodes are well.
    fn start(disagree: bool, leader: LeadHolder, left: Left) -> Result<Self, String> {
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
            disagree,
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
    fn opinion(&self, by: usize) -> Opinion {
        match self.outage || self.disagree && by == 1 {
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

    /// Tells every event that is possible, and what it changes.
    fn steps(&self, step: &mut impl FnMut(ModelStep, Change<'_>)) {
        let left = self.left;
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
        if self.leader == LeadHolder::Go && self.object.go_has_work(self.outage) {
            step(ModelStep::Go, &|next| {
                next.object.go_works(next.outage);
                Ok(())
            });
        }
        for by in 0..2 {
            self.replica_steps(by, step);
        }
        for (place, request) in self.requests.iter().enumerate() {
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

    fn check(&self) -> Result<(), String> {
        self.object.check()?;
        calm::comes_right(self)
    }

    fn replica_steps(&self, by: usize, step: &mut impl FnMut(ModelStep, Change<'_>)) {
        let Some(replica) = &self.replicas[by] else {
            return step(ModelStep::Starts(by), &|next| next.start_replica(by));
        };
        if self.leader == LeadHolder::Nobody {
            step(ModelStep::Leads(by), &|next| next.lead(by));
        }
        if self.left.crashes > 0 {
            step(ModelStep::Crashes(by), &|next| {
                next.left.crashes -= 1;
                next.crash(by);
                Ok(())
            });
        }
        for pending in replica.pending(&self.object) {
            step(ModelStep::IsAnswered(by, pending), &|next| {
                next.answer(by, pending, true)
            });
            if self.left.losses > 0 && pending.may_fail() {
                step(ModelStep::IsNotAnswered(by, pending), &|next| {
                    next.left.losses -= 1;
                    next.answer(by, pending, false)
                });
            }
        }
    }
}

/// A span of so many seconds.
const fn seconds(seconds: i64) -> TimeDelta {
    TimeDelta::seconds(seconds)
}
