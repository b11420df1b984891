//! Healthy shoots and outages: clocks that are off, step and drift, answers and renewals that are slow,
//! probes that fail, an API server that is away for everyone, starts in the midst of an outage, and what
//! happens to one of two replicas or to the dependents.
//!
//! What must come out: no healthy shoot is scaled down, no outage is seen late but for what the
//! lease clock gives (D-21, D-54), and no replica writes what is wrong. With `MODEL=long` each row has
//! hundreds of lives. What the rules of the core are worth, in figures, is printed here: `make rent`
//! compares them with each rule switched off.

use std::fmt::Display;

use rand::RngExt;

use super::life::{FOR_GOOD, Leadership, Life, Plan, Seconds, Silences, each, lives, name};
use super::scene::{number, table};
use crate::replicas::{Marks, Observed};

/// One replica, clocks that NTP keeps, and an API server that is near.
const ALONE: &str = "alone, healthy, life of 900 s, beats stretched 1 to 1.001, clocks within 0.05, answers take 0.02 s";
/// Two replicas, and nothing but what is scripted.
const TWO: &str = "life of 1000 s, seed takes 0 to 0.02 s, views lag 0 s";
/// Sizes of shoots, and how many nodes are excluded.
const SIZES: [(usize, usize); 5] = [(2, 0), (3, 0), (5, 2), (8, 0), (30, 0)];
const KCM: usize = 0;

/// Prints how often something happened in a row, or a measure, which has two decimals.
fn figure(row: &str, what: &str, value: impl Display) {
    println!("FIGURE {}: {what}|{value}", name(row));
}

fn plan(base: &str, row: &str, seed: u64) -> Plan {
    let (nodes, excluded) = SIZES[seed as usize % SIZES.len()];
    Plan {
        nodes: (nodes, nodes + 1),
        excluded,
        ..Plan::of(&[base, row])
    }
}

fn is_at_0(life: &Life, place: usize) -> bool {
    life.objects[place]
        .as_ref()
        .is_some_and(|it| it.replicas == 0)
}

/// An outage of one shoot, and what is drawn for it.
struct Outage {
    life: Life,
    cut: Seconds,
    back: Seconds,
    /// Time at which it can be seen, and at which the first node is marked.
    possible: Seconds,
    end: Seconds,
}

impl Outage {
    /// The nodes fall silent between two moments, for between so many and so many seconds.
    fn new(seed: u64, base: &str, row: &str, cut: [Seconds; 2], silent: [Seconds; 2]) -> Self {
        let mut plan = plan(base, row, seed);
        let draw = |[from, to]: [Seconds; 2], times: f64| {
            from + (to - from) * (seed as f64 * 0.618 * times).fract()
        };
        let cut = draw(cut, 1.0);
        let back = cut + draw(silent, 3.0);
        plan.silences = Silences::Once(cut..back);
        plan.life = f64::min(cut + 250.0, back) + 150.0;
        let life = Life::new(seed, &plan);
        let (possible, end) = life.nodes.outage(cut, &plan);
        Self {
            life,
            cut,
            back,
            possible: possible.max(0.0),
            end,
        }
    }

    /// Lives through what happens so long after the cut, or after the first `write` or
    /// kube-controller-manager is `down`: `cut 0 to 40: kill; down 20: raise`.
    fn play(mut self, script: &str) -> Self {
        for (moment, deed) in script.split("; ").filter_map(|part| part.split_once(": ")) {
            self.run_to_moment(moment);
            self.happens(deed);
        }
        self.run_to(self.life.plan.life);
        self
    }

    fn run_to(&mut self, t: Seconds) {
        self.life.run_until(t, |_| false);
    }

    /// Runs to a moment such as `down 20`, or one that is drawn between two.
    fn run_to_moment(&mut self, moment: &str) {
        let words: Vec<_> = moment.split(' ').collect();
        let from = number(words[1]);
        let to = words.get(3).map_or(from, |to| number(to));
        let wait = from + self.life.mishaps.random::<f64>() * (to - from);
        let latest = self.end + 60.0;
        match words[0] {
            "cut" => return self.run_to(self.cut + wait),
            "write" => self.life.run_until(latest, |life| !life.made.is_empty()),
            _ => self.life.run_until(latest, |life| is_at_0(life, KCM)),
        }
        self.run_to(self.life.t + wait);
    }

    fn happens(&mut self, deed: &str) {
        let life = &mut self.life;
        match deed {
            // The leader renewed its Lease up to 2 s before, and the other one gets it when it expires.
            "kill" => {
                life.stop(0);
                let expires = 15.0 + 4.0 * life.mishaps.random::<f64>();
                life.after(expires, |life| life.lead(1));
            }
            // The leader holds its Lease, and does nothing.
            "hang" => {
                life.stop(0);
                life.plan.leadership = Leadership::Hangs;
            }
            "restart both" => {
                for by in 0..2 {
                    life.stop(by);
                    life.after(1.0, move |life| life.start(by));
                }
            }
            "raise" => self.edit(|kcm| kcm.replicas = 2),
            "raise and unmark" => {
                self.edit(|kcm| (kcm.replicas, kcm.marks) = (2, Marks::default()))
            }
            "unmark" => self.edit(|kcm| kcm.marks.held_down = false),
            // Somebody raises it at once, again and again, for a minute.
            "fight" => {
                let until = self.life.t + 60.0;
                while self.life.t < until {
                    if is_at_0(&self.life, KCM) {
                        self.edit(|kcm| kcm.replicas = 2);
                    }
                    self.run_to(self.life.t + 0.2);
                }
            }
            _ => unreachable!("no such deed: {deed}"),
        }
    }

    /// Somebody writes kube-controller-manager.
    fn edit(&mut self, change: impl FnOnce(&mut Observed)) {
        let mut object = self.life.objects[KCM].clone().expect("it is there");
        change(&mut object);
        self.life.others_put(KCM, "somebody", object);
    }

    /// Returns how late something was first taken down.
    fn late(&self) -> Seconds {
        let first = self.life.made.iter().find(|made| made.3 == Some(0));
        first.map_or(FOR_GOOD, |made| made.0) - self.possible
    }

    /// Returns when kube-controller-manager was first taken down.
    fn down(&self) -> Option<Seconds> {
        let mut made = self.life.made.iter();
        let down = made.find(|made| (made.2, made.3) == (KCM, Some(0)));
        down.map(|made| made.0)
    }

    /// Returns when the last dependent was brought back, after the nodes were.
    fn restored(&self) -> Option<Seconds> {
        let made = self.life.made.iter();
        let up = made.filter(|made| made.3.is_some_and(|to| to > 0));
        let last = up.map(|made| made.0 - self.back).fold(0.0, f64::max);
        let mut objects = self.life.objects.iter().flatten();
        objects.all(|object| object.replicas > 0).then_some(last)
    }

    fn can_be_seen(&self) -> bool {
        self.possible < self.back
    }

    fn is_lost(&self) -> bool {
        self.can_be_seen() && self.down().is_none_or(|down| down > self.end)
    }
}

/// Prints what came of the outages of a row: sums, and the middle one of each measure with the one that
/// 5 % exceed.
fn print_figures(row: &str, outages: &[Outage]) {
    let sum = |what: &str, count: fn(&Outage) -> usize| {
        figure(row, what, outages.iter().map(count).sum::<usize>());
    };
    sum("outages lost", |one| usize::from(one.is_lost()));
    sum("wrong writes", |one| one.life.wrong.len());
    sum("not restored", |one| usize::from(one.restored().is_none()));
    sum("writes", |one| one.life.made.len());
    sum("conflicts", |one| one.life.conflicts);
    sum("probes", |one| one.life.probes);
    sum("lists of nodes", |one| one.life.lists);
    let spread = |what: &str, measure: fn(&Outage) -> Option<Seconds>| {
        let mut list: Vec<_> = outages.iter().filter_map(measure).collect();
        list.sort_by(f64::total_cmp);
        for percent in [50, 95] {
            if let Some(value) = list.get(list.len() * percent / 100) {
                figure(row, &format!("{what} s, p{percent}"), format!("{value:.2}"));
            }
        }
    };
    spread("late", |one| one.can_be_seen().then(|| one.late()));
    spread("down after", |one| {
        let down = one.down().unwrap_or(one.back + 150.0);
        one.can_be_seen().then_some(down - one.possible)
    });
    spread("restored after", Outage::restored);
}

fn healthy_rows() -> Vec<String> {
    let rows = table(
        "
        plain
        our clock +60
        our clock -35
        a third -40
        drift 1 ms a second
        drift -1 ms a second
        suspended from 300 to 390 s, suspended from 600 to 645 s
        clocks -60, suspended from 300 to 390 s, suspended from 600 to 645 s
        answers take 0 to 10 s
        renewals up to 9 s late
        away for 25 s, 5 % of probes fail
        away from -60 to 3 s
        away from -60 to 15 s
        away from -60 to 40 s
        away from -60 to 5 s, no initialDelay
        ",
    );
    let mut rows: Vec<_> = rows.map(|[row]| row.to_owned()).collect();
    for off in [-60, -30, -25, -20, -12, -5, 5, 8, 15, 60] {
        rows.push(format!("clocks {off:+}"));
    }
    for off in [-60, 0, 15, 60] {
        for by in [-60, -31, -25, -19, -10, -5, -3, 3, 10, 60] {
            rows.push(format!("clocks {off:+}, step by {by:+} at 600 s"));
        }
    }
    // At most 0.4 % of absences of 14 to 18 s that fall between two probes are not noticed (D-54).
    for seconds in [10, 12, 20, 22, 25, 30, 35, 45, 60, 90, 600] {
        rows.push(format!("away for {seconds} s"));
    }
    for seconds in [20, 30, 45, 90] {
        rows.push(format!("away for {seconds} s, suspended meanwhile"));
    }
    // Shorter than two renewals: leases would expire between two of them.
    for grace in [1, 4, 10, 15] {
        #[rustfmt::skip]
        let besides = ["plain", "no initialDelay, clocks -60", "renewals up to 1 s late, answers take 0 to 1 s", "away for 20 s"];
        rows.extend(besides.map(|row| format!("grace {grace} s, {row}")));
    }
    rows
}

#[test]
fn no_healthy_shoot_is_scaled_down() {
    let rows = healthy_rows();
    let harmed = each(&rows, |row| {
        let (mut harmed, mut probes, mut lists) = (0, 0, 0);
        for seed in 0..lives(10, 400) {
            let plan = plan(ALONE, row, seed);
            let mut life = Life::new(seed, &plan);
            life.run_until(plan.life, |life| (0..3).any(|place| is_at_0(life, place)));
            harmed += usize::from(life.t < plan.life);
            (probes, lists) = (probes + life.probes, lists + life.lists);
        }
        figure(row, "healthy shoots taken down", harmed);
        figure(row, "probes", probes);
        figure(row, "lists of nodes", lists);
        harmed
    });
    let rows = rows.iter().zip(harmed);
    let wrong: Vec<_> = rows.filter(|(_, harmed)| *harmed > 0).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn outage_is_seen_the_moment_it_can_be() {
    // From so long after the start on, and how late at most; what is slower, or fails, is not bounded,
    // only measured (limits.md). A process that starts in an outage needs a beat and the tolerance after
    // its first probe (D-54).
    let rows: Vec<[&str; 3]> = table(
        "
        outage: plain | 600 | 0.15
        grace 1 s | 600 | 0.15
        grace 4 s | 600 | 0.15
        grace 10 s | 600 | 0.15
        grace 15 s | 600 | 0.15
        clocks within 3 | 600 | 2.2
        clocks -60 | 600 | 1.7
        clocks +8 | 600 | 1.7
        clocks +60 | 600 | 1.7
        half +60 | 600 | 1.7
        our clock +60 | 600 | 1.7
        drift 1 ms a second | 600 | 1.7
        clocks +15, put back by 3 s | 600 | 8.5
        clocks +15, put back by 10 s | 600 | 8.5
        clocks +15, put back by 25 s | 600 | 8.5
        put back by 5 s | 600 | 8.5
        an hour later, put back by 3 s: clocks +15, put back by 3 s | 3900 | 8.5
        an hour later, put back by 8 s: clocks +15, put back by 8 s | 3900 | 8.5
        an hour later, drift -1 ms a second: clocks +15, drift -1 ms a second | 3900 | 8.5
        answers take 1 s | 600 | 3
        answers take 1.9 s | 600 | inf
        answers take 3 s | 600 | inf
        2 % of probes fail | 600 | inf
        5 % of probes fail | 600 | inf
        30 % of probes fail | 600 | inf
        starts at 600 s | 600 | inf
        away from 580 to 600 s | 600 | inf
        away from 640 to 643 s | 600 | inf
        starts as it begins: no initialDelay, created shoots | 0 | 11.2
        starts 20 s later: no initialDelay, created shoots | -20 | 11.2
        starts 35 s later: no initialDelay, created shoots | -35 | 11.2
        starts 100 s later: no initialDelay, created shoots | -100 | 11.2
        ",
    )
    .collect();
    let late = each(&rows, |[row, cut, _]| {
        let cut = number(cut);
        let cut = [cut, cut + if cut > 0.0 { 60.0 } else { 0.0 }];
        let new = |seed| Outage::new(seed, ALONE, row, cut, [FOR_GOOD; 2]).play("");
        let outages: Vec<_> = (0..lives(25, 400)).map(new).collect();
        print_figures(row, &outages);
        let late = outages.iter().map(Outage::late);
        late.fold((FOR_GOOD, -FOR_GOOD), |(least, most), late| {
            (least.min(late), most.max(late))
        })
    });
    let is_wrong = |([row, _, latest], (least, most)): &(&[&str; 3], (Seconds, Seconds))| {
        // Clocks that were put back are forgiven by then.
        *most > number(latest) || row.starts_with("an hour later") && *least < -1.0
    };
    let wrong: Vec<_> = rows.iter().zip(late).filter(is_wrong).collect();
    assert!(
        wrong.is_empty(),
        "later or earlier than they may be: {wrong:?}"
    );
}

#[test]
fn healthy_shoot_is_probed_rarely() {
    /// A healthy shoot's.
    const LONGEST_GAP_S: Seconds = 16.4;
    // How far each of a hundred shoots is in its longest gap after an hour, in tenths of it: they are to
    // get out of step.
    let mut tenths = [0; 10];
    for seed in 0..100 {
        let mut life = Life::new(seed, &plan(ALONE, "life of 3600 s", seed));
        life.run();
        let per_minute = life.probes as f64 / life.t * 60.0;
        assert!((1.6..4.0).contains(&per_minute), "{per_minute}");
        assert!(life.lists < 10, "the nodes do not matter: {}", life.lists);
        let machine = life.replicas[0].machine.as_ref().expect("it runs");
        let due = machine.next_probe().elapsed_since_start();
        let phase = (due.as_seconds_f64() - life.t) / LONGEST_GAP_S;
        tenths[(phase * 10.0) as usize % 10] += 1;
    }
    let is_spread = tenths.iter().all(|&count| count > 0 && count < 30);
    assert!(is_spread, "{tenths:?}");
}

#[test]
fn outage_of_two_replicas_goes_right() {
    let rows: Vec<[&str; 3]> = table(
        "
        leader lives: plain | 120 to 240 |
        leader lives, views lag: views lag 3 s | 120 to 240 |
        leader killed: plain | 120 to 240 | cut 0 to 40: kill
        leader killed, 5 % fail, views lag: 5 % of probes fail, views lag 3 s | 120 to 240 | cut 0 to 40: kill
        leader killed before the verdict: plain | 120 to 240 | cut 12 to 20: kill
        leader killed at work: plain | 120 to 240 | write 0 to 4: kill
        leader killed at work, views lag: views lag 3 s | 120 to 240 | write 0 to 4: kill
        leader hangs: plain | 120 to 240 | cut -1: hang
        leader hangs, views lag: views lag 3 s | 120 to 240 | cut -1: hang
        both restart around the cut: plain | 120 to 240 | cut -30 to 30: restart both
        both restart in the outage: plain | 120 to 240 | cut 35 to 60: restart both
        5 % of probes fail | 120 to 240 |
        5 % of writes not answered, views lag 3 s | 120 to 240 |
        alone, 20 % of writes not answered | 120 to 240 |
        blips: plain | 30 to 45 |
        blips, 5 % fail, views lag: 5 % of probes fail, views lag 3 s | 30 to 45 |
        gardenlet raises it: views lag 3 s | 120 to 240 | down 20: raise
        gardenlet raises it, leader hangs: views lag 3 s | 120 to 240 | cut -1: hang; down 20: raise
        somebody raises and unmarks it: views lag 3 s | 120 to 240 | down 20: raise and unmark
        somebody raises and unmarks it, leader hangs: views lag 3 s | 120 to 240 | cut -1: hang; down 20: raise and unmark
        somebody takes the marker away, only held down: only held down | 120 to 240 | down 20: unmark
        a controller raises it at once, again and again: plain | 120 to 240 | down 0: fight
        clocks +60 | 120 to 240 |
        ",
    )
    .collect();
    let wrong = each(&rows, |[row, silent, script]| {
        let (from, to) = silent.split_once(" to ").expect(silent);
        let silent = [number(from), number(to)];
        let new = |seed| Outage::new(seed, TWO, row, [400.0, 430.0], silent).play(script);
        let outages: Vec<_> = (0..lives(5, 100)).map(new).collect();
        print_figures(row, &outages);
        let wrong = outages.into_iter().flat_map(|one| one.life.wrong);
        let wrong = wrong.map(|wrong| format!("{row}: {wrong}"));
        wrong.collect::<Vec<_>>()
    });
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
