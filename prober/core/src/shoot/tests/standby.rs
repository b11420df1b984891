//! D-50: what a replica writes that does not lead.

use super::*;
use crate::judgement::Finding;
use crate::plan::HEAD_START;
use crate::shoot::requirement::AWAITS_PROBE;
use crate::tests::scene::GRACE;

#[test]
fn leader_writes_at_its_verdict() {
    let mut leader = outage();
    leader.until(5.0);
    assert_eq!(leader.writes(), [(0.0, MCM, 0), (0.0, KCM, 0)]);
    for order in leader.orders() {
        assert!(order.needs_lead);
        assert_eq!(leader.seconds(order.judged_at), 0.0, "no further probe");
    }
    assert_eq!(leader.verified(), NEVER);
}

/// Its patience begins when it might write, and is used to read the seed.
#[test]
fn standby_waits_for_the_leader() {
    let delayed = |seconds| {
        outage()
            .config(|config| config.initial_delay = Duration::from_secs(seconds))
            .eligible(-30.0)
    };
    #[rustfmt::skip]
    let cases = [
        ("the verdict", outage(), 0.0, PATIENCE),
        ("the verdict, a grace of 20 s", outage().grace(20.0), 0.0, PATIENCE / 2.0),
        ("the end of initialDelay", delayed(40), 10.0, PATIENCE),
        ("the end of a longer one", delayed(60), 30.0, PATIENCE),
    ];
    for (what, shoot, from, patience) in cases {
        let mut standby = shoot.standby();
        standby.until(from + patience - 0.01);
        assert_eq!(standby.writes(), [], "{what}");
        standby.until(from + 20.0);
        let first = from + patience;
        assert_eq!(
            standby.writes(),
            [(first, MCM, 0), (first, KCM, 0)],
            "{what}"
        );
        assert!(standby.orders().iter().all(|order| !order.needs_lead));
        assert_eq!(standby.verified(), [from], "once in an outage: {what}");
    }
}

/// Its patience and the longest wait for a probe end before the ordering deadline, at default
/// settings and with candidates that renewed together.
#[test]
fn standby_acts_in_time() {
    let left = GRACE.period() - GRACE.threshold() - HEAD_START;
    assert!(crate::shoot::standby::PATIENCE + AWAITS_PROBE < left);
}

#[test]
fn standby_waits_when_a_pause_ends() {
    let mut standby = outage().standby();
    standby.env.paused = Some(true);
    standby.until(10.0).env.paused = Some(false);
    standby.until(20.0);
    let first = 10.0 + PATIENCE;
    assert_eq!(standby.writes(), [(first, MCM, 0), (first, KCM, 0)]);
}

#[test]
fn raised_at_the_end_goes_down() {
    let mut standby = outage().standby().holds_writes();
    standby.until(2.0);
    standby.make(&standby.orders()[0]);
    // In the moment in which the last answer ends the scaling.
    let kcm = standby.orders().remove(1);
    standby.seed.holds_writes = false;
    standby.show(MCM, raise).make(&kcm).until(20.0);
    assert_eq!(standby.writes()[2..], [(12.0 + PATIENCE, MCM, 0)]);
}

#[test]
fn standby_keeps_the_order() {
    let mut standby = outage().standby().pods_linger();
    standby.until(20.0);
    assert_eq!(standby.writes(), [(PATIENCE, MCM, 0), (5.0, KCM, 0)]);
}

#[test]
fn standby_wants_the_seeds_word() {
    #[rustfmt::skip]
    let cases: [fn(Verified) -> Option<Verified>; 4] = [
        |_| None,
        |read| Some(Verified { is_ours: false, ..read }),
        |read| Some(Verified { is_paused: true, ..read }),
        |read| Some(Verified { standby_protects: false, ..read }),
    ];
    for read in cases {
        let mut standby = outage().standby();
        standby.seed.verified = read;
        standby.until(20.0);
        assert_eq!(standby.writes(), []);
        assert_eq!(standby.verified()[..3], [0.0, 1.0, 2.0]);
        standby.seed.verified = Some;
        standby.until(22.0);
        assert_eq!(standby.scaled(), ALL_DOWN, "as soon as it is confirmed");
    }
    // By the Machines that are read there is no outage.
    let mut standby = outage().standby();
    standby.seed.verified = |read| {
        Some(Verified {
            machines: Arc::default(),
            ..read
        })
    };
    standby.until(20.0);
    assert_eq!((standby.verified()[0], standby.writes()), (0.0, vec![]));
}

#[test]
fn each_outage_is_verified() {
    let mut standby = outage().standby();
    standby.until(20.0).nodes_back().until(120.0);
    standby.fall_silent(174.0).until(220.0);
    assert_eq!(standby.verified(), [0.0, 200.101]);
}

#[test]
fn each_level_is_the_leaders_first() {
    let mut standby = outage().standby();
    standby.until(0.5).others(MCM, |mcm| *mcm = ending());
    standby
        .until(3.0)
        .others(MCM, take_down)
        .until(2.99 + PATIENCE);
    assert_eq!(standby.writes(), []);
    standby.until(20.0);
    assert_eq!(standby.writes(), [(3.0 + PATIENCE, KCM, 0)]);
}

#[test]
fn conflict_is_no_step_taken() {
    let mut standby = outage().standby().holds_writes();
    standby.until(2.0).others(MCM, take_down);
    standby.refuse(MCM, Refusal::Conflict).until(20.0);
    assert_eq!(
        standby.writes(),
        [(PATIENCE, MCM, 0), (2.0 + PATIENCE, KCM, 0)]
    );
}

/// Reports on scalings by a standby beside one dependent that is missing.
fn reports(standby: &Timeline) -> Vec<Report> {
    let report = |action: &Action| match action {
        Action::Report(
            report @ (Report::Begun(_)
            | Report::Ended(..)
            | Report::Abandoned(_)
            | Report::NotScaled(..)),
        ) => Some(report.clone()),
        _ => None,
    };
    let said = standby.said(report).into_iter();
    said.map(|(_, report)| report).collect()
}

#[test]
fn standby_reports_what_it_takes_over() {
    let beside_a_missing_one = || {
        let standby = outage().standby();
        standby.with(|env| env.dependents[KCM.0] = DependentState::Absent)
    };
    let mut standby = beside_a_missing_one();
    standby.until(0.5);
    assert_eq!(standby.shoot.scaling(), None);
    standby.others(MCM, take_down).until(20.0);
    assert_eq!((reports(&standby), standby.writes()), (vec![], vec![]));

    let mut standby = beside_a_missing_one();
    standby.until(20.0);
    assert_eq!(
        reports(&standby),
        [
            Report::Begun(Direction::Down),
            Report::NotScaled(KCM, Direction::Down, Refusal::NotFound),
            Report::Ended(Direction::Down, 1, 1)
        ]
    );
}

#[test]
fn standby_undoes_nothing_at_once() {
    let mut standby = healthy().standby();
    standby.until(100.0).others(MCM, take_down).until(159.9);
    assert_eq!(standby.verdict(), Verdict::ScaleUp);
    assert_eq!(standby.writes(), []);
    standby.until(200.0);
    assert_eq!(standby.scaled(), [(MCM, 1)]);
}

#[test]
fn standby_repairs_nothing() {
    for leads in [true, false] {
        let mut replica = outage().standby();
        replica.until(1.0).others(MCM, |mcm| *mcm = held("2"));
        replica.show(MCM, |mcm| mcm.marks.held_down = false);
        replica.show(KCM, take_down);
        replica.env.leads = leads;
        replica.until(20.0);
        assert_eq!(replica.seen(MCM).marks.held_down, leads, "repaired");
        assert_eq!(replica.writes().len(), usize::from(leads));
    }
}

#[test]
fn standby_protects_off() {
    let off = |shoot: Timeline| {
        let standby = shoot.standby();
        standby.with(|env| env.options.standby_protects.value = false)
    };
    for (shoot, verdict) in [
        (outage(), Verdict::ScaleDown),
        (healthy().all_held_down(), Verdict::ScaleUp),
    ] {
        let mut standby = off(shoot);
        standby.until(300.0);
        assert_eq!((standby.verdict(), standby.writes()), (verdict, vec![]));
        assert_eq!(standby.verified(), NEVER);
    }
}

/// A standby beside a healthy shoot that is held down.
fn recovering() -> Timeline {
    healthy().standby().all_held_down()
}

#[test]
fn standby_restores_after_a_minute() {
    for stabilization in [0, 40] {
        let mut standby = recovering().with(|env| {
            env.options.scale_up_stabilization.value = Duration::from_secs(stabilization);
        });
        let begins = 60.0 + stabilization as f64;
        standby.until(begins);
        assert_eq!(standby.writes(), []);
        standby.until(begins + 50.0);
        assert_eq!(standby.scaled(), ALL_UP);
    }
}

#[test]
fn unprobed_minute_does_not_count() {
    let mut standby = recovering();
    standby.input(Input::Woken);
    standby.api = FAILS;
    standby.until(70.0);
    standby.api = Api::Answers;
    standby.change_settings().until(71.0);
    assert_eq!((standby.verdicts.len(), standby.writes()), (2, vec![]));
    standby.until(150.0);
    assert_eq!(standby.scaled(), ALL_UP);
}

#[test]
fn hold_lets_the_minute_begin_again() {
    let mut standby = recovering();
    standby.until(40.0);
    let hold = Finding {
        verdict: Verdict::HoldUndecided,
        judged_at: standby.moment(40.0),
        ..Finding::default()
    };
    standby.input(Input::Found(hold)).change_settings();
    standby.until(99.0);
    assert_eq!(standby.writes(), []);
    standby.until(120.0);
    assert_eq!(standby.scaled(), ALL_UP);
}

#[test]
fn standby_restores_the_marked() {
    let leftover = Observed {
        replicas: 2,
        ready: 2,
        ..held("2")
    };
    let mut replica = healthy().standby().dependents(running(0), leftover);
    replica.until(400.0);
    assert_eq!(replica.writes(), []);
    replica.env.leads = true;
    replica.until(450.0);
    assert_eq!(replica.writes().len(), 2, "which the leader does");
}
