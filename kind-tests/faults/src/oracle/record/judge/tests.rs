use std::time::Duration;

use serde_json::{Value, json};
use testbed::gardener::{PROTECTED, REPLICAS};
use tokio::time::Instant;

use super::super::{NodeState, ShootRecord};
use super::*;
use crate::oracle::disturbances::Disturbances;
use crate::pace::GRACE;

const BEAT_S: f64 = 2.0;

/// A shoot of three nodes whose time is simulated.
struct JudgedShoot {
    record: ShootRecord,
    start: Instant,
    now: f64,
    disturbances: DisturbanceSnapshot,
    found: Vec<ViolationKind>,
    over: Vec<Episode>,
}

impl JudgedShoot {
    fn new() -> Self {
        let start = Instant::now();
        let mut record = ShootRecord::new(start);
        for name in ["a", "b", "c"] {
            record.nodes.insert(name.into(), NodeState::new(start));
        }
        record
            .dependents
            .insert("kcm".into(), ScaledDependent::of(&free(2)));
        let since = Some(start);
        let clear = Disturbances::new(start).at(start);
        let disturbances = DisturbanceSnapshot {
            clear_since: since,
            guarded_since: since,
            weeding_since: since,
            ..clear
        };
        Self {
            record,
            start,
            now: 0.0,
            disturbances,
            found: Vec::new(),
            over: Vec::new(),
        }
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
                }
            }
            let (findings, over) = self.record.tick(self.disturbances, now);
            self.found
                .extend(findings.into_iter().map(|(kind, _)| kind));
            self.over.extend(over);
        }
        self
    }

    fn cut(mut self, cut: bool) -> Self {
        self.record
            .nodes
            .values_mut()
            .for_each(|node| node.cut = cut);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut ShootRecord, Instant)) -> Self {
        let now = self.at();
        change(&mut self.record, now);
        self
    }

    /// The watchdog's write is applied, which has arrived some seconds ago; what the oracle says of
    /// that.
    fn written(
        &mut self,
        before: &Value,
        after: &Value,
        ago: f64,
        leaderless: Option<String>,
    ) -> Option<ViolationKind> {
        let write = WatchdogWrite {
            name: "kcm",
            writer: "prober-a",
            before,
            after,
            arrived: self.at() - Duration::from_secs_f64(ago),
            leaderless,
        };
        let finding = self.record.written(&write, self.disturbances, self.at());
        self.record
            .dependents
            .insert("kcm".into(), ScaledDependent::of(after));
        finding.map(|(kind, _)| kind)
    }

    /// The API server goes away, for its nodes too, and comes back after so long.
    fn away(self, seconds: f64) -> Self {
        let leave = |record: &mut ShootRecord, now| {
            record.api.begin();
            record.leave(now);
        };
        let come_back = |record: &mut ShootRecord, now| {
            record.come_back(now);
            record.api.end(now);
        };
        self.with(leave).go(seconds).with(come_back)
    }

    fn down(&mut self) -> Option<ViolationKind> {
        self.written(&free(2), &held(), 0.0, None)
    }
}

fn healthy() -> JudgedShoot {
    JudgedShoot::new().go(20.0)
}

/// All nodes have been cut off for so long.
fn outage(seconds: f64) -> JudgedShoot {
    healthy().cut(true).go(seconds)
}

/// The same, and all is at 0.
fn held_down(seconds: f64) -> JudgedShoot {
    let mut shoot = outage(seconds);
    assert_eq!(shoot.down(), None);
    shoot
}

fn free(replicas: i64) -> Value {
    json!({"metadata": {}, "spec": {"replicas": replicas}, "status": {"readyReplicas": replicas}})
}

fn held() -> Value {
    json!({"metadata": {"annotations": {REPLICAS: "2", PROTECTED: ""}}, "spec": {"replicas": 0}, "status": {"readyReplicas": 2}})
}

#[test]
fn a_scale_down_is_wrong_unless_the_nodes_were_silent_for_long_enough_while_the_api_server_was_there()
 {
    let unanswered = |shoot: JudgedShoot| {
        shoot
            .with(|record, _| record.api.begin())
            .cut(false)
            .go(20.0)
    };
    for (what, mut shoot, right) in [
        ("it is healthy", healthy(), false),
        ("it is too early", outage(3.0), false),
        (
            "decided before they were back",
            outage(10.0).cut(false).go(3.0),
            true,
        ),
        (
            "long after they were back",
            outage(10.0).cut(false).go(8.0),
            false,
        ),
        (
            "decided before the answers ceased",
            unanswered(outage(8.0)),
            true,
        ),
        (
            "it was healthy when the answers ceased",
            unanswered(healthy()),
            false,
        ),
        (
            "the API server was away, and its nodes are not back yet",
            healthy().away(9.0),
            false,
        ),
        (
            "it was away, and some are back",
            healthy().away(9.0).go(1.5),
            false,
        ),
        (
            "it is away",
            healthy().with(|record, now| record.leave(now)).go(9.0),
            false,
        ),
        (
            "it was away, and it is too early to tell",
            healthy().cut(true).away(9.0).go(2.0),
            false,
        ),
        (
            "it was away, and it is not too early to tell",
            healthy().cut(true).away(9.0).go(3.5),
            true,
        ),
        (
            "it was an outage before it was away",
            outage(7.0).away(9.0),
            true,
        ),
    ] {
        assert_eq!(
            shoot.down(),
            (!right).then_some(ViolationKind::WrongScaleDowns),
            "{what}"
        );
    }
}

#[test]
fn what_is_not_done_is_found_if_it_could_have_been() {
    let unled = |mut shoot: JudgedShoot| {
        shoot.disturbances.clear_since = None;
        shoot
    };
    let mut unwatched = outage(0.0);
    unwatched.disturbances.guarded_since = None;
    for (what, shoot, found) in [
        (
            "an outage",
            outage(30.0),
            Some(ViolationKind::MissedOutages),
        ),
        (
            "that nobody leads is no excuse",
            unled(outage(0.0)).go(30.0),
            Some(ViolationKind::MissedOutages),
        ),
        ("nobody watches", unwatched.go(60.0), None),
        (
            "no answers",
            outage(0.0).with(|record, _| record.api.begin()).go(60.0),
            None,
        ),
        (
            "paused",
            outage(0.0)
                .with(|record, now| record.paused_since = Some(now))
                .go(60.0),
            None,
        ),
        (
            "the API server was away",
            healthy().away(9.0).go(60.0),
            None,
        ),
        (
            "it was away in an outage",
            healthy().cut(true).away(9.0).go(30.0),
            Some(ViolationKind::MissedOutages),
        ),
        (
            "nothing is restored",
            held_down(7.0).cut(false).go(50.0),
            Some(ViolationKind::NotRestored),
        ),
        (
            "nobody leads who could restore it",
            unled(held_down(7.0)).cut(false).go(60.0),
            None,
        ),
    ] {
        assert_eq!(shoot.found, Vec::from_iter(found), "{what}");
    }
}

#[test]
fn who_does_not_lead_may_protect_and_restores_what_is_held_when_it_has_been_well_for_a_minute() {
    let bare = json!({"metadata": {"annotations": {REPLICAS: "2"}}, "spec": {"replicas": 0}, "status": {"readyReplicas": 2}});
    let at_zero = json!({"metadata": {}, "spec": {"replicas": 0}, "status": {"readyReplicas": 1}});
    let marked = json!({"metadata": {"annotations": {PROTECTED: ""}}, "spec": {"replicas": 2}, "status": {"readyReplicas": 2}});
    let well = |after: f64| held_down(10.0).go(5.0).cut(false).go(after);
    let (follower, leaderless) = (
        Some("b does not lead".to_owned()),
        Some(ViolationKind::LeaderlessWrites),
    );
    for (what, mut shoot, [before, after], who, found) in [
        (
            "it protects",
            outage(6.5),
            [&free(2), &held()],
            &follower,
            None,
        ),
        (
            "it is healthy",
            healthy(),
            [&free(2), &held()],
            &follower,
            Some(ViolationKind::WrongScaleDowns),
        ),
        (
            "a marker is the leader's business",
            outage(6.5),
            [&bare, &held()],
            &follower,
            leaderless,
        ),
        (
            "the leader writes it",
            outage(6.5),
            [&bare, &held()],
            &None,
            None,
        ),
        (
            "it restores too early",
            well(40.0),
            [&held(), &free(2)],
            &follower,
            leaderless,
        ),
        (
            "it restores after a minute",
            well(61.0),
            [&held(), &free(2)],
            &follower,
            None,
        ),
        (
            "the leader waits for nothing",
            well(5.0),
            [&held(), &free(2)],
            &None,
            None,
        ),
        (
            "it carries no marker",
            well(61.0),
            [&at_zero, &free(1)],
            &follower,
            leaderless,
        ),
        (
            "it is not held down",
            well(61.0),
            [&marked, &free(2)],
            &follower,
            leaderless,
        ),
    ] {
        assert_eq!(
            shoot.written(before, after, 0.0, who.clone()),
            found,
            "{what}"
        );
    }
}

#[test]
fn a_write_for_a_shoot_that_must_be_left_alone_is_found() {
    let stopped = |after: f64| {
        outage(8.0)
            .with(|record, now| record.stopped_since = Some(now))
            .go(after)
    };
    assert_eq!(stopped(1.5).down(), None, "it was under way");
    assert_eq!(stopped(2.5).down(), Some(ViolationKind::DisobedientWrites));
    let mut blind = stopped(10.0);
    blind.disturbances.seed_since = Some(blind.at() - Duration::from_secs(1));
    assert_eq!(blind.down(), None, "the seed has only just answered again");
    assert_eq!(
        stopped(4.5).written(&free(2), &held(), 3.0, None),
        None,
        "it arrived in time and was applied late"
    );
}

#[test]
fn a_late_answer_is_distinguished_from_one_in_time() {
    let answered = |shoot: JudgedShoot, after: f64| {
        let mut shoot = shoot.go(after);
        assert_eq!(shoot.down(), None);
        let shoot = shoot.go(1.0).cut(false).go(10.0);
        (shoot.over[0], shoot.found)
    };
    let (in_time, found) = answered(outage(7.0), 0.0);
    assert_eq!((in_time.met_in_time(), found.as_slice()), (true, &[][..]));
    let (late, found) = answered(outage(7.0), 5.0);
    assert_eq!(
        (late.met_in_time(), late.clean, found.as_slice()),
        (false, true, &[ViolationKind::LateAnswers][..])
    );
    assert!(
        late.latency().is_some_and(|latency| latency > GRACE / 2),
        "{late:?}"
    );
    let mut busy = outage(7.0);
    busy.disturbances.lag = BUSY;
    let (busy, found) = answered(busy, 5.0);
    assert_eq!(
        (busy.clean, found.as_slice()),
        (false, &[][..]),
        "the machine was busy"
    );
    let raised = |record: &mut ShootRecord, now| {
        record.others_wrote(
            "kcm",
            ScaledDependent::of(&free(0)),
            ScaledDependent::of(&free(2)),
            now,
        )
    };
    let (raised, found) = answered(outage(7.0).with(raised), 5.0);
    assert_eq!(
        (raised.clean, found.as_slice()),
        (false, &[][..]),
        "somebody else brought it up in between"
    );
}
