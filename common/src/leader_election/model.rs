//! The election as a model whose every state is visited: two candidates, each deciding by the election's own [`Observation`], a
//! Lease that only ever changes from a known version, requests and answers that take any time or get lost, processes that end,
//! restart or are suspended at every step. What must hold: no two fences are open at once.
//!
//! Time goes in ticks. Ages beyond what any rule asks for are not told apart, so that the states are finite.

use std::time::Duration;

use explore::{Explored, Model, explore};
use serde_json::json;
use tokio::time::Instant;

use super::record::{Observation, Record, Step};

/// How long a Lease lasts, in ticks.
const LEASE: u8 = 3;
/// How long after the request for a renewal the fence closes, in ticks.
const DEADLINE: u8 = 2;

/// Who holds the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Nobody,
    Candidate(usize),
    /// A process that has ended: the next one in its place has another identity.
    Ghost,
}

/// The Lease when a candidate last saw it change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Seen {
    holder: Holder,
    age: u8,
    /// Whether it has not changed since.
    current: bool,
}

/// What a candidate knows to write on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    /// Nothing: it must read.
    Nothing,
    Lease,
    /// There was none.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Candidate {
    runs: bool,
    leads: bool,
    /// For how long its fence stays open.
    fence: u8,
    seen: Option<Seen>,
    known: Known,
    /// Whether what it knows is so still.
    fresh: bool,
}

const ENDED: Candidate = Candidate { runs: false, leads: false, fence: 0, seen: None, known: Known::Nothing, fresh: false };
const STARTED: Candidate = Candidate { runs: true, ..ENDED };

/// A write to the Lease on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    by: usize,
    /// Whether it gives the Lease up.
    release: bool,
    fresh: bool,
    awaited: bool,
    /// Whether its process has ended.
    ghost: bool,
    /// Whether it has been applied, so that it is the answer that is on its way.
    applied: bool,
    age: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    /// None when it does not exist.
    lease: Option<Holder>,
    candidates: [Candidate; 2],
    network: [Option<Request>; 2],
    deletions: u8,
    starts: u8,
}

#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "what the fields say is shown with a counterexample")]
enum Action {
    Tick,
    Starts(usize),
    Ends(usize),
    Reads(usize),
    Tries(usize),
    GivesUp(usize),
    Arrives(usize),
    IsAnswered(usize),
    /// Its sender does not wait for the answer any more; it may arrive nevertheless.
    IsGivenUpOn(usize),
    IsLost(usize),
    LeaseIsDeleted,
}

/// The rules, each of which can be left out to show that it is needed.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// A PUT names the version that it rests on.
    preconditions: bool,
    /// The fence counts from when a renewal was sent, not from when it was answered.
    from_sending: bool,
    /// renewDeadline.
    deadline: u8,
    /// How often somebody deletes the Lease, and how often a candidate starts that has never seen it.
    deletions: u8,
    starts: u8,
}

const OURS: Rules = Rules { preconditions: true, from_sending: true, deadline: DEADLINE, deletions: 0, starts: 1 };

/// A record of the Lease as a candidate sees it; `current` tells two renewals by the same holder apart.
fn record(of: usize, holder: Holder, current: bool) -> Record {
    let holder = match holder {
        Holder::Nobody => "",
        Holder::Candidate(other) if other == of => "me",
        Holder::Candidate(_) | Holder::Ghost => "other",
    };
    Record::of(&json!({ "holderIdentity": holder, "leaseDurationSeconds": LEASE, "renewTime": current }))
}

impl World {
    /// The Lease is written or deleted: whatever rests on how it was is out of date.
    fn change(&mut self, lease: Option<Holder>) {
        self.lease = lease;
        for candidate in &mut self.candidates {
            candidate.fresh = false;
            if let Some(seen) = &mut candidate.seen {
                seen.current = false;
            }
        }
        self.network.iter_mut().flatten().for_each(|request| request.fresh = false);
    }

    /// A candidate sees the Lease as it is now.
    fn note(&mut self, by: usize) {
        let Some(holder) = self.lease else { return };
        let candidate = &mut self.candidates[by];
        if candidate.seen.is_none_or(|seen| !seen.current) {
            candidate.seen = Some(Seen { holder, age: 0, current: true });
        }
    }

    /// What the election itself says that a candidate does next.
    fn step(&self, by: usize, now: Instant) -> Step {
        let mut observation = Observation::new("me".to_owned());
        if let Some(Seen { holder, age, current }) = self.candidates[by].seen {
            observation.note(&record(by, holder, current), now - Duration::from_secs(age.into()));
        }
        observation.step(now)
    }

    fn waits(&self, by: usize) -> bool {
        self.network.iter().flatten().any(|request| request.by == by && request.awaited)
    }

    fn end(&mut self, by: usize) {
        self.candidates[by] = ENDED;
        if self.lease == Some(Holder::Candidate(by)) {
            self.lease = Some(Holder::Ghost);
        }
        for seen in self.candidates.iter_mut().filter_map(|candidate| candidate.seen.as_mut()) {
            if seen.holder == Holder::Candidate(by) {
                seen.holder = Holder::Ghost;
            }
        }
        self.network.iter_mut().flatten().filter(|request| request.by == by).for_each(|request| {
            (request.awaited, request.ghost) = (false, true);
        });
        for place in &mut self.network {
            place.take_if(|request| request.applied && request.ghost);
        }
    }

    fn tick(&mut self) {
        for candidate in &mut self.candidates {
            candidate.fence = candidate.fence.saturating_sub(1);
            if let Some(seen) = &mut candidate.seen {
                seen.age = (seen.age + 1).min(LEASE);
            }
        }
        self.network.iter_mut().flatten().for_each(|request| request.age = (request.age + 1).min(LEASE));
    }

    /// A request reaches the API server.
    fn deliver(mut self, place: usize, rules: Rules) -> Self {
        let Some(request) = self.network[place].take() else { return self };
        let by = request.by;
        if request.fresh || (!rules.preconditions && self.lease.is_some()) {
            self.change(Some(match (request.release, request.ghost) {
                (true, _) => Holder::Nobody,
                (false, true) => Holder::Ghost,
                (false, false) => Holder::Candidate(by),
            }));
            if request.awaited {
                // The version that the answer tells is the Lease's until it changes again.
                self.network[place] = Some(Request { applied: true, fresh: true, ..request });
            }
        } else if request.awaited {
            self.candidates[by].known = Known::Nothing;
        }
        self
    }

    /// The answer to a request that was applied reaches its sender.
    fn answer(mut self, place: usize, rules: Rules) -> Self {
        let Some(request) = self.network[place].take() else { return self };
        let age = if rules.from_sending { request.age } else { 0 };
        let candidate = &mut self.candidates[request.by];
        candidate.seen = Some(Seen { holder: Holder::Candidate(request.by), age: 0, current: request.fresh });
        (candidate.known, candidate.fresh, candidate.leads) = (Known::Lease, request.fresh, true);
        candidate.fence = candidate.fence.max(rules.deadline.saturating_sub(age));
        self
    }
}

struct Election {
    rules: Rules,
    now: Instant,
}

impl Election {
    fn candidate_steps(&self, world: &World, by: usize, to: &mut impl FnMut(Action, Result<World, String>)) {
        let candidate = world.candidates[by];
        let mut step = |action, change: &dyn Fn(&mut World)| {
            let mut next = *world;
            change(&mut next);
            to(action, Ok(next));
        };
        if !candidate.runs {
            if world.starts > 0 {
                step(Action::Starts(by), &|next| {
                    next.candidates[by] = STARTED;
                    next.starts -= 1;
                });
            }
            return;
        }
        step(Action::Ends(by), &|next| next.end(by));
        // Whoever has led and whose fence has closed does nothing but end.
        if world.waits(by) || (candidate.leads && candidate.fence == 0) {
            return;
        }
        if candidate.known == Known::Nothing || !candidate.fresh {
            step(Action::Reads(by), &|next| {
                next.note(by);
                let known = if next.lease.is_some() { Known::Lease } else { Known::Absent };
                (next.candidates[by].known, next.candidates[by].fresh) = (known, true);
            });
        }
        let Some(place) = world.network.iter().position(Option::is_none) else { return };
        let request = Request { by, release: false, fresh: candidate.fresh, awaited: true, ghost: false, applied: false, age: 0 };
        if candidate.known != Known::Nothing && !matches!(world.step(by, self.now), Step::WaitUntil(_)) {
            step(Action::Tries(by), &|next| next.network[place] = Some(request));
        }
        if candidate.leads {
            step(Action::GivesUp(by), &|next| {
                next.network[place] = Some(Request { release: true, ..request });
                next.end(by);
            });
        }
    }
}

impl Model for Election {
    type State = World;
    type Action = Action;

    fn steps(&self, world: &World, mut to: impl FnMut(Action, Result<World, String>)) {
        let mut to = |action, result: Result<World, String>| {
            let tidy = |mut world: World| {
                if world.network[0].is_none() {
                    world.network.swap(0, 1);
                }
                world
            };
            to(action, result.map(tidy));
        };
        let mut next = *world;
        next.tick();
        to(Action::Tick, Ok(next));
        if world.deletions > 0 && world.lease.is_some() {
            let mut next = *world;
            next.change(None);
            next.deletions -= 1;
            to(Action::LeaseIsDeleted, Ok(next));
        }
        for by in 0..2 {
            self.candidate_steps(world, by, &mut to);
        }
        for place in 0..2 {
            let Some(request) = world.network[place] else { continue };
            if request.applied {
                to(Action::IsAnswered(place), Ok(world.answer(place, self.rules)));
            } else {
                to(Action::Arrives(place), Ok(world.deliver(place, self.rules)));
            }
            let mut lost = *world;
            lost.network[place] = None;
            if request.awaited {
                let mut late = *world;
                late.network[place] = (!request.applied).then_some(Request { awaited: false, ..request });
                for world in [&mut late, &mut lost] {
                    (world.candidates[request.by].known, world.candidates[request.by].fresh) = (Known::Nothing, false);
                }
                to(Action::IsGivenUpOn(place), Ok(late));
            }
            to(Action::IsLost(place), Ok(lost));
        }
    }

    fn check(&self, world: &World) -> Result<(), String> {
        match world.candidates.iter().all(|candidate| candidate.fence > 0) {
            true => Err("two fences are open".to_owned()),
            false => Ok(()),
        }
    }
}

fn explored(rules: Rules) -> Explored {
    let Rules { deletions, starts, .. } = rules;
    let start = World { lease: None, candidates: [STARTED; 2], network: [None; 2], deletions, starts };
    let explored = explore(&Election { rules, now: Instant::now() + Duration::from_secs(60) }, start, 10_000_000);
    println!("{rules:?}: {} states, {} actions, depth {}", explored.states, explored.actions, explored.depth);
    explored
}

fn breaks(rules: Rules) {
    let counterexample = explored(rules).counterexample.expect("without this rule it goes wrong");
    println!("{counterexample}");
}

#[test]
fn no_two_candidates_ever_lead_at_once() {
    let explored = explored(OURS);
    if let Some(counterexample) = &explored.counterexample {
        panic!("{counterexample}");
    }
    assert!(explored.states >= 10_000, "only {} states: the model does not reach what it should", explored.states);
}

#[test]
fn without_versions_two_lead() {
    breaks(Rules { preconditions: false, ..OURS });
}

#[test]
fn a_fence_that_counts_from_the_answer_is_open_for_too_long() {
    breaks(Rules { from_sending: false, ..OURS });
}

#[test]
fn a_deadline_longer_than_the_lease_lets_two_lead() {
    breaks(Rules { deadline: LEASE + 1, ..OURS });
}

#[test]
fn somebody_who_deletes_the_lease_can_make_two_lead_for_a_while() {
    // As with client-go: who has not seen the last renewal knows nothing of it. What the two write names its version.
    breaks(Rules { deletions: 1, ..OURS });
}
