//! Stories of a shoot with two controllers, in words: what its probes find and what the seed shows.
//! Times count from midnight.

use prober_core::config::ResourceRef;

use super::*;
use crate::tests::wall;

#[derive(Default)]
struct RecordedShoot {
    held: Vec<String>,
    verdict: Option<Verdict>,
    is_scaling: bool,
    paused: bool,
    open: Option<Outage>,
    ended: Vec<Outage>,
}

impl RecordedShoot {
    fn happens(&mut self, second: f64, event: &str) {
        let words: Vec<_> = event.split(' ').collect();
        match words[..] {
            ["down"] => self.verdict = Some(Verdict::ScaleDown),
            ["undecided"] => self.verdict = Some(Verdict::HoldUndecided),
            ["up"] => self.verdict = Some(Verdict::ScaleUp),
            ["fails"] => self.verdict = None,
            ["paused"] => self.paused = true,
            ["unpaused"] => self.paused = false,
            ["scaling"] => self.is_scaling = true,
            ["scaled"] => self.is_scaling = false,
            ["writes"] => self.open.iter_mut().for_each(|outage| outage.writes += 1),
            ["ends"] => {
                let ended = Outage::probe_ended(&mut self.open, wall(second));
                return self.ended.extend(ended);
            }
            [name, "0"] => self.held.push(name.to_owned()),
            [name, "1"] => self.held.retain(|held| held != name),
            _ => panic!("{event}"),
        }
        let resources = ["mcm", "kcm"].map(|name| ResourceRef {
            name: name.to_owned(),
            ..ResourceRef::default()
        });
        let is_held = |resource: &ResourceRef| self.held.contains(&resource.name);
        let snapshot = Snapshot {
            namespace: "shoot--a--b",
            verdict: self.verdict,
            judged: Judged {
                candidates: 3,
                expired: 2,
            },
            dependents: resources.iter().map(|one| (one, is_held(one))).collect(),
            is_scaling: self.is_scaling,
            paused: self.paused,
            now: wall(second),
        };
        let ended = Outage::follow(&mut self.open, &snapshot);
        self.ended.extend(ended);
    }
}

/// Each story, and the records of what has ended.
const STORIES: &str = "
0 up; 5 down; 6 mcm 0, writes; 7 kcm 0, writes; 71 up; 73 writes, kcm 1; 75 writes, mcm 1
    at 5: 2 of 3 leases expired, mcm held down for 1m 9s, kcm held down for 1m 6s; restored after 1m 10s, 4 writes by this process
# It goes on while the verdict is unknown, and while a part is held down.
0 down; 1 mcm 0; 2 kcm 0; 20 fails; 30 undecided; 40 up; 41 kcm 1; 42 fails
# Taken down again before all is restored.
0 down; 1 mcm 0; 2 kcm 0; 10 up; 11 kcm 1; 60 down; 61 kcm 0; 70 up, mcm 1; 72 kcm 1
    at 0: 2 of 3 leases expired, mcm held down for 1m 9s, kcm held down for 1m 10s; restored after 1m 12s, 0 writes by this process
# A process that starts in mid-outage begins with what it finds.
0 kcm 0; 5 undecided; 20 down; 60 up; 61 writes, kcm 1
    at 0: 2 of 3 leases expired, kcm held down for 1m 1s; restored after 1m 1s, 1 write by this process
0 kcm 0; 5 up; 6 kcm 1
    at 0: no outage seen by this process, kcm held down for 6s; restored after 6s, 0 writes by this process
# A watch is faster than the answer to the last write; a replica that writes nothing probes less often.
0 down; 1 kcm 0; 30 up, scaling; 31 kcm 1; 35 scaled
    at 0: 2 of 3 leases expired, kcm held down for 30s; restored after 31s, 0 writes by this process
0 down; 1 kcm 0; 71 kcm 1; 80 up
    at 0: 2 of 3 leases expired, kcm held down for 1m 10s; restored after 1m 11s, 0 writes by this process
0 down; 30 up
    at 0: 2 of 3 leases expired; nothing held down after 30s, 0 writes by this process
# A pause ends the record when the nodes are back, and its end begins another.
0 down; 1 kcm 0; 60 paused; 70 up; 100 up
    at 0: 2 of 3 leases expired, kcm held down; paused after 1m 10s, 0 writes by this process
0 paused, kcm 0; 70 up; 130 unpaused; 131 kcm 1
    at 0: no outage seen by this process, kcm held down; paused after 1m 10s, 0 writes by this process
    at 130: no outage seen by this process, kcm held down for 1s; restored after 1s, 0 writes by this process
0 down; 1 kcm 0; 70 ends
    at 0: 2 of 3 leases expired, kcm held down; still held down after 1m 10s, 0 writes by this process
0 down; 70 ends
    at 0: 2 of 3 leases expired; probe ended after 1m 10s, 0 writes by this process
0 up; 70 ends
";

#[test]
fn an_outage_is_recorded_from_the_verdict_to_the_last_restore() {
    let mut lines = STORIES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .peekable();
    while let Some(story) = lines.next() {
        let mut shoot = RecordedShoot::default();
        for events in story.split("; ") {
            let (second, events) = events.split_once(' ').expect(story);
            let second = second.parse().expect(story);
            let mut events = events.split(", ");
            events
                .by_ref()
                .for_each(|event| shoot.happens(second, event));
        }
        let told = shoot.ended.iter().map(|outage| {
            let began = (outage.began - wall(0.0)).num_seconds();
            format!("    at {began}: {}", outage.sentence())
        });
        let told: Vec<_> = told.collect();
        let expected: Vec<_> =
            std::iter::from_fn(|| lines.next_if(|line| line.starts_with("    "))).collect();
        assert_eq!(told, expected, "{story}");
    }
}
