//! One outage, two replicas, and something that happens to one of them or to the dependents.

use std::sync::Arc;

use rand::RngExt;

use super::figures::{count, measure, spread};
use super::life::{FOR_GOOD, Leadership, Life, Plan, Seconds, Silences, each, lives, name};
use crate::config::Config;
use crate::replicas::{Marks, Observed};

/// A row, for how long the nodes are silent, and what happens besides: `cut 0 to 40: kill; down 20: raise` so
/// long after the cut, or after the first `write` or kube-controller-manager is `down`.
type Duel = (&'static str, (Seconds, Seconds), &'static str);

const KCM: usize = 0;
/// Sizes of shoots, one of which is drawn.
const SIZES: [usize; 5] = [2, 3, 5, 8, 30];
/// Nothing but what is scripted.
const SCRIPTED: &str = "life of 1000 s, seed takes 0 to 0.02 s, views lag 0 s";

/// An outage of one shoot, and what is drawn for it.
struct Match {
    life: Life,
    cut: Seconds,
    back: Seconds,
    /// Time at which it can be seen, and at which the first node is marked.
    possible: Seconds,
    end: Seconds,
    /// Time at which people raised kube-controller-manager.
    raised: Option<Seconds>,
}

impl Match {
    fn new(seed: u64, (row, silent, ..): &Duel) -> Self {
        let mut plan = Plan::of(&[SCRIPTED, row]);
        let draw = |times: f64| (seed as f64 * 0.618 * times).fract();
        let size = SIZES[seed as usize % SIZES.len()];
        plan.nodes = (size, size + 1);
        let cut = 400.0 + 30.0 * draw(1.0);
        let back = cut + silent.0 + (silent.1 - silent.0) * draw(3.0);
        plan.silences = Silences::Once(cut..back);
        let life = Life::new(seed, &plan);
        let (possible, end) = life.nodes.outage(cut, &plan);
        Self {
            life,
            cut,
            back,
            possible,
            end,
            raised: None,
        }
    }

    fn run_to(&mut self, t: Seconds) {
        self.life.run_until(t, |_| false);
    }

    fn run_for(&mut self, seconds: Seconds) {
        self.run_to(self.life.t + seconds);
    }

    /// Runs to a moment such as `down 20`, or one that is drawn between two.
    fn run_to_moment(&mut self, moment: &str) {
        let words: Vec<_> = moment.split(' ').collect();
        let number = |at: usize| -> Option<Seconds> { words.get(at)?.parse().ok() };
        let from = number(1).expect(moment);
        let wait = from + self.life.mishaps.random::<f64>() * (number(3).unwrap_or(from) - from);
        let latest = self.end + 60.0;
        let since = match words[0] {
            "cut" => self.cut,
            "write" => {
                self.life.run_until(latest, |life| !life.made.is_empty());
                self.life.t
            }
            _ => {
                self.life.run_until(latest, is_down);
                self.life.t
            }
        };
        self.run_to(since + wait);
    }

    /// The leader renewed its Lease up to 2 s before, and the other one gets it when it expires.
    fn kill(&mut self) {
        self.life.stop(0);
        let expires = 15.0 + 4.0 * self.life.mishaps.random::<f64>();
        self.run_for(expires);
        self.life.lead(1);
    }

    /// They stop, and start again then.
    fn restart(&mut self, by: usize, after: Seconds) {
        self.life.stop(by);
        self.life.after(after, move |life| life.start(by));
    }

    fn happens(&mut self, deed: &str) {
        match deed {
            "kill" => self.kill(),
            // The leader holds its Lease, and does nothing.
            "hang" => {
                self.life.stop(0);
                self.life.plan.leadership = Leadership::Hangs;
            }
            // No probe of the leader is answered.
            "blind" => self.life.replicas[0].blind = true,
            // A rollout: the other one leads, and both live.
            "hand over" => {
                self.restart(0, 3.0);
                self.run_for(0.3);
                self.life.lead(1);
            }
            "restart" => (0..2).for_each(|by| self.restart(by, 1.0)),
            "reload and fail" => {
                let config = Arc::new(Config::clone(&self.life.config));
                for by in 0..2 {
                    self.life.replicas[by].blind = true;
                    self.life.reload(by, Arc::clone(&config));
                }
                self.run_to(self.back);
                (0..2).for_each(|by| self.life.replicas[by].blind = false);
            }
            "pause" => self.life.pause(),
            "raise" => self.edit(|kcm| kcm.replicas = 2),
            "raise and unmark" => {
                self.edit(|kcm| (kcm.replicas, kcm.marks) = (2, Marks::default()))
            }
            "unmark" => self.edit(|kcm| kcm.marks.held_down = false),
            // Somebody raises it at once, again and again, for a minute.
            "fight" => {
                let until = self.life.t + 60.0;
                while self.life.t < until {
                    if is_down(&self.life) {
                        self.edit(|kcm| kcm.replicas = 2);
                    }
                    self.run_for(0.2);
                }
            }
            _ => unreachable!("no such deed: {deed}"),
        }
    }

    /// Somebody writes kube-controller-manager.
    fn edit(&mut self, change: impl FnOnce(&mut Observed)) {
        let mut object = self.life.objects[KCM].clone().expect("it is there");
        change(&mut object);
        if object.replicas > 0 {
            self.raised.get_or_insert(self.life.t);
        }
        self.life.others_put(KCM, "somebody", object);
    }

    /// Returns when kube-controller-manager was first taken down, from then on.
    fn down(&self, from: Seconds) -> Option<Seconds> {
        let mut made = self.life.made.iter();
        let down = made.find(|made| made.0 >= from && (made.2, made.3) == (KCM, Some(0)));
        down.map(|made| made.0)
    }

    /// Returns when the last dependent was brought back, after the nodes were.
    fn restored(&self) -> Option<Seconds> {
        let up = self
            .life
            .made
            .iter()
            .filter(|made| made.3.is_some_and(|to| to > 0));
        let last = up.map(|made| made.0 - self.back).fold(0.0, f64::max);
        let mut objects = self.life.objects.iter().flatten();
        objects.all(|object| object.replicas > 0).then_some(last)
    }
}

fn is_down(life: &Life) -> bool {
    let kcm = life.objects[KCM].as_ref();
    kcm.is_some_and(|kcm| kcm.replicas == 0)
}

/// Returns what was wrong.
fn play(duel: &Duel) -> Vec<String> {
    let (row, _, script) = *duel;
    let row = name(row);
    let matches: Vec<_> = (0..lives(5, 100))
        .map(|seed| {
            let mut one = Match::new(seed, duel);
            for (moment, deed) in script.split("; ").filter_map(|part| part.split_once(": ")) {
                one.run_to_moment(moment);
                one.happens(deed);
            }
            one.run_to(one.back + 150.0);
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
    measure(row, "writes", each(|one| one.life.made.len()));
    let by_standby = |one: &Match| one.life.made.iter().filter(|made| made.1 == 1).count();
    measure(row, "writes by the standby", each(by_standby));
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
    matches
        .into_iter()
        .flat_map(|one| one.life.wrong)
        .map(|wrong| format!("{row}: {wrong}"))
        .collect()
}

#[test]
fn outage_of_two_replicas_goes_right() {
    const LONG: (Seconds, Seconds) = (120.0, 240.0);
    const SHORT: (Seconds, Seconds) = (30.0, 45.0);
    #[rustfmt::skip]
    let rows: [Duel; 28] = [
        ("leader lives: plain", LONG, ""),
        ("leader lives, views lag: views lag 3 s", LONG, ""),
        ("leader killed: plain", LONG, "cut 0 to 40: kill"),
        ("leader killed, 5 % fail, views lag: 5 % of probes fail, views lag 3 s", LONG, "cut 0 to 40: kill"),
        ("leader killed before the verdict: plain", LONG, "cut 12 to 20: kill"),
        ("leader killed at work: plain", LONG, "write 0 to 4: kill"),
        ("leader killed at work, views lag: views lag 3 s", LONG, "write 0 to 4: kill"),
        ("leader hangs: plain", LONG, "cut -1: hang"),
        ("leader hangs, views lag: views lag 3 s", LONG, "cut -1: hang"),
        ("leader blind: plain", LONG, "cut -1: blind"),
        ("rollout: plain", LONG, "cut 0 to 40: hand over"),
        ("both restart around the cut: plain", LONG, "cut -30 to 30: restart"),
        ("both restart in the outage: plain", LONG, "cut 35 to 60: restart"),
        ("reload between two levels, then probes fail: plain", LONG, "write 0: reload and fail"),
        ("5 % of probes fail", LONG, ""),
        ("5 % of writes not answered, views lag 3 s", LONG, ""),
        ("alone, 20 % of writes not answered", LONG, ""),
        ("blips: plain", SHORT, ""),
        ("blips, 5 % fail, views lag: 5 % of probes fail, views lag 3 s", SHORT, ""),
        ("gardenlet raises it: views lag 3 s", LONG, "down 20: raise"),
        ("gardenlet raises it, leader hangs: views lag 3 s", LONG, "cut -1: hang; down 20: raise"),
        ("somebody raises and unmarks it: views lag 3 s", LONG, "down 20: raise and unmark"),
        ("somebody raises and unmarks it, leader hangs: views lag 3 s", LONG, "cut -1: hang; down 20: raise and unmark"),
        ("somebody takes the marker away, only held down: only held down", LONG, "down 20: unmark"),
        ("a controller raises it at once, again and again: plain", LONG, "down 0: fight"),
        ("X raised 0.05 s after the write: plain", LONG, "down 0.05: raise"),
        ("X paused in the outage: plain", (150.0, 240.0), "cut 10: pause; cut 45: pause"),
        ("X paused until the nodes are back: plain", (32.0, 45.0), "cut 10: pause; cut 45.5: pause"),
    ];
    let wrong = each(&rows, play).concat();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_comes_back_in_mid_outage() {
    // Some leaders start so long before the nodes fall silent.
    #[rustfmt::skip]
    let rows = [
        ("plain", None), ("plain", Some(60.0)),
        ("clocks +60", None), ("clocks +60", Some(40.0)), ("clocks +60", Some(90.0)), ("clocks -60", Some(60.0)),
        ("clocks +15", Some(60.0)), ("clocks +3", Some(60.0)), ("clocks -12", Some(60.0)),
        ("clocks +15, put back by 10 s, standby starts at 320 s", None),
        ("clocks +15, put back by 25 s", None), ("put back by 5 s", None),
    ];
    for (row, before) in rows {
        for seed in 0..lives(12, 120) {
            let mut plan = Plan::of(&[SCRIPTED, "3 to 5 nodes, life of 460 s", row]);
            let cut = 350.0 + 30.0 * (seed as f64 * 0.618).fract();
            plan.starts[0] = before.map_or(0.0, |before| cut - before);
            plan.silences = Silences::Once(cut..FOR_GOOD);
            let mut life = Life::new(seed, &plan);
            life.run_until(plan.life, |_| false);
            // With clocks that were put back an outage may be seen early.
            life.wrong.retain(|wrong| wrong.contains("in mid-outage"));
            assert!(life.wrong.is_empty(), "{row}: {:#?}", life.wrong);
        }
    }
}

#[test]
fn rollout_in_a_restore_costs_no_delay() {
    for seed in 0..lives(20, 200) {
        let mut plan = Plan::of(&[SCRIPTED, "alone, 3 to 3 nodes"]);
        plan.silences = Silences::Once(300.0..400.0);
        let mut life = Life::new(seed, &plan);
        let replicas =
            |life: &Life, place: usize| life.objects[place].as_ref().map(|object| object.replicas);
        life.run_until(400.0, |_| false);
        life.run_until(plan.life, |life| replicas(life, KCM) > Some(0));
        let rolled = 25.0 * (seed as f64 * 0.618).fract();
        life.run_until(life.t + rolled, |_| false);
        life.start(1);
        life.run_until(life.t + 2.0, |_| false);
        life.stop(0);
        life.lead(1);
        let began = life.t;
        life.run_until(plan.life, |life| replicas(life, 1) > Some(0));
        assert!(life.wrong.is_empty(), "{:#?}", life.wrong);
        // Two renewals that are seen, and machine-controller-manager's own 30 s.
        assert!(life.t - began < 30.0 + 15.0, "{:.1} s", life.t - began);
    }
}
