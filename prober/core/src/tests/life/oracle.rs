//! What a write must rest on, by what a replica could know and by what is true. It knows nothing of
//! how the machine decides.

use std::collections::VecDeque;
use std::fmt::Display;

use super::driver::{Life, LifeReplica, NAMES};
use super::nodes::Counts;
use super::plan::{Away, Leadership, Mishap, Plan};
use super::{Seconds, at};
use crate::plan::ByDirection;
use crate::replicas::{Observed, PlannedWrite};
use crate::shoot::{Order, Owner};
use crate::tests::scene::PATIENCE;
use crate::verdict::Verdict;

/// Moments of the machine are exact to this.
const EXACT: Seconds = 2e-6;
/// A probe that was sent so long ago is old, unless none was answered since (D-84).
const OLD: Seconds = 5.0;
/// Time before the first node is marked in which levels wait for nothing (D-35).
const HEAD_START: Seconds = 3.05;
/// The longest that a restore goes on behind the last probe.
const LONGEST_WAIT: Seconds = 7.0;
/// Time of "up" after which a standby restores (D-50).
const STANDBY_RESTORES: Seconds = 60.0;
/// The most probes in 10 s.
const MOST_PROBES: usize = 20;
/// The most failures in 10 s that a replica reports.
const MOST_FAILURES: usize = 16;

impl Plan {
    /// Probes are answered and can be judged, and the process runs.
    fn is_clear(&self) -> bool {
        let is_seen = !self.has(Mishap::Suspend) && !self.has(Mishap::Blind);
        self.fails == 0.0 && matches!(self.away, Away::Never) && is_seen
    }

    /// Greatest age of a replica's knowledge of the candidates: nodes are listed again only where
    /// they matter.
    fn candidates_known_within(&self) -> Seconds {
        let nodes_change = self.churn || self.conditions || self.routes_go;
        if nodes_change || self.machines_go {
            (self.interval * 1.2 + 1.0).max(self.grace / 2.0)
        } else {
            6.0
        }
    }

    /// Error of the offsets of clocks that a replica knows; of a node that it has not watched for
    /// long it is the gap between its probes.
    fn offsets_known_to(&self) -> Seconds {
        match (self.clocks.are_off(), self.churn || self.has(Mishap::Crash)) {
            (false, _) => 0.5,
            (true, false) => 1.8,
            (true, true) => 6.8,
        }
    }

    /// The time that the leader has for a step.
    fn patience(&self) -> Seconds {
        f64::min(PATIENCE, PATIENCE * self.grace / 40.0)
    }
}

impl Life {
    fn complain(&mut self, by: usize, what: impl Display) {
        self.note(format!("WRONG {what}"));
        self.wrong.push(format!("{:.2} {by} {what}", self.t));
    }

    pub fn check_probes(&mut self, by: usize) {
        if within_10_s(&mut self.replicas[by].memory.probes, self.t) > MOST_PROBES {
            self.complain(by, "probes too often");
        }
    }

    pub fn check_failures(&mut self, by: usize) {
        if within_10_s(&mut self.replicas[by].memory.failures, self.t) > MOST_FAILURES {
            self.complain(by, "fails again and again");
        }
    }

    /// As an order is given: does it rest on what it must?
    pub fn check_order(&mut self, by: usize, place: usize, order: &Order) {
        let sent = order.judged_at.elapsed_since_start().as_seconds_f64();
        let to = order.change.write.replicas;
        let name = NAMES[place];
        let replica = &self.replicas[by];
        let mut wrong = vec![];
        if order.needs_lead != replica.env.leads {
            wrong.push("as somebody else".into());
        }
        wrong.extend(forbidden(replica, to).map(str::to_owned));
        wrong.extend(self.out_of_date(by, place, to, sent));
        wrong.extend(match to {
            Some(0) => self.wrongly_down(by, sent),
            Some(_) => self.wrongly_up(by, sent, &order.change),
            None => None,
        });
        wrong.extend(self.too_early(by, order).map(str::to_owned));
        if !self.replicas[by].env.leads {
            wrong.extend(self.beyond_a_standby(by, order).map(str::to_owned));
        }
        for wrong in wrong {
            self.complain(
                by,
                format!("writes {name} {to:?} {wrong}, asked at {sent:.3}"),
            );
        }
    }

    /// Evidence from before something that it must not be older than.
    fn out_of_date(&self, by: usize, place: usize, to: Option<i32>, sent: Seconds) -> Vec<String> {
        let memory = &self.replicas[by].memory;
        let known = memory.known[place].since;
        let ByDirection { up, down } = memory.free_since;
        let free_since = match to {
            Some(0) => down,
            Some(_) => up,
            None => up.min(down),
        };
        // What is begun goes on by what is known past the ordering deadline, 2 s after a change of
        // terms, and when a probe fails (D-84). That deadline is of the first node marked after the verdict.
        let turned = memory.turned.map_or(sent, |(_, turned)| turned.min(sent));
        let end = self.nodes.first_end(turned, self.plan.grace);
        let mut objects = self.objects.iter().flatten();
        let is_begun = to.is_none_or(|to| to == 0) && objects.any(|object| object.marks.held_down);
        let goes_on = |since: Seconds| {
            let waits = end.is_some_and(|end| self.t < end - HEAD_START);
            is_begun && (memory.fails || self.t >= since + 1.99 && !waits)
        };
        let seen = self.replicas[by].env.seed_since.down;
        let seen = seen.map_or(0.0, |seen| seen.elapsed_since_start().as_seconds_f64());
        [
            ("it was allowed", free_since, free_since > seen),
            ("the resource was seen so", known, false),
            ("the lead, config or settings", memory.changed_since, true),
        ]
        .into_iter()
        .filter(|&(_, since, may_lapse)| sent + EXACT < since && !(may_lapse && goes_on(since)))
        .map(|(what, since, _)| format!("by a probe from before {what} at {since:.3}"))
        .collect()
    }

    fn wrongly_down(&mut self, by: usize, sent: Seconds) -> Option<String> {
        let (plan, nodes) = (&self.plan, &self.nodes);
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
        // The leases are listed within an answer, and the nodes after them.
        let mut outage = [0.0, answer, 2.0 * answer].into_iter().flat_map(|later| {
            nodes.is_outage_by(Counts::Candidates, sent + later, within, age - later)
        });
        let justified = outage.any(|outage| outage);
        let is_old = plan.is_clear() && self.t - sent > OLD + 2.0 * answer;
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
        (is_old && decided).then(|| format!("by evidence that is {:.2} s old", self.t - sent))
    }

    fn wrongly_up(&self, by: usize, sent: Seconds, change: &PlannedWrite) -> Option<String> {
        let (plan, held_down) = (&self.plan, change.base.marks.held_down);
        let within = plan.candidates_known_within();
        if !held_down && self.nodes.has_moved_away(sent, within) {
            return Some("though there is no Machine".into());
        }
        let counts = if held_down {
            Counts::Proof(self.replicas[by].memory.proof_from)
        } else {
            Counts::Candidates
        };
        let is_outage = |t, age| {
            let mut outage = self.nodes.is_outage_by(counts, t, within, age);
            outage.all(|outage| outage)
        };
        let age = plan.threshold() + plan.offsets_known_to();
        let later = age + LONGEST_WAIT + 2.0 * plan.answers.1;
        // The leases are read within an answer, and judged as of its request.
        let mut read = (0..=8).map(|eighths| plan.answers.1 * f64::from(eighths) / 8.0);
        let in_outage =
            read.all(|taken| is_outage(sent + taken, age + taken)) || is_outage(self.t, later);
        in_outage.then(|| {
            let age = self.nodes.deciding_age(self.t);
            format!("in mid-outage, with leases {age:.1?} s old")
        })
    }

    /// Before a delay is over that a write waits for.
    fn too_early(&self, by: usize, order: &Order) -> Option<&'static str> {
        let (plan, replica) = (&self.plan, &self.replicas[by]);
        let memory = &replica.memory;
        let is_up = order.change.write.replicas? > 0;
        if (plan.fresh || is_up) && self.t + EXACT < memory.started + plan.initial_delay {
            return Some("before initialDelay is over");
        }
        let stabilization = &replica.env.options.scale_up_stabilization.value;
        let up_for = memory.up_since.map(|since| self.t - since + EXACT);
        let wanted = stabilization.as_secs_f64()
            + if replica.env.leads {
                0.0
            } else {
                STANDBY_RESTORES
            };
        (is_up && up_for.is_none_or(|up_for| up_for < wanted))
            .then_some("before the nodes renewed for long enough")
    }

    /// Beyond what a standby may do: what is the leader's, or what the seed itself forbids.
    fn beyond_a_standby(&self, by: usize, order: &Order) -> Option<&'static str> {
        let replica = &self.replicas[by];
        let memory = &replica.memory;
        let Some(to) = order.change.write.replicas else {
            return Some("though it only repairs");
        };
        if to > 0 {
            let marked = order.change.base.marks.held_down;
            return (!marked).then_some("though it is not held down");
        }
        let (_, turned) = memory.turned?;
        let patience_ends = turned + self.plan.patience() - EXACT;
        let lives = replica
            .env
            .leader_silent_from
            .is_none_or(|from| from > at(self.t));
        let stands_in = memory.wrote >= turned || memory.changed_since >= turned;
        (self.t < patience_ends && lives && !stands_in).then_some("before the leader had its time")
    }

    /// As a write is made: is what it leaves behind right?
    pub fn check_written(
        &mut self,
        by: usize,
        place: usize,
        change: &PlannedWrite,
        after: &Observed,
    ) {
        let t = self.t;
        self.replicas[by].memory.writes(place, after, t);
        let name = NAMES[place];
        let to = change.write.replicas;
        if to.is_some_and(|to| to > 0 && to != self.expected[place]) {
            self.complain(by, format!("brings {name} back to {to:?}"));
        }
        let brings_back = after.replicas > 0 || after.marks.held_down;
        if self.plan.only_held_down && self.taken_off[place] && brings_back {
            self.complain(by, format!("claims {name}, which others took to 0"));
        }
    }

    /// At the end, is all as it was?
    pub fn check_end(&mut self) {
        for (place, object) in self.objects.clone().into_iter().enumerate() {
            let (name, object) = (NAMES[place], object.unwrap_or_default());
            let (down, marked) = (object.replicas == 0, object.marks.held_down);
            // Who does not lead, or sees a single candidate (D-20), brings back what is held down, and
            // repairs nothing else.
            let repairs = self.plan.leadership == Leadership::One;
            let left = if repairs && !self.nodes.has_one_candidate(self.t) {
                down || marked
            } else {
                down && marked
            };
            if left || !down && !marked && object.replicas != self.expected[place] {
                self.wrong
                    .push(format!("{:.2} at the end {name} is {object:?}", self.t));
            }
        }
    }
}

/// Notes that something happens now. Returns the number of times within the last 10 s.
fn within_10_s(moments: &mut VecDeque<Seconds>, now: Seconds) -> usize {
    moments.push_back(now);
    moments.retain(|moment| *moment >= now - 10.0);
    moments.len()
}

/// Returns what somebody or something forbids.
fn forbidden(replica: &LifeReplica, to: Option<i32>) -> Option<&'static str> {
    let ours = match replica.env.owner {
        Owner::Here => true,
        Owner::LeaderOnly => to.is_none_or(|to| to == 0),
        Owner::Unknown => false,
    };
    let paused = replica.memory.paused;
    let protects = replica.env.leads && to.is_none_or(|to| to == 0);
    if !ours {
        Some("though its owner is not known")
    } else if !replica.env.is_ours {
        Some("though it is elsewhere")
    } else if !replica.sees_clusters() {
        Some("though the Clusters are not seen")
    } else if paused == Some(true) {
        Some("though it is paused")
    } else if paused.is_none() || replica.env.paused.is_none() && !protects {
        Some("while it is not known whether it is paused")
    } else {
        None
    }
}
