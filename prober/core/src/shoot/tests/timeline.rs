//! A machine with its shoot and its seed, and a record of all that it said.

use std::collections::VecDeque;

use super::*;
use crate::tests::scene::{env, lease, node_record, span, wall};
use crate::verdict::{BackedNodes, NodeRecord};

/// The nodes' last renewals are 100.0, 100.1 and 100.2 s after the start, and with the second an
/// outage is found.
pub const SILENT_FROM: f64 = 104.5;
const DECISIVE_RENEWAL: f64 = 100.1;
/// A multiple of all beats in use.
const LONG_BEFORE: f64 = -96_000.0;

/// The answers of the shoot's API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Answers,
    Fails(ProbeFailure),
    Takes(TimeDelta),
    /// Only [`Timeline::answer`] does.
    Hangs,
    /// It is not asked: the owner record says that all is to be taken down.
    Passivated,
}

pub const FAILS: Api = Api::Fails(ProbeFailure::Other);

/// The nodes renew their leases a tenth of a second apart.
#[derive(Default)]
pub struct Nodes {
    pub count: usize,
    /// So many of them have a Machine.
    pub machines: usize,
    /// So many of them are never silent.
    pub spared: usize,
    /// Interval of the renewals.
    pub beat: f64,
    /// Seconds by which their clocks are ahead of ours.
    pub ahead: f64,
    /// True if none counts, since it has no network.
    pub excluded: bool,
    /// Times since the start between which they renew.
    renewing: Vec<(f64, f64)>,
}

impl Nodes {
    fn name(number: usize) -> String {
        format!("node-{number}")
    }

    fn machines(&self) -> Arc<BackedNodes> {
        let names: Vec<_> = (0..self.machines).map(Self::name).collect();
        Arc::new(names.iter().map(|name| Some(name.as_str())).collect())
    }

    /// Time of the last renewal of a node.
    fn renewed(&self, number: usize, now: f64) -> f64 {
        let last = |&(from, until): &(f64, f64)| {
            let first = from + number as f64 / 10.0;
            let end = if number < self.spared {
                now
            } else {
                now.min(until - 0.001)
            };
            let beats = ((end - first) / self.beat + 1e-9).floor();
            (beats >= 0.0).then_some(first + beats * self.beat)
        };
        let renewals = self.renewing.iter().filter_map(last);
        renewals.fold(f64::MIN, f64::max)
    }

    fn records(&self) -> Vec<NodeRecord> {
        let record = |number| node_record(&Self::name(number), self.excluded);
        (0..self.count).map(record).collect()
    }
}

/// The seed, which does at once what the machine asks for.
#[derive(Default)]
pub struct Seed {
    /// True if only the test gives permits.
    pub holds_permits: bool,
    /// True if only the test answers.
    pub holds_writes: bool,
    /// The dependents whose writes are refused.
    pub refused: Vec<DependentId>,
    /// True if pods outlive their replicas.
    pub pods_linger: bool,
    /// True if the view shows nothing of what this replica writes.
    pub view_lags: bool,
    /// Version of the last write.
    pub version: u64,
    /// A dependent as it is read after a conflict; `None` if that is as in the view.
    pub read: Option<Observed>,
    /// True if the seed does not confirm to a standby that the shoot is to be protected.
    pub disagrees: bool,
}

pub struct Timeline {
    pub shoot: Shoot,
    pub env: Environment,
    pub nodes: Nodes,
    pub seed: Seed,
    pub api: Api,
    pub start: Start,
    pub now: Moment,
    zero: Moment,
    /// When a slow probe is answered, when it was sent, and whether it lists the nodes.
    slow: Option<(Moment, Moment, bool)>,
    /// What it said, and by which verdict.
    log: Vec<(Moment, Action, Option<Verdict>)>,
}

/// A leader that begins to probe a shoot in operation, whose three nodes renew every 10 s.
pub fn healthy() -> Timeline {
    let mut env = env([
        dependent("machine-controller-manager", 1, 0),
        dependent("kube-controller-manager", 0, 1),
    ]);
    env.chance = 0.0;
    let start = Start {
        eligible: Moment::START,
        in_operation: true,
    };
    Timeline {
        shoot: Shoot::new(start, &env, Moment::START),
        env,
        nodes: Nodes {
            count: 3,
            machines: 3,
            beat: 10.0,
            renewing: vec![(LONG_BEFORE, f64::MAX)],
            ..Nodes::default()
        },
        seed: Seed {
            version: 1,
            ..Seed::default()
        },
        api: Api::Answers,
        start,
        now: Moment::START,
        zero: Moment::START,
        slow: None,
        log: vec![],
    }
}

/// Events.
impl Timeline {
    pub fn moment(&self, seconds: f64) -> Moment {
        self.zero + span(seconds)
    }

    pub fn seconds(&self, moment: Moment) -> f64 {
        ((moment - self.zero).as_seconds_f64() * 1000.0).round() / 1000.0
    }

    pub fn time(&self) -> f64 {
        self.seconds(self.now)
    }

    /// Lets times count from now on.
    pub fn mark(&mut self) {
        self.zero = self.now;
    }

    /// Kubelets fit this grace, and times count from the verdict in an outage.
    pub fn grace(&mut self, seconds: f64) {
        self.nodes.beat = f64::min(10.0, seconds / 4.0);
        self.zero = Moment::START + span(DECISIVE_RENEWAL + 0.75 * seconds + 0.001);
        let settings = Arc::make_mut(&mut self.env.settings);
        settings.node_monitor_grace = Some(span(seconds));
    }

    /// Lets time pass.
    pub fn until(&mut self, seconds: f64) -> &mut Self {
        let end = self.moment(seconds);
        let mut idle = 0;
        self.input(Input::Woken);
        while let Some(next) = self.next().filter(|next| *next <= end) {
            idle = if next > self.now { 0 } else { idle + 1 };
            let last = self.log.len().saturating_sub(10);
            assert!(idle < 100, "a hot loop: {:?}", &self.log[last..]);
            self.now = next.max(self.now);
            if let Some((_, sent, with_nodes)) = self.slow.take_if(|(due, ..)| *due <= self.now) {
                let actions = self.list(sent, with_nodes);
                self.follow(actions);
            } else {
                self.input(Input::Woken);
            }
        }
        self.now = self.now.max(end);
        self.input(Input::Woken);
        self
    }

    /// The next moment at which something happens by itself.
    fn next(&self) -> Option<Moment> {
        let answered = self.slow.map(|(due, ..)| due);
        answered.into_iter().chain(self.shoot.next()).min()
    }

    /// From then on no lease is renewed.
    pub fn fall_silent(&mut self, seconds: f64) {
        let from = self.moment(seconds).elapsed_since_start();
        if let Some(renewing) = self.nodes.renewing.last_mut() {
            renewing.1 = from.as_seconds_f64();
        }
    }

    /// The nodes renew now, and from now on.
    pub fn nodes_back(&mut self) {
        let now = self.now.elapsed_since_start().as_seconds_f64();
        self.nodes.renewing.push((now, f64::MAX));
    }

    pub fn input(&mut self, input: Input) {
        let actions = self.take(input);
        self.follow(actions);
    }

    /// Answers the probe that was sent then by the leases and nodes as they are now.
    pub fn answer(&mut self, sent: Moment) {
        let actions = self.list(sent, true);
        self.follow(actions);
    }

    /// Lets one write of each direction be sent.
    pub fn permit(&mut self) {
        for direction in [Direction::Down, Direction::Up] {
            self.input(Input::Permitted(direction));
        }
    }

    /// Refuses a write, since the dependent was changed, and reads it again.
    pub fn conflict(&mut self, id: DependentId) {
        let seen = || self.env.dependents[id.0].clone();
        let read = self.seed.read.clone().map_or_else(seen, present);
        self.input(Input::Written(id, Err(Refusal::Conflict(read))));
    }

    /// Makes the last write of a dependent, which is held, and answers it.
    pub fn make(&mut self, id: DependentId) {
        let order = self
            .log
            .iter()
            .rev()
            .find_map(|(_, action, _)| match action {
                Action::Write(order) if order.dependent == id => Some(order.clone()),
                _ => None,
            });
        let actions = self.write(&order.expect("an order"));
        self.follow(actions);
    }

    /// Others write a dependent, and the view shows it at once.
    pub fn show(&mut self, id: DependentId, change: impl FnOnce(&mut Observed)) {
        self.seed.version += 1;
        let mut observed = match &self.env.dependents[id.0] {
            DependentState::Present(observed) => Observed::clone(observed),
            _ => running(1),
        };
        change(&mut observed);
        observed.resource_version = self.seed.version.to_string();
        self.env.dependents[id.0] = present(observed);
    }

    fn follow(&mut self, actions: Vec<Action>) {
        let (mut pending, mut count) = (VecDeque::from(actions), 0);
        while let Some(action) = pending.pop_front() {
            count += 1;
            assert!(count < 1000, "a hot loop: {action:?}");
            match action {
                // It is there before anything else is answered.
                Action::AwaitPermit(direction) if !self.seed.holds_permits => {
                    let permitted = self.take(Input::Permitted(direction));
                    permitted
                        .into_iter()
                        .rev()
                        .for_each(|action| pending.push_front(action));
                }
                action => pending.extend(self.carry_out(action)),
            }
        }
    }

    fn take(&mut self, input: Input) -> Vec<Action> {
        self.env.machines = Some(self.nodes.machines());
        let actions = self.shoot.input(input, &self.env, self.now);
        let verdict = self.shoot.finding().map(|finding| finding.verdict);
        let said = actions.iter().cloned();
        self.log
            .extend(said.map(|action| (self.now, action, verdict)));
        actions
    }

    fn carry_out(&mut self, action: Action) -> Vec<Action> {
        match action {
            Action::Probe { with_nodes } => self.probe(with_nodes),
            Action::Write(order) => {
                let id = order.dependent;
                let is_standbys = !order.needs_lead && order.change.write.replicas == Some(0);
                let refusal = match () {
                    () if is_standbys && self.seed.disagrees => {
                        // It is not sent.
                        self.log
                            .retain(|(_, said, _)| *said != Action::Write(order.clone()));
                        Refusal::Unverified(String::new())
                    }
                    () if self.seed.refused.contains(&id) => Refusal::NotLeading,
                    () if self.seed.holds_writes => return vec![],
                    () => return self.write(&order),
                };
                self.take(Input::Written(id, Err(refusal)))
            }
            _ => vec![],
        }
    }

    fn probe(&mut self, with_nodes: bool) -> Vec<Action> {
        if matches!(self.api, Api::Answers | Api::Passivated) {
            // A request is sent after it was decided on.
            self.now = self.now + TimeDelta::microseconds(1);
        }
        match self.api {
            Api::Answers => self.list(self.now, with_nodes),
            Api::Fails(failure) => self.take(Input::Failed(failure)),
            Api::Takes(latency) => {
                self.slow = Some((self.now + latency, self.now, with_nodes));
                vec![]
            }
            Api::Hangs => vec![],
            Api::Passivated => self.take(Input::Decreed(Verdict::ScaleDown)),
        }
    }

    fn list(&mut self, sent: Moment, with_nodes: bool) -> Vec<Action> {
        let now = self.now.elapsed_since_start().as_seconds_f64();
        let times = RequestTimes {
            sent,
            received: self.now,
            wall: wall(now),
        };
        let mut leases = LeaseList::default();
        for number in 0..self.nodes.count {
            let renewed = self.nodes.renewed(number, now);
            leases.push(lease(&Nodes::name(number), renewed + self.nodes.ahead));
        }
        let nodes = with_nodes.then(|| self.nodes.records());
        self.take(Input::Probed(Answer {
            times,
            leases,
            nodes,
        }))
    }

    /// Makes a write, and lets the view show it after its answer.
    fn write(&mut self, order: &Order) -> Vec<Action> {
        self.seed.version += 1;
        let mut after = order.change.after(self.seed.version.to_string());
        if !self.seed.pods_linger {
            after.ready = after.replicas;
        }
        let after = Arc::new(after);
        let actions = self.take(Input::Written(order.dependent, Ok(Arc::clone(&after))));
        if !self.seed.view_lags {
            self.env.dependents[order.dependent.0] = DependentState::Present(after);
        }
        actions
    }
}

/// A record of what the machine said.
impl Timeline {
    /// All that was said of a kind, with its times.
    pub fn said(
        &self,
        which: impl Fn(&Action, Option<Verdict>) -> Option<String>,
    ) -> Vec<(f64, String)> {
        let said = self.log.iter();
        said.filter_map(|(when, action, verdict)| {
            Some((self.seconds(*when), which(action, *verdict)?))
        })
        .collect()
    }
}
