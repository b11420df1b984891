use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use testbed::gardener::{PROTECTED, REPLICAS};
use tokio::time::Instant;

use super::super::{Node, Record};
use super::*;
use crate::oracle::disturbances::Disturbances;
use crate::pace::GRACE;

const BEAT_S: f64 = 2.0;

/// A shoot of three nodes whose time is made up.
struct Tale {
    record: Record,
    start: Instant,
    now: f64,
    disturbances: Reading,
    found: Vec<Kind>,
    over: Vec<Episode>,
}

impl Tale {
    fn new() -> Self {
        let start = Instant::now();
        let mut record = Record::new(start);
        for name in ["a", "b", "c"] {
            record.nodes.insert(name.into(), Node::new(start));
        }
        record.dependents.insert("kcm".into(), Dependent::of(&free(2)));
        let since = Some(start);
        let clear = Disturbances::new(start).read(start);
        let disturbances = Reading { clear_since: since, guarded_since: since, weeding_since: since, ..clear };
        Self { record, start, now: 0.0, disturbances, found: Vec::new(), over: Vec::new() }
    }

    fn at(&self) -> Instant {
        self.start + Duration::from_secs_f64(self.now)
    }

    /// Lets time go on; nodes that are not cut renew every 2 s.
    fn go(mut self, seconds: f64) -> Self {
        let end = self.now + seconds;
        while self.now < end {
            self.now += 0.1;
            let now = self.at();
            let away = self.record.is_away();
            for node in self.record.nodes.values_mut() {
                if !node.cut && !away && now - node.renewed >= Duration::from_secs_f64(BEAT_S) {
                    node.renewed = now;
                    node.clock.stamp();
                }
            }
            let (findings, over) = self.record.tick(self.disturbances, now);
            self.found.extend(findings.into_iter().map(|(kind, _)| kind));
            self.over.extend(over);
        }
        self
    }

    fn cut(mut self, cut: bool) -> Self {
        self.record.nodes.values_mut().for_each(|node| node.cut = cut);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Record, Instant)) -> Self {
        let now = self.at();
        change(&mut self.record, now);
        self
    }

    /// The watchdog's write is applied, which has arrived some seconds ago; what the oracle says of that.
    fn written(&mut self, before: &Value, after: &Value, ago: f64, leaderless: Option<String>) -> Option<Kind> {
        let write = Write { name: "kcm", before, after, arrived: self.at() - Duration::from_secs_f64(ago), leaderless };
        let finding = self.record.written(&write, self.disturbances, self.at());
        self.record.dependents.insert("kcm".into(), Dependent::of(after));
        finding.map(|(kind, _)| kind)
    }

    fn write(&mut self, before: &Value, after: &Value) -> Option<Kind> {
        self.written(before, after, 0.0, None)
    }

    /// The same by a prober that does not lead.
    fn write_leaderless(&mut self, before: &Value, after: &Value) -> Option<Kind> {
        self.written(before, after, 0.0, Some("b does not lead".into()))
    }

    /// The API server goes away, for its nodes too, and comes back after so long.
    fn away(self, seconds: f64) -> Self {
        let leave = |record: &mut Record, now| {
            record.api.begin();
            record.leave(now);
        };
        let come_back = |record: &mut Record, now| {
            record.come_back(now);
            record.api.end(now);
        };
        self.with(leave).go(seconds).with(come_back)
    }

    fn down(&mut self) -> Option<Kind> {
        self.write(&free(2), &held())
    }

    fn up(&mut self) -> Option<Kind> {
        self.write(&held(), &free(2))
    }
}

fn free(replicas: i64) -> Value {
    json!({"metadata": {}, "spec": {"replicas": replicas}, "status": {"readyReplicas": replicas}})
}

fn held() -> Value {
    json!({"metadata": {"annotations": {REPLICAS: "2", PROTECTED: ""}}, "spec": {"replicas": 0}, "status": {"readyReplicas": 2}})
}

#[test]
fn an_outage_that_is_answered_and_ends_well_is_right() {
    let mut tale = Tale::new().go(20.0).cut(true).go(6.5);
    assert_eq!(tale.down(), None);
    let mut tale = tale.go(20.0).cut(false).go(2.5);
    assert_eq!(tale.up(), None);
    let tale = tale.go(60.0);
    assert_eq!(tale.found, []);
    assert_eq!(tale.over.iter().map(|over| (over.met_in_time(), over.clean)).collect::<Vec<_>>(), [(true, true)]);
}

#[test]
fn a_scale_down_of_a_healthy_shoot_is_wrong() {
    assert_eq!(Tale::new().go(20.0).down(), Some(Kind::WrongScaleDowns));
    assert_eq!(Tale::new().go(20.0).cut(true).go(3.0).down(), Some(Kind::WrongScaleDowns), "too early");
    assert_eq!(Tale::new().go(20.0).cut(true).go(10.0).cut(false).go(3.0).down(), None, "decided before they were back");
    assert_eq!(Tale::new().go(20.0).cut(true).go(10.0).cut(false).go(8.0).down(), Some(Kind::WrongScaleDowns), "long after that");
}

#[test]
fn a_clock_that_was_put_back_a_little_allows_a_scale_down_earlier_by_just_so_much() {
    let set = |ahead: i64| {
        move |record: &mut Record, now: Instant| {
            let nodes = record.nodes.values_mut();
            nodes.for_each(|node| node.clock.set(TimeDelta::milliseconds(ahead), TimeDelta::zero(), now));
        }
    };
    // Long after it the doubt about clocks that were off is over.
    let renew = |record: &mut Record, now: Instant| record.nodes.values_mut().for_each(|node| node.renewed = now);
    let down = |ahead: i64, silent: f64| {
        let tale = Tale::new().with(set(ahead)).go(10.0).with(set(0)).go(50.0);
        tale.cut(true).with(renew).go(silent).down()
    };
    assert_eq!(down(1300, 4.9), None);
    assert_eq!(down(1300, 3.9), Some(Kind::WrongScaleDowns), "earlier than that");
    assert_eq!(down(0, 4.9), Some(Kind::WrongScaleDowns), "it was right all the time");
    assert_eq!(down(20_000, 4.9), Some(Kind::WrongScaleDowns), "that step is seen");
}

#[test]
fn what_was_decided_before_the_answers_ceased_is_right_until_they_come_again() {
    let silent = |tale: Tale| tale.with(|record, _| record.api.begin()).cut(false).go(20.0);
    assert_eq!(silent(Tale::new().go(20.0).cut(true).go(8.0)).down(), None);
    assert_eq!(silent(Tale::new().go(20.0)).down(), Some(Kind::WrongScaleDowns), "it was healthy then");
}

#[test]
fn a_restore_during_an_outage_is_wrong() {
    let outage = |after: f64| {
        let mut tale = Tale::new().go(20.0).cut(true).go(6.5);
        assert_eq!(tale.down(), None);
        tale.go(after)
    };
    assert_eq!(outage(10.0).up(), Some(Kind::WrongRestores));
    assert_eq!(outage(10.0).cut(false).go(0.2).up(), None, "they are just back");
}

#[test]
fn an_outage_is_missed_only_if_answers_could_be_had() {
    assert_eq!(Tale::new().go(20.0).cut(true).go(30.0).found, [Kind::MissedOutages]);
    assert_eq!(Tale::new().go(20.0).cut(true).with(|record, _| record.api.begin()).go(60.0).found, []);
    assert_eq!(Tale::new().go(20.0).cut(true).with(|record, now| record.paused_since = Some(now)).go(60.0).found, []);
    let mut tale = Tale::new().go(20.0).cut(true);
    tale.disturbances.guarded_since = None;
    assert_eq!(tale.go(60.0).found, [], "nobody watches");
}

#[test]
fn that_nobody_leads_excuses_no_missed_outage_but_that_nothing_is_restored() {
    let mut tale = Tale::new().go(20.0).cut(true);
    tale.disturbances.clear_since = None;
    let mut tale = tale.go(30.0);
    assert_eq!(tale.found, [Kind::MissedOutages]);
    assert_eq!(tale.down(), None);
    assert_eq!(tale.cut(false).go(60.0).found, [Kind::MissedOutages]);
}

#[test]
fn a_scale_down_because_the_api_server_was_away_is_wrong() {
    let healthy = || Tale::new().go(20.0);
    assert_eq!(healthy().away(9.0).down(), Some(Kind::WrongScaleDowns), "its nodes are not back yet");
    assert_eq!(healthy().away(9.0).go(1.5).down(), Some(Kind::WrongScaleDowns));
    assert_eq!(healthy().with(|record, now| record.leave(now)).go(9.0).down(), Some(Kind::WrongScaleDowns), "it is away");
    assert_eq!(healthy().cut(true).away(9.0).go(2.0).down(), Some(Kind::WrongScaleDowns), "too early to tell");
    assert_eq!(healthy().cut(true).away(9.0).go(3.5).down(), None);
    assert_eq!(healthy().cut(true).go(7.0).away(9.0).down(), None, "it was an outage before");
    assert_eq!(healthy().away(9.0).go(60.0).found, []);
    assert_eq!(healthy().cut(true).away(9.0).go(30.0).found, [Kind::MissedOutages]);
}

#[test]
fn who_does_not_lead_may_protect() {
    let mut tale = Tale::new().go(20.0).cut(true).go(6.5);
    assert_eq!(tale.write_leaderless(&free(2), &held()), None);
    assert_eq!(Tale::new().go(20.0).write_leaderless(&free(2), &held()), Some(Kind::WrongScaleDowns), "it is healthy");
    let bare = json!({"metadata": {"annotations": {REPLICAS: "2"}}, "spec": {"replicas": 0}, "status": {"readyReplicas": 2}});
    assert_eq!(tale.write_leaderless(&bare, &held()), Some(Kind::LeaderlessWrites), "a marker is the leader's business");
    assert_eq!(tale.write(&bare, &held()), None);
}

#[test]
fn who_does_not_lead_restores_what_is_held_when_it_has_been_well_for_a_minute() {
    let well = |after: f64| {
        let mut tale = Tale::new().go(20.0).cut(true).go(10.0);
        assert_eq!(tale.down(), None);
        tale.go(5.0).cut(false).go(after)
    };
    assert_eq!(well(40.0).write_leaderless(&held(), &free(2)), Some(Kind::LeaderlessWrites));
    assert_eq!(well(61.0).write_leaderless(&held(), &free(2)), None);
    let at_zero = json!({"metadata": {}, "spec": {"replicas": 0}, "status": {"readyReplicas": 1}});
    assert_eq!(well(61.0).write_leaderless(&at_zero, &free(1)), Some(Kind::LeaderlessWrites), "it carries no marker");
    let marked = json!({"metadata": {"annotations": {PROTECTED: ""}}, "spec": {"replicas": 2}, "status": {"readyReplicas": 2}});
    assert_eq!(well(61.0).write_leaderless(&marked, &free(2)), Some(Kind::LeaderlessWrites), "it is not held down");
    assert_eq!(well(5.0).write(&held(), &free(2)), None, "the leader waits for nothing");
}

#[test]
fn what_is_not_restored_is_found() {
    let mut tale = Tale::new().go(20.0).cut(true).go(7.0);
    assert_eq!(tale.down(), None);
    assert_eq!(tale.cut(false).go(50.0).found, [Kind::NotRestored]);
}

#[test]
fn a_write_for_a_shoot_that_must_be_left_alone_is_found() {
    let stopped =
        |after: f64| Tale::new().go(20.0).cut(true).go(8.0).with(|record, now| record.stopped_since = Some(now)).go(after);
    assert_eq!(stopped(1.5).down(), None, "it was under way");
    assert_eq!(stopped(2.5).down(), Some(Kind::DisobedientWrites));
    let mut blind = stopped(10.0);
    blind.disturbances.seed_since = Some(blind.at() - Duration::from_secs(1));
    assert_eq!(blind.down(), None, "the seed has only just answered again");
    assert_eq!(stopped(4.5).written(&free(2), &held(), 3.0, None), None, "it arrived in time and was applied late");
}

#[test]
fn a_late_answer_is_distinguished_from_one_in_time() {
    let answered = |tale: Tale, after: f64| {
        let mut tale = tale.go(after);
        assert_eq!(tale.down(), None);
        let tale = tale.go(1.0).cut(false).go(10.0);
        (tale.over[0], tale.found)
    };
    let outage = || Tale::new().go(20.0).cut(true).go(7.0);
    let (in_time, found) = answered(outage(), 0.0);
    assert_eq!((in_time.met_in_time(), found.as_slice()), (true, &[][..]));
    let (late, found) = answered(outage(), 5.0);
    assert_eq!((late.met_in_time(), late.clean, found.as_slice()), (false, true, &[Kind::LateAnswers][..]));
    assert!(late.latency().is_some_and(|latency| latency > GRACE / 2), "{late:?}");
    let mut busy = outage();
    busy.disturbances.lag = BUSY;
    let (busy, found) = answered(busy, 5.0);
    assert_eq!((busy.clean, found.as_slice()), (false, &[][..]), "the machine was busy");
    let raised = |record: &mut Record, now| record.others_wrote("kcm", &Dependent::of(&free(0)), &Dependent::of(&free(2)), now);
    let (raised, found) = answered(outage().with(raised), 5.0);
    assert_eq!((raised.clean, found.as_slice()), (false, &[][..]), "somebody else brought it up in between");
}
