//! A shoot with two controllers, told second by second what its last probe found and what is held
//! down.

use std::sync::Arc;

use prober_core::judgement::Finding;
use prober_core::replicas::{Marks, Observed, Write};
use prober_core::shoot::Requirement;
use prober_core::verdict::Tally;

use super::*;
use crate::observability::outcome::SeenLease;
use crate::tests::{at, nothing_found, wall};

const MCM: &str = "machine-controller-manager";
const KCM: &str = "kube-controller-manager";
/// Time of the verdict.
const FELL: f64 = 130.0;

struct RecordedShoot {
    now: f64,
    resources: Vec<ResourceRef>,
    /// Resources that are held down, with the replicas to return to.
    held: Vec<(&'static str, Option<i32>)>,
    verdict: Option<Verdict>,
    outcome: Option<ProbeOutcome>,
    waits: Vec<(ResourceRef, Waits)>,
    not_scaled: BTreeMap<ResourceRef, String>,
    is_scaling: bool,
    paused: bool,
    open: Option<Box<Outage>>,
    ended: Vec<Outage>,
}

fn period(from: f64, until: Option<f64>) -> Period {
    Period {
        from: wall(from),
        until: until.map(wall),
    }
}

fn resource(name: &str) -> ResourceRef {
    ResourceRef {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: name.to_owned(),
    }
}

impl RecordedShoot {
    fn new() -> Self {
        Self {
            now: 0.0,
            resources: [MCM, KCM].map(resource).into(),
            held: vec![],
            verdict: None,
            outcome: None,
            waits: vec![],
            not_scaled: BTreeMap::new(),
            is_scaling: false,
            paused: false,
            open: None,
            ended: vec![],
        }
    }

    /// Fell at [`FELL`], after all of three nodes were last renewed at 100 s, and was protected.
    fn protected() -> Self {
        let mut shoot = Self::new();
        shoot.finds(FELL, Verdict::ScaleDown, &[100.0; 3]);
        shoot.writes(131.0, MCM, 1, 0, true);
        shoot.writes(132.0, KCM, 1, 0, true);
        shoot
    }

    fn follow(&mut self, second: f64) {
        self.now = second;
        let returns_to = |resource: &ResourceRef| {
            let mut held = self.held.iter();
            Some(held.find(|(name, _)| *name == resource.name)?.1)
        };
        let dependents = self.resources.iter().map(|resource| SeenDependent {
            resource,
            is_held_down: returns_to(resource).is_some(),
            returns_to: returns_to(resource).flatten(),
        });
        let snapshot = Snapshot {
            namespace: "shoot--a--b",
            verdict: self.verdict,
            outcome: self.outcome.as_ref(),
            dependents: dependents.collect(),
            waits: &self.waits,
            not_scaled: &self.not_scaled,
            is_scaling: self.is_scaling,
            has_stood_down: false,
            paused: self.paused,
            now: at(second),
            wall: wall(second),
        };
        let ended = Outage::follow(&mut self.open, &snapshot);
        self.ended.extend(ended.map(|outage| *outage));
    }

    /// A probe finds leases that were last renewed at these moments.
    fn finds(&mut self, second: f64, verdict: Verdict, renewed: &[f64]) {
        let grace = nothing_found().grace;
        let age = |renewed: f64| at(second) - at(renewed);
        let state = |renewed: f64| match verdict {
            _ if age(renewed) < grace.threshold() => LeaseState::Valid,
            Verdict::HoldUndecided => LeaseState::Undecided,
            _ => LeaseState::Expired,
        };
        let leases = renewed.iter().enumerate();
        let leases = leases.map(|(number, &renewed)| SeenLease {
            node: format!("node-{number}"),
            age: age(renewed),
            state: state(renewed),
            skew: TimeDelta::zero(),
        });
        let leases: Vec<_> = leases.collect();
        let expired = || {
            let all = leases.iter();
            all.filter(|lease| lease.state == LeaseState::Expired)
        };
        let finding = Finding {
            verdict,
            judged_at: at(second),
            tally: Tally::of(leases.iter().map(|lease| lease.state)),
            past_grace: expired()
                .filter(|lease| lease.age >= grace.period())
                .count(),
            ..nothing_found()
        };
        self.verdict = Some(verdict);
        self.outcome = Some(ProbeOutcome {
            finding: Arc::new(finding),
            leases,
            lost_zones: vec![],
        });
        self.follow(second);
    }

    /// All nodes are found to have just renewed.
    fn recovers(&mut self, second: f64) {
        self.finds(second, Verdict::ScaleUp, &[second - 1.0; 3]);
    }

    fn writes(&mut self, second: f64, name: &'static str, from: i32, to: i32, as_leader: bool) {
        self.wrote(second, name, from, to, as_leader);
        self.shows(second, name, to);
    }

    /// A write is answered.
    fn wrote(&mut self, second: f64, name: &str, from: i32, to: i32, as_leader: bool) {
        let base = Observed {
            replicas: from,
            ..Observed::default()
        };
        let write = Write {
            marks: Marks::default(),
            replicas: Some(to),
            used_default_replicas: false,
        };
        let change = PlannedWrite {
            base: Arc::new(base),
            write,
        };
        if let Some(outage) = &mut self.open {
            outage.wrote(&resource(name), &change, as_leader, wall(second));
        }
    }

    /// The seed shows a controller at so many replicas, held down if at 0.
    fn shows(&mut self, second: f64, name: &'static str, replicas: i32) {
        self.held.retain(|(held, _)| *held != name);
        if replicas == 0 {
            self.held.push((name, Some(1)));
        }
        self.follow(second);
    }

    fn open(&self) -> &Outage {
        self.open.as_deref().expect("an outage")
    }

    fn only(&self) -> &Outage {
        let [outage] = &self.ended[..] else {
            panic!("{:?}", self.ended)
        };
        outage
    }
}

#[test]
fn an_outage_is_recorded_from_the_verdict_to_the_last_restore() {
    let mut shoot = RecordedShoot::protected();
    shoot.follow(200.0);
    assert_eq!(shoot.open().ended, None);
    shoot.recovers(201.0);
    shoot.writes(203.0, KCM, 0, 1, true);
    shoot.writes(205.0, MCM, 0, 1, true);
    let outage = shoot.only();
    assert!(shoot.open.is_none() && !outage.found_held_down && !outage.is_blip());
    assert_eq!(
        outage.verdict,
        Some(Judged {
            at: wall(FELL),
            candidates: 3,
            expired: 3,
            fraction: 0.6,
            grace_seconds: 40.0,
        })
    );
    assert_eq!(outage.began, wall(FELL));
    let writes = outage.writes.iter();
    assert_eq!(
        writes
            .map(|write| (&*write.name, write.from, write.to, write.as_leader))
            .collect::<Vec<_>>(),
        [
            (MCM, 1, 0, true),
            (KCM, 1, 0, true),
            (KCM, 0, 1, true),
            (MCM, 0, 1, true)
        ]
    );
    let held = &outage.held_down[0];
    assert_eq!(
        (&*held.name, &held.periods[..], held.returns_to),
        (MCM, &[period(131.0, Some(205.0))][..], Some(1))
    );
    assert_eq!(
        (outage.end, outage.ended, outage.recovered),
        (Some(OutageEnd::Restored), held.until(), Some(wall(201.0)))
    );
}

#[test]
fn nodes_are_listed_with_when_they_would_have_been_marked_unknown() {
    let mut shoot = RecordedShoot::protected();
    let renewed = [100.0, 100.1, 100.2];
    shoot.finds(139.0, Verdict::ScaleDown, &renewed);
    assert_eq!(
        (shoot.open().overdue_nodes, shoot.open().nodes.len()),
        (0, 0)
    );
    shoot.finds(145.0, Verdict::ScaleDown, &renewed);
    let nodes = shoot.open().nodes.iter();
    assert_eq!(
        nodes
            .map(|node| (&*node.name, node.unknown_at))
            .collect::<Vec<_>>(),
        [
            ("node-0", wall(140.0)),
            ("node-1", wall(140.1)),
            ("node-2", wall(140.2))
        ]
    );
    assert_eq!(shoot.open().overdue_nodes, 3);
}

#[test]
fn nodes_that_were_unknown_before_the_verdict_are_none_that_were_spared() {
    let mut shoot = RecordedShoot::new();
    let renewed = [50.0, 50.0, 100.0, 100.0, 100.0];
    shoot.finds(FELL, Verdict::ScaleDown, &renewed);
    shoot.finds(160.0, Verdict::ScaleDown, &renewed);
    assert_eq!(
        (shoot.open().overdue_nodes, shoot.open().nodes.len()),
        (3, 3),
        "{:?}",
        shoot.open()
    );
}

#[test]
fn an_outage_whose_nodes_are_back_within_25_s_is_a_blip() {
    for (back, blip) in [(155.0, true), (155.1, false)] {
        let mut shoot = RecordedShoot::protected();
        shoot.recovers(back);
        shoot.writes(160.0, KCM, 0, 1, true);
        shoot.writes(161.0, MCM, 0, 1, true);
        assert_eq!(
            (shoot.only().end, shoot.only().is_blip()),
            (Some(OutageEnd::Restored), blip),
            "back at {back} s"
        );
    }
}

#[test]
fn nodes_that_are_lost_again_before_all_is_restored_are_in_the_same_outage() {
    let mut shoot = RecordedShoot::protected();
    shoot.recovers(140.0);
    shoot.writes(141.0, KCM, 0, 1, true);
    assert_eq!(shoot.open().recovered, Some(wall(140.0)));
    shoot.finds(190.0, Verdict::ScaleDown, &[150.0; 3]);
    shoot.writes(191.0, KCM, 1, 0, true);
    assert_eq!(
        (shoot.open().recovered, shoot.open().writes.len()),
        (None, 4)
    );
    shoot.recovers(220.0);
    for name in [KCM, MCM] {
        shoot.writes(221.0, name, 0, 1, true);
    }
    assert!(!shoot.only().is_blip());
    assert_eq!(shoot.only().recovered, Some(wall(220.0)));
}

#[test]
fn a_process_that_starts_in_mid_outage_begins_with_what_it_finds_held_down() {
    let mut shoot = RecordedShoot::new();
    shoot.held = vec![(MCM, Some(3)), (KCM, None)];
    shoot.follow(0.0);
    let outage = shoot.open();
    assert!(
        outage.found_held_down && outage.verdict.is_none() && outage.began == wall(0.0),
        "{outage:?}"
    );
    let returns = outage.held_down.iter().map(|held| held.returns_to);
    assert_eq!(
        returns.collect::<Vec<_>>(),
        [Some(3), None],
        "an annotation that cannot be read is left out"
    );
    let told = outage.sentence();
    assert!(
        told.contains("kube-controller-manager (its replicas annotation cannot be read)"),
        "{told}"
    );
    shoot.finds(5.0, Verdict::HoldUndecided, &[-60.0; 3]);
    assert!(
        shoot.open().nodes.is_empty() && shoot.open().overdue_nodes == 0,
        "stamps that are doubted say nothing: {:?}",
        shoot.open()
    );
    shoot.finds(20.0, Verdict::ScaleDown, &[-60.0; 3]);
    assert_eq!(shoot.open().overdue_nodes, 3);
    let judged = shoot.open().verdict.as_ref();
    assert_eq!(judged.map(|judged| judged.expired), Some(3));
    shoot.recovers(60.0);
    for name in [KCM, MCM] {
        shoot.writes(61.0, name, 0, 1, true);
    }
    assert_eq!(
        (shoot.only().end, shoot.only().writes.len()),
        (Some(OutageEnd::Restored), 2)
    );
    let told = shoot.only().sentence();
    assert!(
        told.starts_with("3 of 3 leases expired, found held down: ")
            && told.contains("; without protection 3 nodes would have been Unknown from ")
            && told.ends_with("; restored (written as the leader) after 1m 1s"),
        "{told}"
    );
    let of_one_node = Outage {
        overdue_nodes: 1,
        ..shoot.only().clone()
    };
    let told = of_one_node.sentence();
    assert!(
        told.contains(" 1 node would have been Unknown from "),
        "{told}"
    );
}

#[test]
fn a_replica_that_writes_nothing_records_what_others_did() {
    let mut shoot = RecordedShoot::new();
    shoot.finds(FELL, Verdict::ScaleDown, &[100.0; 3]);
    for name in [MCM, KCM] {
        shoot.shows(131.0, name, 0);
    }
    for name in [KCM, MCM] {
        shoot.shows(201.0, name, 1);
    }
    shoot.recovers(210.0);
    let outage = shoot.only();
    assert_eq!(
        (outage.end, outage.acted(), outage.ended),
        (Some(OutageEnd::Restored), None, Some(wall(201.0)))
    );
    assert_eq!(
        outage.recovered, outage.ended,
        "it probes less often than the leader"
    );
    let told = outage.sentence();
    assert!(told.contains("held down (written by others)"), "{told}");
}

#[test]
fn the_last_write_is_in_the_record_also_when_a_watch_is_faster_than_its_answer() {
    let mut shoot = RecordedShoot::protected();
    shoot.recovers(160.0);
    shoot.writes(161.0, KCM, 0, 1, true);
    shoot.is_scaling = true;
    shoot.shows(170.0, MCM, 1);
    assert_eq!(shoot.open().writes.len(), 3);
    shoot.wrote(171.0, MCM, 0, 1, true);
    shoot.is_scaling = false;
    shoot.follow(171.0);
    assert_eq!(
        (shoot.only().end, shoot.only().writes.len()),
        (Some(OutageEnd::Restored), 4)
    );
}

#[test]
fn a_standby_that_acts_is_recorded_as_such() {
    let mut shoot = RecordedShoot::new();
    shoot.finds(FELL, Verdict::ScaleDown, &[100.0; 3]);
    shoot.writes(131.5, MCM, 1, 0, false);
    assert_eq!(
        (shoot.open().acted(), shoot.open().writes.len()),
        (Some("standby"), 1)
    );
}

#[test]
fn an_outage_in_which_nothing_was_held_down_ends_with_its_nodes() {
    let mut shoot = RecordedShoot::new();
    shoot.finds(FELL, Verdict::ScaleDown, &[100.0; 3]);
    shoot.recovers(160.0);
    let outage = shoot.only();
    assert_eq!(
        (outage.end, outage.ended, outage.recovered),
        (
            Some(OutageEnd::NothingHeldDown),
            Some(wall(160.0)),
            Some(wall(160.0))
        )
    );
}

#[test]
fn a_pause_ends_the_record_when_the_nodes_are_back_and_its_end_begins_another() {
    let mut shoot = RecordedShoot::protected();
    shoot.paused = true;
    shoot.recovers(200.0);
    assert_eq!(shoot.only().end, Some(OutageEnd::Paused));
    assert_eq!(shoot.only().held_down[0].until(), None);
    shoot.follow(230.0);
    assert_eq!(shoot.open, None);
    shoot.paused = false;
    shoot.follow(260.0);
    for name in [KCM, MCM] {
        shoot.writes(261.0, name, 0, 1, true);
    }
    let [_, after] = &shoot.ended[..] else {
        panic!("{:?}", shoot.ended)
    };
    assert!(
        after.found_held_down && after.end == Some(OutageEnd::Restored),
        "{after:?}"
    );
}

#[test]
fn a_probe_that_ends_leaves_what_it_holds_down_still_held_down() {
    let ended = |mut shoot: RecordedShoot| {
        let ended = Outage::probe_ended(&mut shoot.open, wall(200.0));
        ended.expect("a record").end
    };
    assert_eq!(
        ended(RecordedShoot::protected()),
        Some(OutageEnd::StillHeldDown)
    );
    let mut shoot = RecordedShoot::new();
    shoot.finds(FELL, Verdict::ScaleDown, &[100.0; 3]);
    assert_eq!(ended(shoot), Some(OutageEnd::ProbeEnded));
}

#[test]
fn what_a_reload_drops_while_it_is_held_down_was_not_restored() {
    let mut shoot = RecordedShoot::protected();
    shoot.resources.retain(|resource| resource.name != MCM);
    shoot.recovers(160.0);
    shoot.writes(161.0, KCM, 0, 1, true);
    assert_eq!(
        (shoot.only().end, shoot.only().held_down[0].until()),
        (Some(OutageEnd::StillHeldDown), None)
    );
}

#[test]
fn a_shoot_that_is_well_has_no_record() {
    let mut shoot = RecordedShoot::new();
    for second in [1.0, 20.0, 40.0] {
        shoot.recovers(second);
    }
    assert!(shoot.open.is_none() && shoot.ended.is_empty());
}

#[test]
fn nodes_that_were_overdue_while_their_judge_was_up_were_marked() {
    let renewed = [100.0, 100.1, 100.2];
    // Protected too late for the first of three.
    let mut shoot = RecordedShoot::new();
    shoot.finds(FELL, Verdict::ScaleDown, &renewed);
    shoot.writes(140.05, KCM, 1, 0, true);
    shoot.finds(145.0, Verdict::ScaleDown, &renewed);
    let marked = |shoot: &RecordedShoot| {
        let nodes = shoot.open().nodes.iter();
        let marked: Vec<_> = nodes.map(|node| node.marked).collect();
        (shoot.open().marked_nodes, marked)
    };
    assert_eq!(marked(&shoot), (1, vec![true, false, false]));
    let told = shoot.open().sentence();
    assert!(
        told.contains("; without protection 2 nodes would have been Unknown from ")
            && told.contains(
                "; 1 node not renewed while kube-controller-manager was up, and so Unknown from "
            ),
        "{told}"
    );
    // One of the others has not renewed when all is restored.
    shoot.finds(160.0, Verdict::ScaleUp, &[159.0, 159.0, 100.2]);
    assert_eq!(marked(&shoot), (1, vec![true, false, false]));
    shoot.is_scaling = true;
    shoot.writes(161.0, KCM, 0, 1, true);
    assert_eq!(marked(&shoot), (2, vec![true, false, true]));
}

#[test]
fn nodes_that_others_saw_come_back_were_saved() {
    let mut shoot = RecordedShoot::new();
    shoot.finds(FELL, Verdict::ScaleDown, &[100.0; 3]);
    shoot.shows(131.0, KCM, 0);
    shoot.finds(145.0, Verdict::ScaleDown, &[100.0; 3]);
    // The leader restores by a probe of its own, before the next one here.
    shoot.shows(148.0, KCM, 1);
    shoot.recovers(150.0);
    let outage = shoot.only();
    assert_eq!((outage.overdue_nodes, outage.marked_nodes), (3, 0));
}

#[test]
fn without_protection_all_overdue_nodes_were_marked() {
    let mut shoot = RecordedShoot::new();
    shoot.finds(FELL, Verdict::ScaleDown, &[100.0; 30]);
    shoot.not_scaled = [(resource(KCM), "403 Forbidden".to_owned())].into();
    shoot.waits = [Requirement::Recent, Requirement::NotPaused]
        .map(|requirement| {
            let until = None;
            (resource(MCM), Waits { requirement, until })
        })
        .into();
    shoot.finds(145.0, Verdict::ScaleDown, &[100.0; 30]);
    shoot.finds(150.0, Verdict::ScaleDown, &[100.0; 30]);
    let outage = shoot.open();
    assert_eq!(
        (outage.overdue_nodes, outage.marked_nodes),
        (30, 30),
        "{outage:?}"
    );
    assert_eq!((outage.waited.len(), outage.not_scaled.len()), (2, 1));
    assert_eq!(
        outage.sentence(),
        "30 of 30 leases expired; kube-controller-manager could not be scaled from 22:15:45 UTC on: 403 Forbidden; \
         machine-controller-manager waited from 22:15:45 UTC on for the pause to be lifted; \
         30 nodes not renewed while kube-controller-manager was up, and so Unknown from 22:15:40 UTC on; not over yet"
    );
}

#[test]
fn each_period_and_each_writer_is_named() {
    let mut shoot = RecordedShoot::protected();
    // Somebody else raises it, and a replica takes it down again.
    shoot.shows(150.0, KCM, 1);
    shoot.writes(185.0, KCM, 1, 0, false);
    shoot.recovers(210.0);
    shoot.writes(215.0, KCM, 0, 1, true);
    shoot.shows(216.0, MCM, 1);
    let outage = shoot.only();
    assert_eq!(
        outage.held_down[1].periods,
        [period(132.0, Some(150.0)), period(185.0, Some(215.0))]
    );
    assert_eq!(
        outage.sentence(),
        "3 of 3 leases expired, held down: machine-controller-manager for 1m 25s (written as the leader), \
         kube-controller-manager for 18s (written as the leader) and for 30s (written without the lead); restored after 1m 26s"
    );
}

#[test]
fn what_was_found_held_down_is_no_blip() {
    let mut shoot = RecordedShoot::new();
    shoot.held = vec![(KCM, Some(1))];
    shoot.follow(0.0);
    shoot.recovers(5.0);
    shoot.writes(6.0, KCM, 0, 1, true);
    assert!(!shoot.only().is_blip());
}
