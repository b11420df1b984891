//! What a write must rest on, by what a replica could know and by what is true. It knows nothing of
//! how the machine decides.

use std::collections::{HashSet, VecDeque};

use super::driver::{ChaosLife, ChaosReplica};
use super::plan::{ChaosPlan, Leadership, Mishap};
use crate::owner::Ownership;
use crate::replicas::{Marks, Observed, PlannedWrite};
use crate::shoot::{Order, Shoot};
use crate::tests::simulation::Seconds;
use crate::verdict::Verdict;

/// Moments of the machine are exact to this.
const EXACT: Seconds = 2e-6;
/// A probe that was sent so long ago is old, unless none was answered since.
const OLD: Seconds = 3.0;
/// So long before the first node is marked, levels wait for nothing (D-35).
const HEAD_START: Seconds = 3.05;
/// The most probes in 10 s.
const MOST_PROBES: usize = 16;

/// What a replica knows of an object, and since when others have had it so.
#[derive(Default)]
pub struct Known {
    state: Option<(String, i32, Marks)>,
    version: u64,
    since: Seconds,
}

impl Known {
    pub fn new(object: Option<&Observed>, since: Seconds) -> Self {
        Self {
            state: object.map(|object| (object.uid.clone(), object.replicas, object.marks.clone())),
            version: object.map_or(0, version),
            since,
        }
    }
}

fn version(object: &Observed) -> u64 {
    object.resource_version.parse().expect("a number")
}

/// What is remembered of a replica to judge its writes by.
#[derive(Default)]
pub struct OracleMemory {
    pub known: Vec<Known>,
    /// The versions that it made.
    pub own: HashSet<u64>,
    /// Since when it may write: it runs, sees the seed, is not paused and owns the shoot.
    pub free_since: Seconds,
    /// When the lead, its config or the shoot's settings last changed for it.
    pub changed_since: Seconds,
    /// When the last complete probe was sent, and what it said.
    pub finding: Option<(Seconds, Verdict)>,
    pub probes: VecDeque<Seconds>,
}

impl OracleMemory {
    /// The replica is shown an object, by a watch or by a read.
    pub fn sees(&mut self, place: usize, object: Option<&Observed>, t: Seconds) {
        let known = &mut self.known[place];
        if object.is_some_and(|object| version(object) <= known.version) {
            return;
        }
        let new = Known::new(object, t);
        let by_others = known.state.is_some()
            && new.state.is_some()
            && new.state != known.state
            && !self.own.contains(&new.version);
        *known = Known {
            since: if by_others { t } else { known.since },
            version: new.version.max(known.version),
            ..new
        };
    }
}

impl ChaosPlan {
    /// Probes are answered, and the process runs.
    fn is_clear(&self) -> bool {
        self.fails == 0.0 && !self.away && !self.has(Mishap::Suspend)
    }

    /// How old a replica's knowledge of the candidates may be: nodes are listed again only where
    /// they matter.
    fn candidates_known_within(&self) -> Seconds {
        if self.churn || self.conditions || self.machines_go {
            (self.interval * 1.2 + 1.0).max(self.grace / 2.0)
        } else {
            6.0
        }
    }

    const fn threshold(&self) -> Seconds {
        self.grace * 0.75
    }
}

impl ChaosLife {
    fn complain(&mut self, by: usize, what: &str) {
        self.note(&format!("WRONG {what}"));
        self.wrong.push(format!("{:.2} {by} {what}", self.t));
    }

    pub fn check_probes(&mut self, by: usize) {
        let t = self.t;
        let probes = &mut self.replicas[by].memory.probes;
        probes.push_back(t);
        while probes.front().is_some_and(|probe| *probe < t - 10.0) {
            probes.pop_front();
        }
        if probes.len() > MOST_PROBES {
            self.complain(by, "probes too often");
        }
    }

    pub fn note_finding(&mut self, by: usize) {
        let finding = self.replicas[by].machine.as_ref().and_then(Shoot::finding);
        if let Some(finding) = finding {
            let sent = finding.judged_at.elapsed_since_start().as_seconds_f64();
            let (verdict, tally) = (finding.verdict, finding.tally);
            self.note(&format!(
                "{by} finds {verdict:?} {tally:?}, asked at {sent:.3}"
            ));
            self.replicas[by].memory.finding = Some((sent, verdict));
        }
    }

    /// As an order is given: does it rest on what it must?
    pub fn check_order(&mut self, by: usize, place: usize, order: &Order) {
        let sent = order.judged_at.elapsed_since_start().as_seconds_f64();
        let to = order.change.write.replicas;
        let name = self.names[place];
        let replica = &self.replicas[by];
        let mut wrong = vec![];
        if order.needs_lead != replica.env.leads {
            wrong.push("as somebody else".into());
        }
        if replica.env.owner.is_some_and(Ownership::is_lost) {
            if !self.plan.passivates || !replica.env.leads || to.is_some_and(|to| to > 0) {
                wrong.push("though the shoot is lost".into());
            }
        } else {
            wrong.extend(forbidden(replica, to));
            wrong.extend(self.out_of_date(by, place, to, sent));
            wrong.extend(match to {
                Some(0) => self.wrongly_down(by, sent),
                Some(_) => self.wrongly_up(sent),
                None => None,
            });
        }
        for wrong in wrong {
            self.complain(
                by,
                &format!("writes {name} {to:?} {wrong}, asked at {sent:.3}"),
            );
        }
    }

    /// Evidence from before something that it must not be older than.
    fn out_of_date(&self, by: usize, place: usize, to: Option<i32>, sent: Seconds) -> Vec<String> {
        let memory = &self.replicas[by].memory;
        let known = memory.known[place].since;
        let from_before = |what: &str, since: Seconds| {
            (sent + EXACT < since).then(|| format!("by a probe from before {what} at {since:.3}"))
        };
        let changed = from_before("the lead, config or settings", memory.changed_since);
        let changed = changed.filter(|_| {
            // Past the ordering deadline protection goes on by what is known (D-57).
            let end = self.nodes.first_end(sent, self.plan.grace);
            let waits = end.is_some_and(|end| self.t < end - HEAD_START);
            to != Some(0) || self.t < memory.changed_since + 1.99 && waits
        });
        [
            from_before("it was allowed", memory.free_since),
            from_before("the resource was seen so", known),
            changed,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn wrongly_down(&mut self, by: usize, sent: Seconds) -> Option<String> {
        let (plan, nodes) = (self.plan, &self.nodes);
        let newest = self.replicas[by].memory.finding;
        if let Some((later, verdict)) = newest.filter(|(later, _)| *later > sent + 1e-6)
            && verdict.is_up()
        {
            return Some(format!(
                "though the later probe of {later:.2} said {verdict:?}"
            ));
        }
        let answer = plan.answers.1;
        let age = plan.threshold() - 1.8 - plan.late;
        let within = plan.candidates_known_within();
        let mut outage = nodes
            .is_outage_by(sent + answer, within, age - answer)
            .chain(nodes.is_outage_by(sent, within, age));
        let justified = outage.any(|outage| outage);
        let verdict = newest.map(|(_, verdict)| verdict);
        let holds = [
            Verdict::HoldUndecided,
            Verdict::HoldSingleCandidate,
            Verdict::HoldNoMachines,
        ];
        if !justified && verdict.is_some_and(|verdict| holds.contains(&verdict)) {
            self.in_a_hold += 1;
        } else if !justified {
            return Some("though the nodes renew".into());
        }
        let decided =
            verdict.is_some_and(|verdict| verdict == Verdict::ScaleDown || verdict.is_up());
        (plan.is_clear() && self.t - sent > OLD + 2.0 * answer && decided)
            .then(|| format!("by evidence that is {:.2} s old", self.t - sent))
    }

    fn wrongly_up(&self, sent: Seconds) -> Option<String> {
        let plan = &self.plan;
        let skew = if plan.is_skewed() { 1.8 } else { 0.5 };
        let age = plan.threshold() + skew;
        let within = plan.candidates_known_within();
        let mut outage = [sent, sent + plan.answers.1]
            .into_iter()
            .flat_map(|t| self.nodes.is_outage_by(t, within, age));
        outage.all(|outage| outage).then(|| {
            let age = self.nodes.deciding_age(sent);
            format!("in mid-outage, with leases {age:.1?} s old")
        })
    }

    /// As a write is made: is what it leaves behind right?
    pub fn check_written(
        &mut self,
        by: usize,
        place: usize,
        change: &PlannedWrite,
        after: &Observed,
    ) {
        let memory = &mut self.replicas[by].memory;
        memory.own.insert(version(after));
        if let Some(known) = memory.known.get_mut(place) {
            *known = Known::new(Some(after), known.since);
        }
        let name = self.names[place];
        let to = change.write.replicas;
        if to.is_some_and(|to| to > 0 && to != 2) && !self.edited[place] {
            self.complain(by, &format!("brings {name} back to {to:?}"));
        }
        if after.marks.replicas.as_deref() == Some("0") {
            self.complain(by, &format!("remembers 0 for {name}"));
        }
        if to == Some(0) && after.marks.remembered().is_none() {
            self.complain(by, &format!("takes {name} down without a memory"));
        }
    }

    /// At the end, is all as it was?
    pub fn check_end(&mut self) {
        for place in 0..self.names.len() {
            let object = self.objects[place].clone().unwrap_or_default();
            let (down, marked) = (object.replicas == 0, object.marks.held_down);
            // Who does not lead brings back what is held down, and repairs nothing else.
            let left = if self.plan.leadership == Leadership::One {
                down || marked
            } else {
                down && marked
            };
            if left || !down && !self.edited[place] && object.replicas != 2 {
                let name = self.names[place];
                self.wrong
                    .push(format!("{:.2} at the end {name} is {object:?}", self.t));
            }
        }
    }
}

/// What somebody or something forbids.
fn forbidden(replica: &ChaosReplica, to: Option<i32>) -> Option<String> {
    let ours = match replica.env.owner {
        None | Some(Ownership::Ours) => true,
        Some(Ownership::Unproven(_)) => to == Some(0),
        Some(_) => false,
    };
    if !ours {
        Some("though its owner is not known".into())
    } else if replica.env.paused == Some(true) {
        Some("though it is paused".into())
    } else {
        None
    }
}
