//! From wherever the model has come to: when nothing goes wrong any more, does everything come
//! right? Also when nobody leads.

use super::replica::ModelReplica;
use super::{LeadHolder, ModelWorld};

/// Time that it may take: the standby's 60 s of "up", its probes, and its initialDelay.
const LIMIT_S: i64 = 200;

/// Lets time go on without further trouble: with the replicas that there are and the one that
/// leads, and without any leader.
pub fn comes_right(world: &ModelWorld) -> Result<(), String> {
    // Replicas that disagree for ever are never idle.
    if world.disagree
        || world.paused
        || world.leader == LeadHolder::Go && world.object.go_has_work(world.outage)
    {
        return Ok(());
    }
    if world.leader != LeadHolder::Go {
        let mut led = world.clone();
        if led.leader == LeadHolder::Nobody {
            if led.replicas[0].is_none() {
                led.start_replica(0)?;
            }
            led.lead(0)?;
        }
        led.settle(ModelWorld::check_idle)?;
    }
    // Nobody leads, or the leader hangs: the others take down what is up, and restore what carries
    // the marker.
    let mut alone = world.clone();
    match alone.leader {
        LeadHolder::Replica(by) => alone.crash(by),
        LeadHolder::Nobody | LeadHolder::Go => alone.leader = LeadHolder::Nobody,
    }
    if alone.replicas.iter().all(Option::is_none) {
        alone.start_replica(1)?;
    }
    alone.settle(ModelWorld::check_protected)
}

impl ModelWorld {
    /// Lets time go on until nothing is wrong any more.
    fn settle(&mut self, check: impl Fn(&Self) -> Result<(), String>) -> Result<(), String> {
        let until = self.now + super::seconds(LIMIT_S);
        loop {
            while self.step()? {}
            let right = check(self);
            if right.is_ok() || self.now >= until || !self.go_on()? {
                return right;
            }
        }
    }

    /// Whatever is under way comes to its end, one thing at a time.
    fn step(&mut self) -> Result<bool, String> {
        if !self.requests.is_empty() {
            return self.deliver(0, true).map(|()| true);
        }
        for by in 0..2 {
            let pending = |replica: &ModelReplica| replica.pending(&self.object).next();
            if let Some(pending) = self.replicas[by].as_ref().and_then(pending) {
                return self.answer(by, pending, true).map(|()| true);
            }
        }
        Ok(false)
    }

    /// Returns the fault of an object that nothing is to be done about any more.
    fn check_idle(&self) -> Result<(), String> {
        let (object, marks) = (&self.object.shown, &self.object.shown.marks);
        let wrong = match (marks.ignored, self.outage) {
            (true, _) => marks.held_down.then_some("ignored, and marked"),
            (false, true) if object.replicas > 0 => Some("still up in an outage"),
            (false, true)
                if self.object.remembered().is_some()
                    && !marks.held_down
                    && self.leader_saw_a_marker() =>
            {
                Some("not marked although its memory is there")
            }
            (false, true) => None,
            (false, false) if object.replicas == 0 => Some("still at 0 though the nodes are well"),
            (false, false) if marks.held_down => Some("still marked though the nodes are well"),
            (false, false) => None,
        };
        wrong.map_or(Ok(()), |wrong| {
            Err(format!("idle, and {wrong}: {object:?}"))
        })
    }

    fn leader_saw_a_marker(&self) -> bool {
        matches!(self.leader, LeadHolder::Replica(by) if self.replicas[by].as_ref().is_some_and(ModelReplica::saw_a_marker))
    }

    fn has_written_as_standby(&self) -> bool {
        self.replicas
            .iter()
            .flatten()
            .any(ModelReplica::has_written_as_standby)
    }

    /// The same where nobody leads.
    fn check_protected(&self) -> Result<(), String> {
        let (object, marks) = (&self.object.shown, &self.object.shown.marks);
        let wrong = match self.outage {
            _ if marks.ignored => None,
            // One that stood in once, and was overruled by others who take the marker away, does
            // not fight.
            true if object.replicas > 0 && !self.has_written_as_standby() => {
                Some("still up in an outage")
            }
            false if object.replicas == 0 && marks.held_down => {
                Some("still held down though the nodes are well")
            }
            _ => None,
        };
        wrong.map_or(Ok(()), |wrong| {
            Err(format!("nobody leads, and {wrong}: {object:?}"))
        })
    }
}
