//! One replica: a machine, what is under way for it, and what must hold of what it writes.

use std::sync::{Arc, LazyLock};

use super::object::ModelObject;
use super::{LeadHolder, ModelWorld, seconds};
use crate::config::DependentId;
use crate::dependent::DependentRecord;
use crate::judgement::Finding;
use crate::moment::Moment;
use crate::plan::{ByDirection, Deadline};
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed, PlannedWrite};
use crate::shoot::{Action, Input, Order, ProbeFailure, Shoot, Start, Verified};
use crate::tests::scene::{OwnedEnvironment, dependent, env};
use crate::verdict::Verdict;

/// Settings that all replicas share.
static COMMON: LazyLock<OwnedEnvironment> =
    LazyLock::new(|| env([dependent("machine-controller-manager", 0, 0)]));

/// Its place in the config.
const ONLY: DependentId = DependentId(0);

/// Result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opinion {
    Down,
    Up,
}

/// A request that is under way for its dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ModelSlot {
    Idle,
    AwaitingPermit,
    Permitted,
    Reading,
    Writing,
}

/// Something that a replica waits for.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// The object as it is now, by its watch.
    Observation,
    Permit,
    Read,
    Verification,
    Probe,
}

impl Pending {
    pub fn may_fail(self) -> bool {
        !matches!(self, Self::Observation | Self::Permit)
    }
}

/// One replica of the prober.
#[derive(Clone, Hash)]
pub struct ModelReplica {
    machine: Shoot,
    /// The object as its watch has shown it last.
    view: Observed,
    /// Time from which the Clusters are seen: those who gain the lead read them again.
    seed_since: Moment,
    clusters_read: Moment,
    /// Time at which the probe that is under way was sent.
    probing: Option<Moment>,
    verifying: bool,
    slot: ModelSlot,
    memo: Memo,
}

/// Memory of a replica by which its writes are judged.
#[derive(Clone, Debug, Hash)]
struct Memo {
    /// The last result of its complete probes, the time from which all have had it, and their
    /// number.
    opinion: Option<(Opinion, Moment, u8)>,
    /// Writes without the lead that were made since the opinion turned, and when the last was.
    standby_writes: (u8, Option<Moment>),
    verified: bool,
    /// The state that it knows, and when it knew it first; none when it is of its own making.
    known: (i32, crate::replicas::Marks, Option<Moment>),
}

impl std::fmt::Debug for ModelReplica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            machine,
            view,
            probing,
            verifying,
            slot,
            memo,
            ..
        } = self;
        let Memo {
            opinion,
            standby_writes,
            ..
        } = memo;
        write!(
            f,
            "{slot:?}, scales {:?}, probes {}, verifies {verifying}, observes {} (version {}), {opinion:?}, {standby_writes:?}",
            machine.scaling(),
            probing.is_some(),
            view.replicas,
            view.resource_version
        )
    }
}

/// A write on its way to the API server.
#[derive(Clone, Debug, Hash)]
pub struct Request {
    by: usize,
    change: PlannedWrite,
    needs_lead: bool,
    /// True if the replica still waits for the answer.
    pub awaited: bool,
}

impl ModelReplica {
    pub fn next(&self) -> Option<Moment> {
        self.machine.next().map(|(next, _)| next)
    }

    /// What it waits for, in the order in which it comes when nothing goes wrong.
    pub fn pending(&self, object: &ModelObject) -> impl Iterator<Item = Pending> + use<> {
        let waits = [
            (self.view != object.shown, Pending::Observation),
            (self.slot == ModelSlot::AwaitingPermit, Pending::Permit),
            (self.slot == ModelSlot::Reading, Pending::Read),
            (self.verifying, Pending::Verification),
            (self.probing.is_some(), Pending::Probe),
        ];
        waits
            .into_iter()
            .filter_map(|(waits, pending)| waits.then_some(pending))
    }

    /// True if it has written without the lead since its opinion turned.
    pub fn has_written_as_standby(&self) -> bool {
        self.memo.standby_writes.0 > 0
    }

    /// True if it saw the marker on what is at 0.
    pub fn saw_a_marker(&self) -> bool {
        self.machine
            .dependents()
            .all(DependentRecord::was_held_down)
    }

    fn knows(&mut self, observed: &Observed, now: Option<Moment>) {
        if (observed.replicas, &observed.marks) != (self.memo.known.0, &self.memo.known.1) {
            self.memo.known = (observed.replicas, observed.marks.clone(), now);
        }
    }
}

impl ModelWorld {
    fn env(&self, by: usize) -> OwnedEnvironment {
        let replica = self.replicas[by].as_ref().expect("a replica that runs");
        let mut env = COMMON.clone();
        env.leads = self.leader == LeadHolder::Replica(by);
        env.seed_since = ByDirection {
            up: Some(replica.clusters_read),
            down: Some(replica.seed_since),
        };
        env.paused = Some(self.paused);
        env.dependents = vec![DependentState::Present(Arc::new(replica.view.clone()))];
        env
    }

    /// A replica starts beside a shoot in operation.
    pub fn start_replica(&mut self, by: usize) -> Result<(), String> {
        let view = self.object.shown.clone();
        let start = Start {
            eligible: self.now,
            in_operation: true,
        };
        let mut first = COMMON.clone();
        first.dependents = vec![DependentState::Present(Arc::new(view.clone()))];
        first.spread = seconds(0);
        let memo = Memo {
            opinion: None,
            standby_writes: (0, None),
            verified: false,
            known: (view.replicas, view.marks.clone(), Some(self.now)),
        };
        let machine = Shoot::new(start, &first.env(), self.now);
        let replica = ModelReplica {
            machine,
            view,
            seed_since: self.now,
            clusters_read: self.now,
            probing: None,
            verifying: false,
            slot: ModelSlot::Idle,
            memo,
        };
        self.replicas[by] = Some(replica);
        self.wake(by)
    }

    /// It is killed; what it has sent is on its way.
    pub fn crash(&mut self, by: usize) {
        self.replicas[by] = None;
        self.requests
            .iter_mut()
            .filter(|request| request.by == by)
            .for_each(|request| request.awaited = false);
        if self.leader == LeadHolder::Replica(by) {
            self.leader = LeadHolder::Nobody;
        }
    }

    pub fn lead(&mut self, by: usize) -> Result<(), String> {
        self.leader = LeadHolder::Replica(by);
        self.replica(by).clusters_read = self.now;
        self.wake(by)
    }

    pub fn wake(&mut self, by: usize) -> Result<(), String> {
        if self.replicas[by].is_some() {
            self.feed(by, Input::Woken)
        } else {
            Ok(())
        }
    }

    /// What it waits for comes to it, or fails.
    pub fn answer(&mut self, by: usize, pending: Pending, answered: bool) -> Result<(), String> {
        match pending {
            Pending::Observation => self.observe(by),
            Pending::Permit => {
                self.replica(by).slot = ModelSlot::Permitted;
                self.feed(by, Input::Permitted(ONLY))
            }
            Pending::Read => self.read(by, answered),
            Pending::Verification => self.verify(by, answered),
            Pending::Probe => {
                let opinion = self.opinion(by);
                self.probe(by, answered.then_some(opinion))
            }
        }
    }

    fn observe(&mut self, by: usize) -> Result<(), String> {
        let (shown, now) = (self.object.shown.clone(), self.now);
        self.replica(by).knows(&shown, Some(now));
        self.replica(by).view = shown;
        self.wake(by)
    }

    /// A probe is answered, or fails.
    fn probe(&mut self, by: usize, opinion: Option<Opinion>) -> Result<(), String> {
        let now = self.now;
        let replica = self.replica(by);
        let judged_at = replica.probing.take().expect("a probe");
        let Some(opinion) = opinion else {
            return self.feed(by, Input::Failed(ProbeFailure::Other));
        };
        let memo = &mut replica.memo;
        memo.opinion = match memo.opinion {
            Some((before, since, probes)) if before == opinion => {
                Some((before, since, probes.saturating_add(1)))
            }
            _ => {
                (memo.standby_writes, memo.verified) = ((0, None), false);
                Some((opinion, judged_at, 1))
            }
        };
        let verdict = match opinion {
            Opinion::Down => Verdict::ScaleDown,
            Opinion::Up => Verdict::ScaleUp,
        };
        let deadline = Deadline::At(now + seconds(4));
        let finding = Finding {
            verdict,
            judged_at,
            ordering_deadline: deadline,
            nodes_known: true,
            ..Finding::default()
        };
        self.feed(by, Input::Found(finding))
    }

    fn read(&mut self, by: usize, answered: bool) -> Result<(), String> {
        let (shown, now) = (self.object.shown.clone(), self.now);
        self.replica(by).slot = ModelSlot::Idle;
        if !answered {
            return self.feed(by, Input::Read(ONLY, Err(Refusal::NoAnswer(String::new()))));
        }
        self.replica(by).knows(&shown, Some(now));
        self.feed(
            by,
            Input::Read(ONLY, Ok(DependentState::Present(Arc::new(shown)))),
        )
    }

    fn verify(&mut self, by: usize, answered: bool) -> Result<(), String> {
        let paused = self.paused;
        let replica = self.replica(by);
        replica.verifying = false;
        replica.memo.verified |= answered && !paused;
        let verified = Verified {
            is_ours: true,
            is_paused: paused,
            standby_protects: true,
            machines: Arc::default(),
        };
        self.feed(by, Input::Verified(answered.then_some(verified)))
    }

    /// A request reaches the API server, whose answer reaches the replica or not.
    pub fn deliver(&mut self, place: usize, answered: bool) -> Result<(), String> {
        let Request {
            by,
            change,
            needs_lead,
            awaited,
        } = self.requests.remove(place);
        let PlannedWrite { base, write } = &change;
        let fresh = base.resource_version == self.object.shown.resource_version;
        if fresh {
            self.object.apply(write)?;
            let now = self.now;
            if let (Some(replica), false) = (&mut self.replicas[by], needs_lead) {
                let (writes, last) = &mut replica.memo.standby_writes;
                let again = base.marks.held_down
                    && write.replicas == Some(0)
                    && last.is_some_and(|last| now - last >= seconds(10));
                if *writes > 0 && awaited && !again {
                    return Err(
                        "a replica that does not lead writes twice without a change of its mind"
                            .into(),
                    );
                }
                (*writes, *last) = (
                    writes.saturating_add(u8::from(awaited && answered)),
                    Some(now),
                );
            }
        }
        if !awaited {
            return Ok(());
        }
        let shown = self.object.shown.clone();
        let replica = self.replica(by);
        replica.slot = ModelSlot::Idle;
        let result = match (answered, fresh) {
            (false, _) => Err(Refusal::Timeout),
            (true, false) => Err(Refusal::Conflict),
            (true, true) => {
                replica.knows(&shown, None);
                Ok(Arc::new(change.after(shown.resource_version)))
            }
        };
        self.feed(by, Input::Written(ONLY, result))
    }

    /// A request never arrives.
    pub fn lose(&mut self, place: usize) -> Result<(), String> {
        let Request { by, awaited, .. } = self.requests.remove(place);
        if !awaited {
            return Ok(());
        }
        self.replica(by).slot = ModelSlot::Idle;
        self.feed(by, Input::Written(ONLY, Err(Refusal::Timeout)))
    }

    fn replica(&mut self, by: usize) -> &mut ModelReplica {
        self.replicas[by].as_mut().expect("a replica that runs")
    }

    fn feed(&mut self, by: usize, input: Input) -> Result<(), String> {
        let (env, now) = (self.env(by), self.now);
        for action in self.replica(by).machine.input(input, &env.env(), now) {
            let replica = self.replica(by);
            match action {
                Action::ListLeases { .. } => replica.probing = Some(now),
                Action::ListNodes => return Err("nodes are listed for no probe".into()),
                Action::Verify => replica.verifying = true,
                Action::AcquirePermit(..) => replica.slot = ModelSlot::AwaitingPermit,
                Action::Read(..) => replica.slot = ModelSlot::Reading,
                Action::Cancel(_) => {
                    replica.slot = ModelSlot::Idle;
                    self.requests
                        .iter_mut()
                        .filter(|request| request.by == by)
                        .for_each(|request| request.awaited = false);
                }
                Action::Write(order) => self.send(by, order)?,
                Action::Report(_) => {}
            }
        }
        Ok(())
    }

    /// A write is sent: says which rule it breaks.
    fn send(&mut self, by: usize, order: Order) -> Result<(), String> {
        let (now, paused, leads, freed) = (
            self.now,
            self.paused,
            self.leader == LeadHolder::Replica(by),
            self.freed,
        );
        let replica = self.replica(by);
        let Order {
            change,
            judged_at,
            needs_lead,
            ..
        } = order;
        let PlannedWrite { base, write } = &change;
        if replica.slot != ModelSlot::Permitted {
            return Err("written without a permit".into());
        }
        if paused {
            return Err("written although operators want nothing written".into());
        }
        if judged_at < freed {
            return Err("a write rests on a probe from before the pause was lifted".into());
        }
        if matches!(write.replicas, Some(1..)) && leads && judged_at < replica.clusters_read {
            return Err("a restore rests on a probe from before this replica led".into());
        }
        if needs_lead != leads {
            return Err("written as somebody else".into());
        }
        if replica.memo.known.2.is_some_and(|since| judged_at < since) {
            return Err("a write rests on a probe that is older than what it changes".into());
        }
        let opinion = replica.memo.opinion;
        if !leads {
            match (write.replicas, opinion) {
                (Some(0), Some((Opinion::Down, since, _))) => {
                    if !replica.memo.verified {
                        return Err("a replica that does not lead writes without having read the seed again".into());
                    }
                    if now - since < seconds(1) {
                        return Err(
                            "a replica that does not lead does not wait for the leader".into()
                        );
                    }
                }
                (Some(1..), Some((Opinion::Up, since, probes))) => {
                    if !base.marks.held_down || judged_at - since < seconds(60) || probes < 3 {
                        return Err("a replica that does not lead restores too soon, or what nobody took down".into());
                    }
                }
                (replicas, _) => {
                    return Err(format!(
                        "a replica that does not lead writes {replicas:?} as it observes {opinion:?}"
                    ));
                }
            }
        }
        replica.slot = ModelSlot::Writing;
        self.requests.push(Request {
            by,
            change,
            needs_lead,
            awaited: true,
        });
        Ok(())
    }
}
