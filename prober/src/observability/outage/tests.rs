//! Stories of a shoot with two controllers, in words: what its probes find and what the seed shows.
//! Times count from midnight.

use super::*;
use crate::observability::view::{Found, ProbeStatus};
use crate::tests::{nothing_found, wall};

struct RecordedShoot {
    view: ShootView,
    is_written: bool,
    open: Option<Outage>,
    ended: Vec<Outage>,
}

impl RecordedShoot {
    fn new() -> Self {
        let mut dependents = vec![ShownDependent::default(); 2];
        for (dependent, name) in dependents.iter_mut().zip(["mcm", "kcm"]) {
            dependent.resource.name = name.to_owned();
        }
        let view = ShootView {
            dependents,
            probe: Some(ProbeStatus::default()),
            ..ShootView::default()
        };
        let (open, ended) = (None, Vec::new());
        Self {
            view,
            is_written: false,
            open,
            ended,
        }
    }

    fn happens(&mut self, second: f64, event: &str) {
        let words: Vec<_> = event.split(' ').collect();
        let probe = self.view.probe.as_mut().expect("a probe");
        let tally = Tally {
            candidates: 3,
            expired: 2,
            undecided: 0,
        };
        let found = |verdict| {
            Some(Found {
                verdict,
                tally,
                ..Found::new(&nothing_found(), Vec::new())
            })
        };
        match words[..] {
            ["down"] => probe.found = found(Verdict::ScaleDown),
            ["undecided"] => probe.found = found(Verdict::HoldUndecided),
            ["up"] => probe.found = found(Verdict::ScaleUp),
            ["fails"] => probe.found = None,
            ["writing"] => self.is_written = true,
            ["written"] => self.is_written = false,
            ["writes"] => self.open.iter_mut().for_each(|outage| outage.writes += 1),
            ["ends"] => {
                let open = self.open.take();
                let ended = open.map(|open| open.end(wall(second)));
                return self.ended.extend(ended);
            }
            [name, replicas] => {
                let mut dependents = self.view.dependents.iter_mut();
                let dependent = dependents.find(|dependent| dependent.resource.name == name);
                dependent.expect(event).since = (replicas == "0").then(|| wall(second));
            }
            _ => panic!("{event}"),
        }
        let ended = Outage::follow(&mut self.open, &self.view, self.is_written, wall(second));
        self.ended.extend(ended);
    }
}

/// Each story, and the records of what has ended.
const STORIES: [(&str, &[&str]); 11] = [
    (
        "0 up; 5 down; 6 mcm 0; 6 writes; 7 kcm 0; 7 writes; 71 up; 73 writes; 73 kcm 1; 75 writes; 75 mcm 1",
        &[
            "5: 2 of 3 leases expired, mcm held down for 1m 9s, kcm held down for 1m 6s; restored after 1m 10s, 4 writes by this process",
        ],
    ),
    // It goes on while the verdict is unknown, and while a part is held down.
    (
        "0 down; 1 mcm 0; 2 kcm 0; 20 fails; 30 undecided; 40 up; 41 kcm 1; 42 fails",
        &[],
    ),
    // Taken down again before all is restored.
    (
        "0 down; 1 mcm 0; 2 kcm 0; 10 up; 11 kcm 1; 60 down; 61 kcm 0; 70 up; 70 mcm 1; 72 kcm 1",
        &[
            "0: 2 of 3 leases expired, mcm held down for 1m 9s, kcm held down for 1m 10s; restored after 1m 12s, 0 writes by this process",
        ],
    ),
    // A process that starts in mid-outage begins with what it finds.
    (
        "0 kcm 0; 5 undecided; 20 down; 60 up; 61 writes; 61 kcm 1",
        &[
            "0: 2 of 3 leases expired, kcm held down for 1m 1s; restored after 1m 1s, 1 write by this process",
        ],
    ),
    (
        "0 kcm 0; 5 up; 6 kcm 1",
        &[
            "0: no outage seen by this process, kcm held down for 6s; restored after 6s, 0 writes by this process",
        ],
    ),
    // A watch is faster than the answer to the last write.
    (
        "0 down; 1 kcm 0; 30 up; 30 writing; 31 kcm 1; 35 written",
        &[
            "0: 2 of 3 leases expired, kcm held down for 30s; restored after 31s, 0 writes by this process",
        ],
    ),
    // A replica that writes nothing probes less often.
    (
        "0 down; 1 kcm 0; 71 kcm 1; 80 up",
        &[
            "0: 2 of 3 leases expired, kcm held down for 1m 10s; restored after 1m 11s, 0 writes by this process",
        ],
    ),
    (
        "0 down; 30 up",
        &["0: 2 of 3 leases expired; nothing held down after 30s, 0 writes by this process"],
    ),
    (
        "0 down; 1 kcm 0; 70 ends",
        &[
            "0: 2 of 3 leases expired, kcm held down; still held down after 1m 10s, 0 writes by this process",
        ],
    ),
    (
        "0 down; 70 ends",
        &["0: 2 of 3 leases expired; nothing held down after 1m 10s, 0 writes by this process"],
    ),
    ("0 up; 70 ends", &[]),
];

#[test]
fn an_outage_is_recorded_from_the_verdict_to_the_last_restore() {
    for (story, expected) in STORIES {
        let mut shoot = RecordedShoot::new();
        for event in story.split("; ") {
            let (second, event) = event.split_once(' ').expect(story);
            shoot.happens(second.parse().expect(story), event);
        }
        let told = shoot.ended.iter().map(|outage| {
            let began = (outage.began - wall(0.0)).num_seconds();
            format!("{began}: {}", outage.sentence())
        });
        assert_eq!(told.collect::<Vec<_>>(), expected, "{story}");
    }
}
