//! Stories of a shoot with two controllers and three nodes, in words: what its probes find, what is
//! written and what the seed shows. Times count from the verdict, at midnight.
//!
//! ```text
//! fell; 1 mcm 0, kcm 0 sent; 71 back
//! '     '- time                 '- all nodes have just renewed, and a probe finds it
//! '- begins so
//! ```

use std::sync::Arc;

use prober_core::judgement::{CountedLease, Finding};
use prober_core::lease::LeaseState;
use prober_core::replicas::{Observed, Write};
use prober_core::shoot::Reason;
use prober_core::verdict::Tally;

use super::*;
use crate::tests::{at, nothing_found, wall};

#[derive(Default)]
struct RecordedShoot {
    /// Last renewals of its nodes.
    renewed: Vec<f64>,
    /// Controllers that a reload has dropped.
    dropped: Option<String>,
    /// Those that are held down, with the replicas to return to.
    held: BTreeMap<String, Option<i32>>,
    /// Writes under way.
    writing: BTreeMap<String, (PlannedWrite, Moment)>,
    history: ShootHistory,
    outcome: Option<ProbeOutcome>,
    waits: Vec<(ResourceRef, Waits)>,
    not_scaled: BTreeMap<ResourceRef, String>,
    is_scaling: bool,
    paused: bool,
    open: Option<Box<Outage>>,
    ended: Vec<Outage>,
}

/// To so many replicas of 1, or from 0.
fn change(to: &str) -> PlannedWrite {
    let to: i32 = to.parse().expect(to);
    let base = Observed {
        replicas: 1 - to,
        ..Observed::default()
    };
    let write = Write {
        replicas: Some(to),
        ..Write::default()
    };
    PlannedWrite {
        base: Arc::new(base),
        write,
    }
}

fn resource(name: &str) -> ResourceRef {
    ResourceRef {
        name: name.to_owned(),
        ..ResourceRef::default()
    }
}

fn number(text: &str) -> f64 {
    text.parse().expect(text)
}

fn story(text: &str) -> RecordedShoot {
    let mut shoot = RecordedShoot {
        renewed: vec![-30.0; 3],
        ..RecordedShoot::default()
    };
    let (begins, then) = text.split_once("; ").unwrap_or((text, ""));
    let before = match begins {
        // A process that has just started.
        "new" => "",
        // Found well for long, until shortly before.
        "well" => "-129 up; -15 up; ",
        "fell" => "-129 up; -15 up; 0 down; ",
        "protected" => "-129 up; -15 up; 0 down; 1 mcm 0; 2 kcm 0; ",
        other => panic!("{other}"),
    };
    let events = before.to_owned() + then;
    for event in events.split_terminator("; ") {
        let (time, changes) = event.split_once(' ').unwrap_or((event, ""));
        for change in changes.split(", ") {
            shoot.happens(number(time), change);
            shoot.follow(number(time));
        }
    }
    shoot
}

impl RecordedShoot {
    #[rustfmt::skip]
    fn happens(&mut self, second: f64, event: &str) {
        let words: Vec<_> = event.split(' ').collect();
        match words[..] {
            [""] => {}
            // What the nodes do, and a probe finds.
            ["silent", "from", ref since @ ..] => self.renewed = since.iter().map(|at| number(at)).collect(),
            [count, "nodes"] => self.renewed = vec![-30.0; number(count) as usize],
            ["down"] => self.probe(second, Verdict::ScaleDown),
            ["undecided"] => self.probe(second, Verdict::HoldUndecided),
            ["up"] => self.probe(second, Verdict::ScaleUp),
            ["back"] => { self.renewed.fill(second - 1.0); self.probe(second, Verdict::ScaleUp); }
            ["paused"] => self.paused = true,
            ["unpaused"] => self.paused = false,
            ["scaling"] => self.is_scaling = true,
            ["scaled"] => self.is_scaling = false,
            // No write has an answer, and none is awaited any more.
            ["gives", "up"] => self.writing.clear(),
            [name, "dropped"] => self.dropped = Some(name.to_owned()),
            [name, "refused"] => self.not_scaled = [(resource(name), "403 Forbidden".to_owned())].into(),
            [name, "waits"] => self.waits = [Reason::Answer, Reason::Paused].map(|reason| (resource(name), Waits::new(reason))).into(),
            [name, "0", "unreadable"] => drop(self.held.insert(name.to_owned(), None)),
            // A write as the leader, answered and seen; or only that.
            [name, to] => { self.wrote(second, name, to, true); self.shows(name, to); }
            [name, to, "sent"] => drop(self.writing.insert(name.to_owned(), (change(to), at(second)))),
            [name, to, "answered"] => self.wrote(second, name, to, true),
            [name, to, "as", "standby"] => { self.wrote(second, name, to, false); self.shows(name, to); }
            [name, to, "seen"] => self.shows(name, to),
            _ => panic!("{event}"),
        }
    }

    /// A probe finds the nodes as they were renewed last.
    fn probe(&mut self, second: f64, verdict: Verdict) {
        let found = nothing_found();
        let names: Vec<_> = (0..self.renewed.len())
            .map(|number| format!("node-{number}"))
            .collect();
        let leases = names.iter().zip(&self.renewed).map(|(node, renewed)| {
            let age = at(second) - at(*renewed);
            let state = match verdict {
                _ if age < found.grace.threshold() => LeaseState::Valid,
                Verdict::HoldUndecided => LeaseState::Undecided,
                _ => LeaseState::Expired,
            };
            CountedLease {
                node,
                age,
                state,
                skew: TimeDelta::zero(),
            }
        });
        let leases: Vec<_> = leases.collect();
        let finding = Finding {
            verdict,
            judged_at: at(second),
            tally: Tally::of(leases.iter().map(|lease| lease.state)),
            nodes_known: true,
            ..found
        };
        self.outcome = Some(ProbeOutcome::new(&Arc::new(finding), &leases));
    }

    /// A write is answered.
    fn wrote(&mut self, second: f64, name: &str, to: &str, as_leader: bool) {
        self.writing.remove(name);
        if let Some(outage) = &mut self.open {
            outage.wrote(&resource(name), &change(to), as_leader, true, wall(second));
        }
    }

    /// The seed shows a controller at so many replicas, held down if at 0.
    fn shows(&mut self, name: &str, replicas: &str) {
        self.held.remove(name);
        if replicas == "0" {
            self.held.insert(name.to_owned(), Some(1));
        }
    }

    fn follow(&mut self, second: f64) {
        let (now, wall) = (at(second), wall(second));
        let verdict = self.outcome.as_ref().map(|outcome| outcome.finding.verdict);
        self.history.follow_verdict(verdict, self.outcome.as_ref());
        self.history
            .marking
            .follow(Some(!self.held.contains_key("kcm")), now);
        let all = ["mcm", "kcm"].into_iter();
        let all = all.filter(|name| self.dropped.as_deref() != Some(name));
        let resources: Vec<_> = all.map(resource).collect();
        let dependents = resources.iter().map(|resource| SeenDependent {
            resource,
            is_held_down: self.held.contains_key(&resource.name),
            returns_to: self.held.get(&resource.name).copied().flatten(),
            writing: self
                .writing
                .get(&resource.name)
                .map(|(change, sent)| (change, *sent)),
        });
        let snapshot = Snapshot {
            namespace: "shoot--a--b",
            verdict,
            outcome: self.outcome.as_ref(),
            dependents: dependents.collect(),
            waits: &self.waits,
            not_scaled: &self.not_scaled,
            history: &self.history,
            is_scaling: self.is_scaling,
            paused: self.paused,
            leads: true,
            now,
            wall,
        };
        let ended = Outage::follow(&mut self.open, &snapshot);
        self.ended.extend(ended.map(|outage| *outage));
    }

    /// The newest record.
    fn last(&self) -> &Outage {
        let last = self.open.as_deref().or(self.ended.last());
        last.expect("an outage")
    }

    /// Beside its sentence: what this process did, when the nodes were back and whether that was a
    /// blip, and which record it is.
    fn facts(&self) -> String {
        let outage = self.last();
        let (acted, writes) = (outage.acted.unwrap_or("nothing"), outage.writes.len());
        let back = outage.recovered.map(|at| in_seconds(at - outage.began));
        let back = back.map_or("not back".to_owned(), |seconds| {
            format!("back in {seconds}")
        });
        let blip = if outage.is_blip() { ", blip" } else { "" };
        let count = self.ended.len() + usize::from(self.open.is_some());
        let count = if count == 1 { "" } else { ", another" };
        format!("{acted} {writes}, {back}{blip}{count}")
    }
}

/// Each story, with what this process did and when the nodes were back, and the record's sentence.
const STORIES: &str = "
protected; 71 back; 73 kcm 1; 75 mcm 1
    leader 4, back in 71
    3 of 3 leases expired, held down (written as the leader): mcm for 1m 14s, kcm for 1m 11s; restored (written as the leader) after 1m 15s
# Back within 25 s.
protected; 25 back; 30 kcm 1, mcm 1
    leader 4, back in 25, blip
    3 of 3 leases expired, held down (written as the leader): mcm for 29s, kcm for 28s; restored (written as the leader) after 30s
protected; 25.1 back; 30 kcm 1, mcm 1
    leader 4, back in 25.1
    3 of 3 leases expired, held down (written as the leader): mcm for 29s, kcm for 28s; restored (written as the leader) after 30s
# Lost again before all is restored.
protected; 10 back; 11 kcm 1
    leader 3, back in 10, blip
    3 of 3 leases expired, held down (written as the leader): mcm, kcm for 9s; not over yet
protected; 10 back; 11 kcm 1; 60 silent from 25 25 25, down; 61 kcm 0
    leader 4, not back
    3 of 3 leases expired, held down (written as the leader): mcm, kcm for 9s and since 00:01:01 UTC; not over yet
# Somebody else raises one, and a replica without the lead takes it down again.
protected; 20 kcm 1 seen; 55 kcm 0 as standby; 80 back; 85 kcm 1; 86 mcm 1 seen
    leader 4, back in 80
    3 of 3 leases expired, held down: mcm for 1m 25s (written as the leader), kcm for 18s (written as the leader) and for 30s (written without the lead); restored after 1m 26s
# A process that starts in mid-outage begins with what it finds.
new; 0 kcm 0 unreadable, mcm 0 seen
    nothing 0, not back
    no outage seen by this process, found held down: kcm (its replicas annotation cannot be read), mcm; not over yet
new; 0 kcm 0 unreadable, mcm 0 seen; 5 silent from -60 -60 -60, undecided
    nothing 0, not back
    no outage seen by this process, found held down: kcm (its replicas annotation cannot be read), mcm; not over yet
new; 0 kcm 0 unreadable, mcm 0 seen; 5 silent from -60 -60 -60, undecided; 20 down; 60 back; 61 kcm 1, mcm 1
    leader 2, back in 60
    begun before this process could tell, 3 of 3 leases expired, found held down: kcm for 1m 1s (its replicas annotation cannot be read), mcm for 1m 1s; 3 nodes not renewed for a whole grace, marked Unknown or not; restored (written as the leader) after 1m 1s
# Its beginning was not seen, so it is no blip.
new; 0 kcm 0 seen; 5 back; 6 kcm 1
    leader 1, back in 5
    no outage seen by this process, found held down: kcm for 6s; restored (written as the leader) after 6s
# A replica that writes nothing records what others did, and probes less often.
fell; 1 mcm 0 seen, kcm 0 seen; 71 kcm 1 seen, mcm 1 seen; 80 back
    nothing 0, back in 71
    3 of 3 leases expired, held down (written by others): mcm for 1m 10s, kcm for 1m 10s; restored (written by others) after 1m 11s
# The leader restores by a probe of its own: nodes that it saw come back were saved.
fell; 1 kcm 0 seen; 15 down; 18 kcm 1 seen; 20 back
    nothing 0, back in 18, blip
    3 of 3 leases expired, held down (written by others): kcm for 17s; without protection 3 nodes would have been Unknown from 00:00:10 UTC on; restored (written by others) after 18s
# A watch is faster than the answer to the last write.
protected; 30 back; 31 kcm 1, scaling; 40 mcm 1 seen; 41 mcm 1 answered, scaled
    leader 4, back in 30
    3 of 3 leases expired, held down (written as the leader): mcm for 39s, kcm for 29s; restored (written as the leader) after 40s
fell; 1.5 mcm 0 as standby
    standby 1, not back
    3 of 3 leases expired, held down (written without the lead): mcm; not over yet
fell; 30 back
    nothing 0, back in 30
    3 of 3 leases expired; nothing held down after 30s
# A pause ends the record when the nodes are back, and its end begins another.
protected; 70 paused, back; 100
    leader 2, back in 70
    3 of 3 leases expired, held down (written as the leader): mcm, kcm; paused after 1m 10s
protected; 70 paused, back; 130 unpaused; 131 kcm 1, mcm 1
    leader 2, back in 0, another
    no outage seen by this process, found held down: mcm for 1s, kcm for 1s; restored (written as the leader) after 1s
# So does the next verdict: what was held down before this record has no author in it.
protected; 30 paused, back; 45 silent from 15 15 15, down
    nothing 0, not back, another
    3 of 3 leases expired, found held down: mcm, kcm; not over yet
# What a reload drops while it is held down was not restored.
protected; 3 mcm dropped; 30 back; 31 kcm 1
    leader 3, back in 30
    3 of 3 leases expired, held down (written as the leader): mcm, kcm for 29s; still held down after 31s
# Unknown before the verdict, and so not spared.
well; 0 silent from -80 -80 -30 -30 -30, down; 30 down
    nothing 0, not back
    5 of 5 leases expired; 3 nodes not renewed while kube-controller-manager was up, and so Unknown from 00:00:10 UTC on; not over yet
# Protected too late for the first of three.
well; 0 silent from -30 -29.9 -29.8, down; 10.05 kcm 0; 15 down
    leader 1, not back
    1 of 3 leases expired, held down (written as the leader): kcm; without protection 2 nodes would have been Unknown from 00:00:10 UTC on; 1 node not renewed for a whole grace, marked Unknown or not; not over yet
# One of the others has not renewed when all is restored.
well; 0 silent from -30 -29.9 -29.8, down; 10.05 kcm 0; 15 down; 30 silent from 29 29 -29.8, up; 31 scaling, kcm 1
    leader 2, back in 30
    1 of 3 leases expired, held down (written as the leader): kcm for 20s; without protection 1 node would have been Unknown from 00:00:10 UTC on; 2 nodes not renewed for a whole grace, marked Unknown or not; not over yet
# It renews before the others could be marked.
well; 0 silent from -30 -29.9 -29.8, down; 10.05 kcm 0; 15 down; 30 silent from 29 29 -29.8, up; 31 scaling, kcm 1; 35 back
    leader 2, back in 30
    1 of 3 leases expired, held down (written as the leader): kcm for 20s; without protection 2 nodes would have been Unknown from 00:00:10 UTC on; 1 node not renewed for a whole grace, marked Unknown or not; not over yet
# Up for less than kube-controller-manager waits after its start, and for longer.
protected; 15 down; 20 kcm 1 seen; 20.1 down; 20.2 kcm 0; 30 down
    leader 3, not back
    3 of 3 leases expired, held down (written as the leader): mcm, kcm for 18s and since 00:00:20 UTC; without protection 3 nodes would have been Unknown from 00:00:10 UTC on; not over yet
protected; 15 down; 20 kcm 1 seen; 85 down
    leader 2, not back
    3 of 3 leases expired, held down (written as the leader): mcm, kcm for 18s; 3 nodes not renewed while kube-controller-manager was up, and so Unknown from 00:01:00 UTC on; not over yet
# A process that starts in mid-outage with nothing held down saw no blip, and knows nothing of the nodes that were overdue before.
new; 0 silent from -50 -30 -30, undecided; 11 down; 11.5 kcm 0; 20 down; 25 back; 26 kcm 1
    leader 2, back in 14
    begun before this process could tell, 3 of 3 leases expired, held down (written as the leader): kcm for 14s; 3 nodes not renewed for a whole grace, marked Unknown or not; restored (written as the leader) after 15s
# Nobody knows who made a write that has no answer: it may be ours or another's.
fell; 0.5 kcm 0 sent; 1 kcm 0 seen
    nothing 1, not back
    3 of 3 leases expired, held down: kcm; not over yet
fell; 0.5 kcm 0 sent; 1 kcm 0 seen; 1.1 kcm 0 answered
    leader 1, not back
    3 of 3 leases expired, held down (written as the leader): kcm; not over yet
fell; 0.5 kcm 0 sent; 1 kcm 0 seen, gives up; 20 back; 21 kcm 1 sent, gives up; 22 kcm 1 seen
    nothing 2, back in 20, blip
    3 of 3 leases expired, held down: kcm for 21s; restored after 22s
fell; 1 kcm 0 sent; 1.5 kcm 0 seen, gives up; 10 kcm 1 seen; 11 kcm 0 sent; 11.2 kcm 0
    leader 2, not back
    3 of 3 leases expired, held down: kcm for 8s and since 00:00:11 UTC (written as the leader); not over yet
# The same write, sent once more, is listed once.
fell; 1 kcm 0 sent; 4 kcm 0 sent; 4.2 kcm 0
    leader 1, not back
    3 of 3 leases expired, held down (written as the leader): kcm; not over yet
# Without protection all were marked.
well; 0 30 nodes, down; 15 kcm refused, mcm waits, down; 20 down
    nothing 0, not back
    30 of 30 leases expired; kcm could not be scaled from 00:00:15 UTC on: 403 Forbidden; mcm waited from 00:00:15 UTC on for the pause to be lifted; 30 nodes not renewed while kube-controller-manager was up, and so Unknown from 00:00:10 UTC on; not over yet
";

#[test]
fn an_outage_is_recorded_from_the_verdict_to_the_last_restore() {
    let lines = STORIES.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let (Some(what), Some(facts), Some(sentence)) = (lines.next(), lines.next(), lines.next())
    {
        let shoot = story(what);
        let told = (shoot.facts(), shoot.last().sentence());
        assert_eq!((&*told.0, &*told.1), (facts, sentence), "{what}");
    }
    let well = story("well");
    assert!(well.open.is_none() && well.ended.is_empty());
}

#[test]
fn nodes_are_listed_with_when_they_would_have_been_marked_unknown() {
    let soon = story("protected; 9 silent from -30 -29.9 -29.8, down");
    assert_eq!(
        (soon.last().overdue_nodes, &*soon.last().nodes),
        (0, &[][..])
    );
    let shoot = story("protected; 15 silent from -30 -29.9 -29.8, down");
    let nodes = shoot.last().nodes.iter();
    let nodes = nodes.map(|node| (&*node.name, node.unknown_at, node.fate));
    let expected = [("node-0", 10.0), ("node-1", 10.1), ("node-2", 10.2)];
    assert!(nodes.eq(expected.map(|(name, at)| (name, wall(at), Fate::Saved))));
    let judged = Judged {
        at: wall(0.0),
        candidates: 3,
        expired: 3,
        fraction: 0.6,
        grace_seconds: 40.0,
    };
    assert_eq!(shoot.last().verdict, Some(judged));
}
