//! The scale flow and the hand-over of leadership as a model whose every state is visited: the core's own decisions, made by two
//! replicas, against an API server that others write to as well, with everything going wrong that can, at every step.
//!
//! ```text
//!  two replicas: watch, look, decide -- requests, each with the version it rests on --> the object
//!       ^ crash, start, take the lead       applied | refused | lost | answer lost         ^
//!  nodes lose their way and find it                   operators, gardenlet, autoscalers ---'
//! ```
//!
//! Versions are not numbers here: a request or a view is *fresh* until the object changes, which is all that a precondition tells.

mod object;
mod recovery;
mod tests;

use std::cell::RefCell;
use std::collections::HashSet;

use explore::Model;

use self::object::{Change, Memory, Object, Patch, decide};
use self::recovery::recovers;
use super::plan::Direction;
use super::verdict::Scope;

/// What a replica's last look said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stand {
    Unknown,
    Down,
    Up,
    /// One candidate only, with a valid lease (D-20).
    UpHeldDown,
}

/// One replica of the prober.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Replica {
    runs: bool,
    /// It believes that it leads: its fence is open.
    leads: bool,
    stand: Stand,
    flow: Option<Direction>,
    /// What it last saw of the object.
    view: Object,
    fresh: bool,
}

const ENDED: Replica = Replica {
    runs: false,
    leads: false,
    stand: Stand::Unknown,
    flow: None,
    view: Object { replicas: 0, memory: Memory::Absent, marker: false, ignored: false },
    fresh: false,
};

/// Which part of a write a request is, where a write takes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Whole,
    First,
    Second,
}

/// A write on its way to the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    by: usize,
    write: Patch,
    part: Part,
    /// Whether the version it names is the object's still.
    fresh: bool,
    /// Whether the replica still waits for the answer.
    awaited: bool,
}

impl Request {
    /// What of the write it asks for.
    fn patch(&self, rules: Rules) -> Patch {
        let memory_first = (self.write.replicas == Some(0)) == rules.memory_outlives;
        match self.part {
            Part::Whole => self.write,
            Part::First if memory_first => self.write.annotations(),
            Part::Second if !memory_first => self.write.annotations(),
            Part::First | Part::Second => self.write.scale(),
        }
    }
}

/// How much may still go wrong or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    turns: u8,
    edits: u8,
    crashes: u8,
    losses: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    object: Object,
    /// What ran when the object was first held down, as long as nobody else has touched the annotations.
    owed: Option<u8>,
    /// Whether the nodes have lost their way.
    outage: bool,
    replicas: [Replica; 2],
    network: [Option<Request>; 2],
    left: Left,
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Scale(u8),
    ToggleIgnore,
    DeleteMemory,
    DeleteMarker,
    GarbleMemory,
    /// gardenlet wants two replicas, unless it finds the marker.
    Reconcile,
}

const EDITS: [Edit; 8] = [
    Edit::Scale(0),
    Edit::Scale(1),
    Edit::Scale(3),
    Edit::ToggleIgnore,
    Edit::DeleteMemory,
    Edit::DeleteMarker,
    Edit::GarbleMemory,
    Edit::Reconcile,
];

#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "what the fields say is shown with a counterexample")]
enum Action {
    OutageTurns,
    Edit(Edit),
    Starts(usize),
    Leads(usize),
    /// It is killed or loses the lead; what it has sent is on its way.
    Ends(usize),
    Sees(usize),
    Looks(usize, Stand),
    Decides(usize),
    Arrives(usize),
    ArrivesButNoAnswerDoes(usize),
    IsLost(usize),
}

/// The rules, each of which can be left out to show that it is needed.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Replicas live at spec.replicas: one write (D-29). Otherwise two.
    one_write: bool,
    /// Every write names the version it rests on.
    preconditions: bool,
    /// A valid memory under a marker is never overwritten (D-31).
    remembers: bool,
    /// Where a write takes two requests: the memory is written first on the way down, and last on the way up.
    memory_outlives: bool,
    /// Nobody leads while another one's fence is open.
    fence: bool,
}

const OURS: Rules = Rules { one_write: true, preconditions: true, remembers: true, memory_outlives: true, fence: true };

impl World {
    /// Two replicas run, one leads, and the nodes are well.
    fn start(left: Left) -> Self {
        let object = Object { replicas: 2, memory: Memory::Absent, marker: false, ignored: false };
        let replica = Replica { runs: true, view: object, fresh: true, ..ENDED };
        let replicas = [Replica { leads: true, ..replica }, replica];
        Self { object, owed: None, outage: false, replicas, network: [None; 2], left }
    }

    /// The object changes: what rests on how it was is out of date.
    fn change(&mut self, object: Object) {
        if object == self.object {
            return;
        }
        self.object = object;
        self.replicas.iter_mut().for_each(|replica| replica.fresh = false);
        self.network.iter_mut().flatten().for_each(|request| request.fresh = false);
    }

    /// What a replica that is dead, or has changed its mind, does not wait for any more.
    fn forget(&mut self, by: usize) {
        self.network.iter_mut().flatten().filter(|request| request.by == by).for_each(|request| request.awaited = false);
    }

    fn waits(&self, by: usize) -> bool {
        self.network.iter().flatten().any(|request| request.by == by && request.awaited)
    }

    /// The network's two places are alike: a request in the first one comes first.
    fn tidy(mut self) -> Self {
        if self.network[0].is_none() {
            self.network.swap(0, 1);
        }
        // What a replica that has ended believed does not matter.
        for replica in &mut self.replicas {
            if !replica.runs {
                *replica = ENDED;
            }
        }
        self
    }

    fn edit(&mut self, edit: Edit) {
        let mut object = self.object;
        match edit {
            Edit::Scale(replicas) => object.replicas = replicas,
            Edit::ToggleIgnore => object.ignored = !object.ignored,
            Edit::DeleteMemory => (object.memory, self.owed) = (Memory::Absent, None),
            Edit::GarbleMemory => (object.memory, self.owed) = (Memory::Garbage, None),
            Edit::DeleteMarker => (object.marker, self.owed) = (false, None),
            Edit::Reconcile if object.marker => {}
            Edit::Reconcile => object.replicas = 2,
        }
        self.change(object);
    }

    /// The API server takes a write. Says which rule the write breaks.
    fn apply(&mut self, patch: Patch) -> Result<(), String> {
        let (before, after) = (self.object, patch.apply(self.object));
        if patch.memory == Change::Set(0) {
            return Err("0 is remembered".to_owned());
        }
        if before.marker && before.is_usable() && after.memory != before.memory {
            if after.is_usable() {
                return Err("the memory of what is held down is overwritten".to_owned());
            }
            if after.replicas == 0 {
                return Err("the memory of what is held down is lost".to_owned());
            }
        }
        if before.replicas == 0 && after.replicas > 0 && before.is_usable() && before.memory != Memory::Says(after.replicas) {
            return Err("what comes back is not what is remembered".to_owned());
        }
        if before.replicas > 0 && after.replicas == 0 && !(after.marker && after.is_usable()) {
            return Err("held down without a memory".to_owned());
        }
        if after.marker && !before.marker {
            self.owed = Some(before.replicas);
        } else if !after.marker {
            self.owed = None;
        }
        self.change(after);
        Ok(())
    }

    /// A request reaches the API server, whose answer reaches the replica or not.
    fn deliver(mut self, place: usize, answered: bool, rules: Rules) -> Result<Self, String> {
        let Some(request) = self.network[place].take() else { return Ok(self) };
        let awaited = request.awaited && answered;
        if rules.preconditions && !request.fresh {
            if awaited {
                // 409: it is read anew.
                let object = self.object;
                let replica = &mut self.replicas[request.by];
                (replica.view, replica.fresh) = (object, true);
            }
            return Ok(self);
        }
        self.apply(request.patch(rules))?;
        let sender = &self.replicas[request.by];
        if request.part == Part::First && awaited && sender.leads {
            self.network[place] = Some(Request { part: Part::Second, fresh: true, ..request });
        }
        Ok(self)
    }
}

struct Flow {
    rules: Rules,
    /// From where it is known that everything comes right.
    recovered: RefCell<HashSet<World>>,
}

impl Flow {
    fn new(rules: Rules) -> Self {
        Self { rules, recovered: RefCell::default() }
    }

    /// A replica takes the next step of its flow. None when it has nothing to do or must not.
    fn decide(&self, world: &World, by: usize) -> Option<World> {
        let replica = world.replicas[by];
        let place = world.network.iter().position(Option::is_none)?;
        if !replica.leads || world.waits(by) {
            return None;
        }
        let (direction, scope) = match (replica.flow, replica.stand) {
            (Some(Direction::Down), Stand::Unknown) | (_, Stand::Down) => (Direction::Down, Scope::All),
            (_, Stand::Up) => (Direction::Up, Scope::All),
            (_, Stand::UpHeldDown) => (Direction::Up, Scope::HeldDown),
            (_, Stand::Unknown) => return None,
        };
        let mut next = *world;
        let write = decide(replica.view, direction, scope, self.rules.remembers);
        next.replicas[by].flow = write.map(|_| direction);
        next.network[place] = write.map(|write| {
            let part = if self.rules.one_write || write.replicas.is_none() { Part::Whole } else { Part::First };
            Request { by, write, part, fresh: replica.fresh, awaited: true }
        });
        Some(next)
    }

    fn look(world: &World, by: usize, stand: Stand) -> World {
        let mut next = *world;
        let replica = &mut next.replicas[by];
        let turned = match replica.flow {
            Some(Direction::Down) => matches!(stand, Stand::Up | Stand::UpHeldDown),
            Some(Direction::Up) => stand == Stand::Down,
            None => false,
        };
        replica.stand = stand;
        if turned {
            replica.flow = None;
            next.forget(by);
        }
        next
    }

    fn replica_steps(&self, world: &World, by: usize, to: &mut impl FnMut(Action, Result<World, String>)) {
        let replica = world.replicas[by];
        let mut step = |action, change: &dyn Fn(&mut World)| {
            let mut next = *world;
            change(&mut next);
            to(action, Ok(next));
        };
        if !replica.runs {
            let view = world.object;
            step(Action::Starts(by), &|next| next.replicas[by] = Replica { runs: true, view, fresh: true, ..ENDED });
            return;
        }
        if !replica.fresh {
            step(Action::Sees(by), &|next| (next.replicas[by].view, next.replicas[by].fresh) = (next.object, true));
        }
        if !replica.leads {
            let other = world.replicas[1 - by];
            if !other.leads || !self.rules.fence {
                step(Action::Leads(by), &|next| next.replicas[by].leads = true);
            }
            return;
        }
        if world.left.crashes > 0 {
            step(Action::Ends(by), &|next| {
                next.replicas[by] = ENDED;
                next.forget(by);
                next.left.crashes -= 1;
            });
        }
        let truths: &[Stand] =
            if world.outage { &[Stand::Down, Stand::Unknown] } else { &[Stand::Up, Stand::UpHeldDown, Stand::Unknown] };
        for &stand in truths.iter().filter(|&&stand| stand != replica.stand) {
            to(Action::Looks(by, stand), Ok(Self::look(world, by, stand)));
        }
        if let Some(next) = self.decide(world, by) {
            to(Action::Decides(by), Ok(next));
        }
    }
}

impl Model for Flow {
    type State = World;
    type Action = Action;

    fn steps(&self, world: &World, mut to: impl FnMut(Action, Result<World, String>)) {
        let mut to = |action, result: Result<World, String>| to(action, result.map(World::tidy));
        if world.left.turns > 0 {
            let mut next = *world;
            next.outage = !next.outage;
            next.left.turns -= 1;
            to(Action::OutageTurns, Ok(next));
        }
        if world.left.edits > 0 {
            for edit in EDITS {
                let mut next = *world;
                next.edit(edit);
                next.left.edits -= 1;
                to(Action::Edit(edit), Ok(next));
            }
        }
        for by in 0..2 {
            self.replica_steps(world, by, &mut to);
        }
        for place in 0..2 {
            let Some(request) = world.network[place] else { continue };
            to(Action::Arrives(place), world.deliver(place, true, self.rules));
            if world.left.losses > 0 || !request.awaited {
                let mut lossy = *world;
                lossy.left.losses -= u8::from(request.awaited);
                if request.awaited {
                    to(Action::ArrivesButNoAnswerDoes(place), lossy.deliver(place, false, self.rules));
                }
                lossy.network[place] = None;
                to(Action::IsLost(place), Ok(lossy));
            }
        }
    }

    fn check(&self, world: &World) -> Result<(), String> {
        if let (Some(owed), true) = (world.owed, world.object.marker)
            && world.object.memory != Memory::Says(owed)
        {
            return Err(format!("{owed} ran when it was held down, which is not what is remembered"));
        }
        if self.rules.fence && world.replicas.iter().all(|replica| replica.leads) {
            return Err("both lead".to_owned());
        }
        recovers(world, self)
    }
}
