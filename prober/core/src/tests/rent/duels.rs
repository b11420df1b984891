//! One outage, two replicas, and something that happens to one of them or to the dependents.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{LIVES, count, measure, spread};
use crate::config::Config;
use crate::replicas::Marks;
use crate::tests::simulation::{Seconds, at};
use crate::tests::two_replicas::{Life, Trouble, node};

/// Fate of the leader, with spans of time to draw from.
#[derive(Clone, Copy)]
enum LeaderFate {
    Nothing,
    /// The leader is killed so long after the cut.
    Killed(Seconds, Seconds),
    /// Time after its first write.
    KilledAfterWrite(Seconds, Seconds),
    /// The leader holds its Lease, and does nothing.
    Hangs,
    /// There is no other replica.
    Alone,
    /// No probe of the leader is answered.
    Blind,
    /// A rollout: the other one leads so long after the cut, and both live.
    HandsOver(Seconds, Seconds),
    BothRestart(Seconds, Seconds),
    /// After the first write the config is reloaded, and no probe is answered any more.
    ReloadsAndFails,
}

/// Deeds of people to kube-controller-manager once it is down, or to the shoot.
#[derive(Clone, Copy)]
enum Interference {
    Nothing,
    /// Somebody raises it so long after.
    Raise(Seconds),
    /// And takes all annotations away.
    RaiseUnmarked(Seconds),
    /// Somebody takes its marker away so long after.
    Unmark(Seconds),
    /// Somebody raises it at once, again and again, for a minute.
    Fight,
    /// The shoot is paused so long after the cut, and until then.
    Pause(Seconds, Seconds),
}

#[derive(Clone, Copy)]
struct Duel {
    fate: LeaderFate,
    interference: Interference,
    /// Time for which the nodes are silent.
    silent: (Seconds, Seconds),
    lag: bool,
    flaky: f64,
    lost: f64,
    only_held_down: bool,
    /// Sizes of shoots, one of which is drawn.
    nodes: &'static [usize],
}

const DUEL: Duel = Duel {
    fate: LeaderFate::Nothing,
    interference: Interference::Nothing,
    silent: (120.0, 240.0),
    lag: false,
    flaky: 0.0,
    lost: 0.0,
    only_held_down: false,
    nodes: &[2, 3, 5, 8, 30],
};
const LAG: Duel = Duel { lag: true, ..DUEL };
const KCM: usize = 0;

/// An outage of one shoot, and what is drawn for it.
struct Match {
    life: Life,
    cut: Seconds,
    back: Seconds,
    /// Time at which it can be seen, and at which the first node is marked.
    possible: Seconds,
    end: Seconds,
    draws: [f64; 3],
    /// Time at which people raised kube-controller-manager.
    raised: Option<Seconds>,
}

impl Match {
    fn new(seed: u64, duel: &Duel) -> Self {
        let mut rng = StdRng::seed_from_u64(seed * 101 + 7);
        let count = duel.nodes[rng.random_range(0..duel.nodes.len())];
        let cut = 400.0 + rng.random_range(0.0..30.0);
        let back = cut + rng.random_range(duel.silent.0..duel.silent.1);
        let nodes: Vec<_> = (0..count)
            .map(|number| node(number, &[(cut, back)], &mut rng))
            .collect();
        let mut renewed: Vec<_> = nodes.iter().map(|node| node.renewed_by(cut)).collect();
        renewed.sort_by(f64::total_cmp);
        let needed = (1..=count).find(|&enough| enough as f64 / count as f64 >= 0.6);
        let draws = rng.random();
        let trouble = Trouble {
            lag: duel.lag,
            flaky: duel.flaky,
            lost: duel.lost,
        };
        let mut life = Life::of(trouble, nodes, [0.0; 2], 0.0, rng);
        for replica in &mut life.replicas {
            replica.env.options.restore_only_held_down.value = duel.only_held_down;
        }
        Self {
            life,
            cut,
            back,
            possible: renewed[needed.expect("60 % of something") - 1] + 30.0,
            end: renewed[0] + 40.0,
            draws,
            raised: None,
        }
    }

    fn run(&mut self, until: Seconds) {
        if until > self.life.t {
            self.life.until = until;
            self.life.run();
        }
    }

    fn run_until(&mut self, is_so: impl Fn(&Life) -> bool) {
        while !is_so(&self.life) && self.life.t < self.end + 60.0 {
            let t = self.life.t;
            self.run(t + 0.05);
        }
    }

    fn run_on(&mut self, (from, to): (Seconds, Seconds), since: Seconds) {
        let draw = self.draws[0];
        self.run(since + from + draw * (to - from));
    }

    /// Its process is gone, for good or until then.
    fn stop(&mut self, by: usize, until: Seconds) {
        let replica = &mut self.life.replicas[by];
        (replica.shoot, replica.starts_at, replica.env.leads) = (None, until, false);
    }

    /// The leader renewed its Lease up to 2 s before, and the other one gets it when it expires.
    fn kill(&mut self) {
        self.stop(0, Seconds::MAX);
        let t = self.life.t;
        let silent_from = t - 2.0 * self.draws[1] + 5.0;
        self.life.replicas[1].env.leader_silent_from = Some(at(silent_from));
        self.run(t + 15.0 + 4.0 * self.draws[2]);
        self.life.lead(1);
    }

    fn meet(&mut self, fate: LeaderFate) {
        match fate {
            LeaderFate::Nothing => {}
            LeaderFate::Killed(from, to) => {
                self.run_on((from, to), self.cut);
                self.kill();
            }
            LeaderFate::KilledAfterWrite(from, to) => {
                self.run_until(|life| !life.writes.is_empty());
                self.run_on((from, to), self.life.t);
                self.kill();
            }
            LeaderFate::Hangs => {
                self.run(self.cut - 1.0);
                self.stop(0, Seconds::MAX);
            }
            LeaderFate::Alone => self.stop(1, Seconds::MAX),
            LeaderFate::Blind => {
                self.run(self.cut - 1.0);
                self.life.blind = Some(0);
            }
            LeaderFate::HandsOver(from, to) => {
                self.run_on((from, to), self.cut);
                let t = self.life.t;
                self.stop(0, t + 3.0);
                self.run(t + 0.3);
                self.life.lead(1);
            }
            LeaderFate::BothRestart(from, to) => {
                self.run_on((from, to), self.cut);
                let t = self.life.t;
                (0..2).for_each(|by| self.stop(by, t + 1.0));
                self.run(t + 3.0);
                self.life.lead(0);
            }
            LeaderFate::ReloadsAndFails => {
                self.run_until(|life| !life.writes.is_empty());
                self.life.trouble.flaky = 1.0;
                for replica in &mut self.life.replicas {
                    replica.env.config = Arc::new(Config::clone(&replica.env.config));
                }
                self.run(self.back);
                self.life.trouble.flaky = 0.0;
            }
        }
    }

    fn raise(&mut self, unmarked: bool) {
        let mut object = self.life.objects[KCM].clone();
        object.replicas = 2;
        if unmarked {
            object.marks = Marks::default();
        }
        self.life.put(KCM, object);
        self.raised.get_or_insert(self.life.t);
    }

    fn interfere(&mut self, interference: Interference) {
        let down = |life: &Life| life.objects[KCM].replicas == 0;
        match interference {
            Interference::Nothing => {}
            Interference::Raise(after) | Interference::RaiseUnmarked(after) => {
                self.run_until(down);
                self.run(self.life.t + after);
                self.raise(matches!(interference, Interference::RaiseUnmarked(_)));
            }
            Interference::Unmark(after) => {
                self.run_until(down);
                self.run(self.life.t + after);
                let mut object = self.life.objects[KCM].clone();
                object.marks.held_down = false;
                self.life.put(KCM, object);
            }
            Interference::Fight => {
                self.run_until(down);
                let until = self.life.t + 60.0;
                while self.life.t < until {
                    if down(&self.life) {
                        self.raise(false);
                    }
                    self.run(self.life.t + 0.2);
                }
            }
            Interference::Pause(from, to) => {
                for (when, paused) in [(from, true), (to, false)] {
                    self.run(self.cut + when);
                    for replica in &mut self.life.replicas {
                        replica.env.paused = Some(paused);
                    }
                }
            }
        }
    }

    /// Returns when kube-controller-manager was first taken down, from then on.
    fn down(&self, from: Seconds) -> Option<Seconds> {
        let mut writes = self.life.writes.iter();
        let down = writes.find(|write| write.0 >= from && (write.2, write.3) == (KCM, Some(0)));
        down.map(|write| write.0)
    }

    /// Returns when the last dependent was brought back, after the nodes were.
    fn restored(&self) -> Option<Seconds> {
        let up = self
            .life
            .writes
            .iter()
            .filter(|write| write.3.is_some_and(|to| to > 0));
        let last = up.map(|write| write.0 - self.back).fold(0.0, f64::max);
        let all = self.life.objects.iter().all(|object| object.replicas > 0);
        all.then_some(last)
    }
}

fn play(row: &str, duel: &Duel) {
    let matches: Vec<_> = (0..LIVES * 3)
        .map(|seed| {
            let mut one = Match::new(seed, duel);
            one.meet(duel.fate);
            one.interfere(duel.interference);
            one.run(one.back + 150.0);
            one
        })
        .collect();
    let seen = || matches.iter().filter(|one| one.possible < one.back);
    let sum = |of: fn(&Match) -> usize| matches.iter().map(of).sum::<usize>();
    let each = |of: fn(&Match) -> usize| sum(of) as f64 / matches.len() as f64;
    let lost = seen().filter(|one| one.down(0.0).is_none_or(|down| down > one.end));
    count(row, "outages lost", lost.count());
    count(
        row,
        "lives with a wrong write",
        sum(|one| usize::from(!one.life.wrong.is_empty())),
    );
    count(
        row,
        "not restored",
        sum(|one| usize::from(one.restored().is_none())),
    );
    measure(row, "writes", each(|one| one.life.writes.len()));
    measure(
        row,
        "writes by the standby",
        each(|one| one.life.writes.iter().filter(|write| write.1 == 1).count()),
    );
    measure(row, "conflicts", each(|one| one.life.conflicts));
    measure(row, "probes", each(|one| one.life.probes));
    measure(row, "lists of nodes", each(|one| one.life.lists));
    let late = |one: &Match| one.down(0.0).unwrap_or(one.back + 150.0) - one.possible;
    spread(row, "down after", seen().map(late).collect());
    spread(
        row,
        "restored after",
        matches.iter().filter_map(Match::restored).collect(),
    );
    let again = |one: &Match| {
        Some(
            one.down(one.raised?)
                .map_or(99.0, |down| down - one.raised.unwrap_or_default()),
        )
    };
    spread(
        row,
        "taken down again after",
        matches.iter().filter_map(again).collect(),
    );
}

#[test]
#[ignore = "prints figures"]
fn outages_with_two_replicas() {
    use Interference::{Fight, Pause, Raise, RaiseUnmarked, Unmark};
    use LeaderFate::{
        Alone, Blind, BothRestart, HandsOver, Hangs, Killed, KilledAfterWrite, ReloadsAndFails,
    };
    #[rustfmt::skip]
    let rows = [
        ("leader lives", DUEL),
        ("leader lives, views lag", LAG),
        ("leader killed", Duel { fate: Killed(0.0, 40.0), ..DUEL }),
        ("leader killed, 5 % fail, views lag", Duel { fate: Killed(0.0, 40.0), flaky: 0.05, ..LAG }),
        ("leader killed before the verdict, 100 nodes", Duel { fate: Killed(12.0, 20.0), nodes: &[100], ..DUEL }),
        ("leader killed at work", Duel { fate: KilledAfterWrite(0.0, 4.0), ..DUEL }),
        ("leader killed at work, views lag", Duel { fate: KilledAfterWrite(0.0, 4.0), ..LAG }),
        ("leader hangs", Duel { fate: Hangs, ..DUEL }),
        ("leader hangs, views lag", Duel { fate: Hangs, ..LAG }),
        ("leader blind", Duel { fate: Blind, ..DUEL }),
        ("rollout", Duel { fate: HandsOver(0.0, 40.0), ..DUEL }),
        ("both restart around the cut", Duel { fate: BothRestart(-30.0, 30.0), ..DUEL }),
        ("both restart in the outage", Duel { fate: BothRestart(35.0, 60.0), ..DUEL }),
        ("reload between two levels, then probes fail", Duel { fate: ReloadsAndFails, ..DUEL }),
        ("5 % of probes fail", Duel { flaky: 0.05, ..DUEL }),
        ("5 % of writes not answered, views lag", Duel { lost: 0.05, ..LAG }),
        ("alone, 20 % of writes not answered", Duel { fate: Alone, lost: 0.2, ..DUEL }),
        ("blips", Duel { silent: (30.0, 45.0), ..DUEL }),
        ("blips, 5 % fail, views lag", Duel { silent: (30.0, 45.0), flaky: 0.05, ..LAG }),
        ("gardenlet raises it", Duel { interference: Raise(20.0), ..LAG }),
        ("gardenlet raises it, leader hangs", Duel { interference: Raise(20.0), fate: Hangs, ..LAG }),
        ("somebody raises and unmarks it", Duel { interference: RaiseUnmarked(20.0), ..LAG }),
        ("somebody raises and unmarks it, leader hangs", Duel { interference: RaiseUnmarked(20.0), fate: Hangs, ..LAG }),
        ("somebody takes the marker away, only held down", Duel { interference: Unmark(20.0), only_held_down: true, ..DUEL }),
        ("a controller raises it at once, again and again", Duel { interference: Fight, ..DUEL }),
        ("X raised 0.05 s after the write", Duel { interference: Raise(0.05), ..DUEL }),
        ("X paused in the outage", Duel { interference: Pause(10.0, 45.0), silent: (150.0, 240.0), ..DUEL }),
        ("X paused until the nodes are back", Duel { interference: Pause(10.0, 45.5), silent: (32.0, 45.0), ..DUEL }),
    ];
    rows.iter().for_each(|(row, duel)| play(row, duel));
}
