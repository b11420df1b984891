//! A shoot with two controllers, told second by second what its last probe found and what is held
//! down.

use std::sync::Arc;

use prober_core::judgement::Finding;
use prober_core::lease::LeaseState;
use prober_core::replicas::{Marks, Observed, Write};
use prober_core::shoot::Requirement;
use prober_core::verdict::Tally;

use super::*;
use crate::observability::outcome::SeenLease;
use crate::tests::{at, nothing_found, wall};

const MCM: &str = "machine-controller-manager";
const KCM: &str = "kube-controller-manager";
const DOWN: Verdict = Verdict::ScaleDown;
/// Time of the verdict.
const FELL: f64 = 130.0;

#[derive(Default)]
struct RecordedShoot {
    /// Controllers that a reload has dropped.
    dropped: Option<&'static str>,
    /// Those that are held down, with the replicas to return to.
    held: Vec<(&'static str, Option<i32>)>,
    /// Writes under way.
    writing: Vec<(&'static str, PlannedWrite, Moment)>,
    history: ShootHistory,
    verdict: Option<Verdict>,
    outcome: Option<ProbeOutcome>,
    waits: Vec<(ResourceRef, Waits)>,
    not_scaled: BTreeMap<ResourceRef, String>,
    is_scaling: bool,
    paused: bool,
    open: Option<Box<Outage>>,
    ended: Vec<Outage>,
}

/// To so many replicas of 1, or from 0.
fn change(to: i32) -> PlannedWrite {
    let base = Observed {
        replicas: 1 - to,
        ..Observed::default()
    };
    let write = Write {
        marks: Marks::default(),
        replicas: Some(to),
        used_default_replicas: false,
    };
    PlannedWrite {
        base: Arc::new(base),
        write,
    }
}

fn resource(name: &str) -> ResourceRef {
    ResourceRef {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: name.to_owned(),
    }
}

/// Holds these down when it is first seen.
fn found(held: &[(&'static str, Option<i32>)]) -> RecordedShoot {
    let held = held.to_vec();
    let shoot = RecordedShoot {
        held,
        ..RecordedShoot::default()
    };
    shoot.follow(0.0)
}

/// Was found well for long, until shortly before [`FELL`].
fn well() -> RecordedShoot {
    RecordedShoot::default().recovers(1.0).recovers(115.0)
}

/// Fell at [`FELL`], after all of three nodes were last renewed at 100 s.
fn fell() -> RecordedShoot {
    well().finds(FELL, DOWN, &[100.0; 3])
}

/// Was protected then.
fn protected() -> RecordedShoot {
    fell().leads(131.0, MCM, 0).leads(132.0, KCM, 0)
}

impl RecordedShoot {
    fn follow(mut self, second: f64) -> Self {
        self.history
            .follow_verdict(self.verdict, self.outcome.as_ref());
        let is_up = self.held.iter().all(|(name, _)| *name != KCM);
        self.history.marking.follow(Some(is_up), at(second));
        let writing = |resource: &ResourceRef| {
            let mut writing = self.writing.iter();
            let (_, change, sent) = writing.find(|(name, ..)| *name == resource.name)?;
            Some((change, *sent))
        };
        let all = [MCM, KCM].into_iter();
        let all = all.filter(|name| Some(*name) != self.dropped);
        let resources: Vec<_> = all.map(resource).collect();
        let returns_to = |resource: &ResourceRef| {
            let mut held = self.held.iter();
            Some(held.find(|(name, _)| *name == resource.name)?.1)
        };
        let dependents = resources.iter().map(|resource| SeenDependent {
            resource,
            is_held_down: returns_to(resource).is_some(),
            returns_to: returns_to(resource).flatten(),
            writing: writing(resource),
        });
        let snapshot = Snapshot {
            namespace: "shoot--a--b",
            verdict: self.verdict,
            outcome: self.outcome.as_ref(),
            dependents: dependents.collect(),
            waits: &self.waits,
            not_scaled: &self.not_scaled,
            history: &self.history,
            is_scaling: self.is_scaling,
            has_stood_down: false,
            paused: self.paused,
            leads: true,
            now: at(second),
            wall: wall(second),
        };
        let ended = Outage::follow(&mut self.open, &snapshot);
        self.ended.extend(ended.map(|outage| *outage));
        self
    }

    /// A probe finds leases that were last renewed at these moments.
    fn finds(mut self, second: f64, verdict: Verdict, renewed: &[f64]) -> Self {
        let grace = nothing_found().grace;
        let lease = |(number, &renewed): (usize, &f64)| {
            let age = at(second) - at(renewed);
            SeenLease {
                node: format!("node-{number}"),
                age,
                state: match verdict {
                    _ if age < grace.threshold() => LeaseState::Valid,
                    Verdict::HoldUndecided => LeaseState::Undecided,
                    _ => LeaseState::Expired,
                },
                skew: TimeDelta::zero(),
            }
        };
        let leases: Vec<_> = renewed.iter().enumerate().map(lease).collect();
        let is_overdue =
            |lease: &&SeenLease| lease.state == LeaseState::Expired && lease.age >= grace.period();
        let overdue = leases.iter().filter(is_overdue);
        let overdue = overdue.map(|lease| at(second) - lease.age).collect();
        let finding = Finding {
            verdict,
            judged_at: at(second),
            tally: Tally::of(leases.iter().map(|lease| lease.state)),
            nodes_known: true,
            ..nothing_found()
        };
        self.verdict = Some(verdict);
        self.outcome = Some(ProbeOutcome {
            finding: Arc::new(finding),
            leases,
            overdue,
            lost_zones: vec![],
        });
        self.follow(second)
    }

    /// All nodes are found to have just renewed.
    fn recovers(self, second: f64) -> Self {
        self.finds(second, Verdict::ScaleUp, &[second - 1.0; 3])
    }

    /// A write as the leader is answered, and seen.
    fn leads(self, second: f64, name: &'static str, to: i32) -> Self {
        self.wrote(second, name, to, true).shows(second, name, to)
    }

    /// A write is answered.
    fn wrote(mut self, second: f64, name: &str, to: i32, as_leader: bool) -> Self {
        self.writing.retain(|(writing, ..)| *writing != name);
        if let Some(outage) = &mut self.open {
            outage.wrote(&resource(name), &change(to), as_leader, true, wall(second));
        }
        self
    }

    /// A write as the leader is sent.
    fn sends(mut self, second: f64, name: &'static str, to: i32) -> Self {
        self.writing.push((name, change(to), at(second)));
        self.follow(second)
    }

    /// No write has an answer, and none is awaited any more.
    fn gives_up(self) -> Self {
        self.with(|shoot| shoot.writing.clear())
    }

    /// The seed shows a controller at so many replicas, held down if at 0.
    fn shows(mut self, second: f64, name: &'static str, replicas: i32) -> Self {
        self.held.retain(|(held, _)| *held != name);
        if replicas == 0 {
            self.held.push((name, Some(1)));
        }
        self.follow(second)
    }

    /// All that was held down is restored by the leader.
    fn restored(self, second: f64) -> Self {
        self.leads(second, KCM, 1).leads(second, MCM, 1)
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The newest record.
    fn last(&self) -> &Outage {
        let last = self.open.as_deref().or(self.ended.last());
        last.expect("an outage")
    }
}

#[test]
fn an_outage_is_recorded_from_the_verdict_to_the_last_restore() {
    let three = [100.0, 100.1, 100.2];
    let late = || {
        let fell = well().finds(FELL, DOWN, &three);
        fell.leads(140.05, KCM, 0).finds(145.0, DOWN, &three)
    };
    let paused = || {
        protected()
            .with(|shoot| shoot.paused = true)
            .recovers(200.0)
    };
    let before = || found(&[(MCM, Some(3)), (KCM, None)]);
    let obstructed = |shoot: &mut RecordedShoot| {
        shoot.not_scaled = [(resource(KCM), "403 Forbidden".to_owned())].into();
        let waits = [Requirement::Recent, Requirement::NotPaused].map(|requirement| {
            let until = None;
            (resource(MCM), Waits { requirement, until })
        });
        shoot.waits = waits.into();
    };
    // What happens; how many records there are, what the last one says, after how many seconds the
    // nodes were back, and whether that was a blip.
    for (shoot, records, told, recovered, blip) in [
        (
            protected()
                .recovers(201.0)
                .leads(203.0, KCM, 1)
                .leads(205.0, MCM, 1),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager for 1m 14s, \
             kube-controller-manager for 1m 11s; restored (written as the leader) after 1m 15s",
            Some(71.0),
            false,
        ),
        // Back within 25 s.
        (
            protected().recovers(155.0).restored(160.0),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager for 29s, \
             kube-controller-manager for 28s; restored (written as the leader) after 30s",
            Some(25.0),
            true,
        ),
        (
            protected().recovers(155.1).restored(160.0),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager for 29s, \
             kube-controller-manager for 28s; restored (written as the leader) after 30s",
            Some(25.1),
            false,
        ),
        // Lost again before all is restored.
        (
            protected().recovers(140.0).leads(141.0, KCM, 1),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager, \
             kube-controller-manager for 9s; not over yet",
            Some(10.0),
            true,
        ),
        (
            protected()
                .recovers(140.0)
                .leads(141.0, KCM, 1)
                .finds(190.0, DOWN, &[155.0; 3])
                .leads(191.0, KCM, 0),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager, \
             kube-controller-manager for 9s and since 22:16:31 UTC; not over yet",
            None,
            false,
        ),
        // Somebody else raises one, and a replica without the lead takes it down again.
        (
            protected()
                .shows(150.0, KCM, 1)
                .wrote(185.0, KCM, 0, false)
                .shows(185.0, KCM, 0)
                .recovers(210.0)
                .leads(215.0, KCM, 1)
                .shows(216.0, MCM, 1),
            1,
            "3 of 3 leases expired, held down: machine-controller-manager for 1m 25s (written as the leader), \
             kube-controller-manager for 18s (written as the leader) and for 30s (written without the lead); \
             restored after 1m 26s",
            Some(80.0),
            false,
        ),
        // A process that starts in mid-outage begins with what it finds.
        (
            before(),
            1,
            "no outage seen by this process, found held down: machine-controller-manager, \
             kube-controller-manager (its replicas annotation cannot be read); not over yet",
            None,
            false,
        ),
        (
            before()
                .finds(5.0, Verdict::HoldUndecided, &[-60.0; 3])
                .finds(20.0, DOWN, &[-60.0; 3])
                .recovers(60.0)
                .restored(61.0),
            1,
            "begun before this process could tell, 3 of 3 leases expired, found held down: \
             machine-controller-manager for 1m 1s, \
             kube-controller-manager for 1m 1s (its replicas annotation cannot be read); \
             3 nodes not renewed for a whole grace, marked Unknown or not; \
             restored (written as the leader) after 1m 1s",
            Some(60.0),
            false,
        ),
        (
            before().finds(5.0, Verdict::HoldUndecided, &[-60.0; 3]),
            1,
            "no outage seen by this process, found held down: machine-controller-manager, \
             kube-controller-manager (its replicas annotation cannot be read); not over yet",
            None,
            false,
        ),
        // Its beginning was not seen, so it is no blip.
        (
            found(&[(KCM, Some(1))]).recovers(5.0).leads(6.0, KCM, 1),
            1,
            "no outage seen by this process, found held down: kube-controller-manager for 6s; \
             restored (written as the leader) after 6s",
            Some(5.0),
            false,
        ),
        // A replica that writes nothing records what others did, and probes less often.
        (
            fell()
                .shows(131.0, MCM, 0)
                .shows(131.0, KCM, 0)
                .shows(201.0, KCM, 1)
                .shows(201.0, MCM, 1)
                .recovers(210.0),
            1,
            "3 of 3 leases expired, held down (written by others): machine-controller-manager for 1m 10s, \
             kube-controller-manager for 1m 10s; restored (written by others) after 1m 11s",
            Some(71.0),
            false,
        ),
        // The leader restores by a probe of its own: nodes that it saw come back were saved.
        (
            fell()
                .shows(131.0, KCM, 0)
                .finds(145.0, DOWN, &[100.0; 3])
                .shows(148.0, KCM, 1)
                .recovers(150.0),
            1,
            "3 of 3 leases expired, held down (written by others): kube-controller-manager for 17s; \
             without protection 3 nodes would have been Unknown from 22:15:40 UTC on; \
             restored (written by others) after 18s",
            Some(18.0),
            true,
        ),
        // A watch is faster than the answer to the last write.
        (
            protected()
                .recovers(160.0)
                .leads(161.0, KCM, 1)
                .with(|shoot| shoot.is_scaling = true)
                .shows(170.0, MCM, 1)
                .wrote(171.0, MCM, 1, true)
                .with(|shoot| shoot.is_scaling = false)
                .follow(171.0),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager for 39s, \
             kube-controller-manager for 29s; restored (written as the leader) after 40s",
            Some(30.0),
            false,
        ),
        (
            fell().wrote(131.5, MCM, 0, false).shows(131.5, MCM, 0),
            1,
            "3 of 3 leases expired, held down (written without the lead): machine-controller-manager; not over yet",
            None,
            false,
        ),
        (
            fell().recovers(160.0),
            1,
            "3 of 3 leases expired; nothing held down after 30s",
            Some(30.0),
            false,
        ),
        // A pause ends the record when the nodes are back, and its end begins another.
        (
            paused().follow(230.0),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager, \
             kube-controller-manager; paused after 1m 10s",
            Some(70.0),
            false,
        ),
        (
            paused()
                .with(|shoot| shoot.paused = false)
                .follow(260.0)
                .restored(261.0),
            2,
            "no outage seen by this process, found held down: machine-controller-manager for 1s, \
             kube-controller-manager for 1s; restored (written as the leader) after 1s",
            Some(0.0),
            false,
        ),
        // What a reload drops while it is held down was not restored.
        (
            protected()
                .with(|shoot| shoot.dropped = Some(MCM))
                .recovers(160.0)
                .leads(161.0, KCM, 1),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager, \
             kube-controller-manager for 29s; still held down after 31s",
            Some(30.0),
            false,
        ),
        // Unknown before the verdict, and so not spared.
        (
            well()
                .finds(FELL, DOWN, &[50.0, 50.0, 100.0, 100.0, 100.0])
                .finds(160.0, DOWN, &[50.0, 50.0, 100.0, 100.0, 100.0]),
            1,
            "5 of 5 leases expired; 3 nodes not renewed while kube-controller-manager was up, \
             and so Unknown from 22:15:40 UTC on; not over yet",
            None,
            false,
        ),
        // Protected too late for the first of three.
        (
            late(),
            1,
            "1 of 3 leases expired, held down (written as the leader): kube-controller-manager; \
             without protection 2 nodes would have been Unknown from 22:15:40 UTC on; \
             1 node not renewed for a whole grace, marked Unknown or not; not over yet",
            None,
            false,
        ),
        // One of the others has not renewed when all is restored.
        (
            late()
                .finds(160.0, Verdict::ScaleUp, &[159.0, 159.0, 100.2])
                .with(|shoot| shoot.is_scaling = true)
                .leads(161.0, KCM, 1),
            1,
            "1 of 3 leases expired, held down (written as the leader): kube-controller-manager for 20s; \
             without protection 1 node would have been Unknown from 22:15:40 UTC on; \
             2 nodes not renewed for a whole grace, marked Unknown or not; not over yet",
            Some(30.0),
            false,
        ),
        // It renews before the others could be marked.
        (
            late()
                .finds(160.0, Verdict::ScaleUp, &[159.0, 159.0, 100.2])
                .with(|shoot| shoot.is_scaling = true)
                .leads(161.0, KCM, 1)
                .recovers(165.0),
            1,
            "1 of 3 leases expired, held down (written as the leader): kube-controller-manager for 20s; \
             without protection 2 nodes would have been Unknown from 22:15:40 UTC on; \
             1 node not renewed for a whole grace, marked Unknown or not; not over yet",
            Some(30.0),
            false,
        ),
        // Up for less than kube-controller-manager waits after its start.
        (
            protected()
                .finds(145.0, DOWN, &three)
                .shows(150.0, KCM, 1)
                .finds(150.1, DOWN, &three)
                .leads(150.2, KCM, 0)
                .finds(160.0, DOWN, &three),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager, \
             kube-controller-manager for 18s and since 22:15:50 UTC; \
             without protection 3 nodes would have been Unknown from 22:15:40 UTC on; not over yet",
            None,
            false,
        ),
        // And for longer.
        (
            protected()
                .finds(145.0, DOWN, &three)
                .shows(150.0, KCM, 1)
                .finds(215.0, DOWN, &three),
            1,
            "3 of 3 leases expired, held down (written as the leader): machine-controller-manager, \
             kube-controller-manager for 18s; \
             3 nodes not renewed while kube-controller-manager was up, and so Unknown from 22:16:30 UTC on; not over yet",
            None,
            false,
        ),
        // A process that starts in mid-outage with nothing held down saw no blip, and knows nothing
        // of the nodes that were overdue before.
        (
            RecordedShoot::default()
                .finds(FELL, Verdict::HoldUndecided, &[80.0, 100.0, 100.0])
                .finds(141.0, DOWN, &[80.0, 100.0, 100.0])
                .leads(141.5, KCM, 0)
                .finds(150.0, DOWN, &[80.0, 100.0, 100.0])
                .recovers(155.0)
                .leads(156.0, KCM, 1),
            1,
            "begun before this process could tell, 3 of 3 leases expired, held down (written as the leader): \
             kube-controller-manager for 14s; 3 nodes not renewed for a whole grace, marked Unknown or not; \
             restored (written as the leader) after 15s",
            Some(14.0),
            false,
        ),
        // Nobody knows who made a write that has no answer: it may be ours or another's.
        (
            fell().sends(130.5, KCM, 0).shows(131.0, KCM, 0),
            1,
            "3 of 3 leases expired, held down: kube-controller-manager; not over yet",
            None,
            false,
        ),
        (
            fell()
                .sends(130.5, KCM, 0)
                .shows(131.0, KCM, 0)
                .wrote(131.1, KCM, 0, true)
                .follow(131.1),
            1,
            "3 of 3 leases expired, held down (written as the leader): kube-controller-manager; not over yet",
            None,
            false,
        ),
        (
            fell()
                .sends(130.5, KCM, 0)
                .shows(131.0, KCM, 0)
                .gives_up()
                .recovers(150.0)
                .sends(151.0, KCM, 1)
                .gives_up()
                .shows(152.0, KCM, 1),
            1,
            "3 of 3 leases expired, held down: kube-controller-manager for 21s; restored after 22s",
            Some(20.0),
            true,
        ),
        // Without protection all were marked.
        (
            well()
                .finds(FELL, DOWN, &[100.0; 30])
                .with(obstructed)
                .finds(145.0, DOWN, &[100.0; 30])
                .finds(150.0, DOWN, &[100.0; 30]),
            1,
            "30 of 30 leases expired; kube-controller-manager could not be scaled from 22:15:45 UTC on: 403 Forbidden; \
             machine-controller-manager waited from 22:15:45 UTC on for the pause to be lifted; \
             30 nodes not renewed while kube-controller-manager was up, and so Unknown from 22:15:40 UTC on; not over yet",
            None,
            false,
        ),
    ] {
        let outage = shoot.last();
        assert_eq!(outage.sentence(), told);
        let back = outage.recovered.map(|at| at - outage.began);
        let recovered = recovered.map(|seconds| at(seconds) - at(0.0));
        assert_eq!((back, outage.is_blip()), (recovered, blip), "{told}");
        let count = shoot.ended.len() + usize::from(shoot.open.is_some());
        assert_eq!(count, records, "{told}");
    }
    let well = RecordedShoot::default().recovers(1.0).recovers(20.0);
    assert!(well.open.is_none() && well.ended.is_empty());
}

#[test]
fn who_took_a_resource_down_is_told_only_where_it_is_known() {
    let raised = |shoot: RecordedShoot| shoot.gives_up().shows(140.0, KCM, 1);
    let rows = [
        (
            "a write without an answer, and one with",
            raised(fell().sends(131.0, KCM, 0).shows(131.5, KCM, 0))
                .sends(141.0, KCM, 0)
                .leads(141.2, KCM, 0),
            vec![Author::Unclear, Author::Leader],
            2,
        ),
        (
            "the same write, sent once more",
            fell()
                .sends(131.0, KCM, 0)
                .sends(134.0, KCM, 0)
                .leads(134.2, KCM, 0),
            vec![Author::Leader],
            1,
        ),
        (
            "what was held down before this record",
            protected()
                .with(|shoot| shoot.paused = true)
                .recovers(160.0)
                .with(|shoot| shoot.paused = false)
                .finds(175.0, DOWN, &[145.0; 3]),
            vec![Author::Unclear],
            0,
        ),
    ];
    for (what, shoot, expected, writes) in rows {
        let outage = shoot.last();
        let mut held = outage.held_down.iter();
        let held = held.find(|held| held.name == KCM).expect("held down");
        let by: Vec<_> = held.periods.iter().map(|period| period.by).collect();
        assert_eq!((by, outage.writes.len()), (expected, writes), "{what}");
    }
}

#[test]
fn nodes_are_listed_with_when_they_would_have_been_marked_unknown() {
    let renewed = [100.0, 100.1, 100.2];
    let shoot = protected().finds(139.0, DOWN, &renewed);
    assert_eq!(
        (shoot.last().overdue_nodes, shoot.last().nodes.len()),
        (0, 0)
    );
    let shoot = shoot.finds(145.0, DOWN, &renewed);
    let nodes = shoot.last().nodes.iter();
    let nodes: Vec<_> = nodes
        .map(|node| (&*node.name, node.unknown_at, node.fate))
        .collect();
    let expected = [("node-0", 140.0), ("node-1", 140.1), ("node-2", 140.2)];
    assert_eq!(
        nodes,
        expected.map(|(name, at)| (name, wall(at), Fate::Saved))
    );
    let judged = Judged {
        at: wall(FELL),
        candidates: 3,
        expired: 3,
        fraction: 0.6,
        grace_seconds: 40.0,
    };
    assert_eq!(shoot.last().verdict, Some(judged));
}

#[test]
fn a_probe_that_ends_leaves_what_it_holds_down_still_held_down() {
    for (mut shoot, end, acted) in [
        (protected(), OutageEnd::StillHeldDown, Some("leader")),
        (fell(), OutageEnd::ProbeEnded, None),
    ] {
        let ended = Outage::probe_ended(&mut shoot.open, wall(200.0)).expect("a record");
        assert_eq!((ended.end, ended.acted), (Some(end), acted));
    }
}
