//! The words by which rows name their kind of life.
//!
//! ```text
//! [short name: ]word, word 25 s, ...   each changes the plan of the words before it
//! ```

use super::Seconds;
use super::plan::{Away, Leadership, Machines, Plan, Silences};

/// A word, in which `#` is a number, and what it changes.
type Word = (&'static str, fn(&mut Plan, &[f64]));

#[rustfmt::skip]
const WORDS: &[Word] = &[
    ("plain", |_, _| ()),
    ("life of # s", |plan, n| (plan.life, plan.calm) = (n[0], -1.0)),
    ("life of # s with # s of calm", |plan, n| (plan.life, plan.calm) = (n[0], n[1])),
    ("grace # s", |plan, n| plan.grace = n[0]),
    ("interval # s", |plan, n| plan.interval = n[0]),
    ("fraction #", |plan, n| plan.fraction = n[0]),
    ("no initialDelay", |plan, _| plan.initial_delay = 0.0),
    ("levels wait", |plan, _| plan.down_delay = 10.0),
    ("stabilization", |plan, _| plan.stabilization = 20.0),
    ("only held down", |plan, _| plan.only_held_down = true),
    ("passivates", |plan, _| plan.passivates = true),
    ("many dependents", |plan, _| plan.many_dependents = true),
    ("# to # nodes", |plan, n| plan.nodes = (n[0] as usize, n[1] as usize + 1)),
    ("few nodes", |plan, _| plan.nodes = (1, 4)),
    ("beats of # s", |plan, n| (plan.beat, plan.lease_duration) = (n[0], (4.0 * n[0]) as i32)),
    ("leases of # s", |plan, n| plan.lease_duration = n[0] as i32),
    ("beats stretched # to #", |plan, n| plan.stretch = (n[0], n[1])),
    ("renewals up to # s late", |plan, n| plan.late = n[0]),
    ("clocks #", |plan, n| set_clocks(plan, 1.0, n[0])),
    ("half #", |plan, n| set_clocks(plan, 0.5, n[0])),
    ("a third #", |plan, n| set_clocks(plan, 0.33, n[0])),
    ("others #", |plan, n| plan.clocks.others = n[0]),
    ("clocks within #", |plan, n| plan.clocks.spread = n[0]),
    ("put back by # s", |plan, n| plan.clocks.step = (300.0, -n[0])),
    ("step by # at # s", |plan, n| plan.clocks.step = (n[1], n[0])),
    ("drift # ms a second", |plan, n| plan.clocks.drift = n[0] / 1000.0),
    ("our clock #", |plan, n| plan.ours = n[0]),
    ("kubelets start twice", |plan, _| plan.kubelets_start = 300.0),
    ("healthy", |plan, _| plan.silences = Silences::None),
    ("blips", |plan, _| plan.silences = Silences::Blips),
    ("some nodes spared", |plan, _| plan.spares = true),
    ("churn", |plan, _| plan.churn = true),
    ("conditions", |plan, _| plan.conditions = true),
    ("routes go in outages", |plan, _| plan.routes_go = true),
    ("Machines go", |plan, _| plan.machines = Machines::Go),
    ("Machines deleted by force", |plan, _| plan.machines = Machines::Deleted { nodes_return: false }),
    ("nodes return", |plan, _| plan.machines = Machines::Deleted { nodes_return: true }),
    ("away", |plan, _| plan.away = Away::Often),
    ("away for # s", |plan, n| plan.away = Away::Once(n[0])),
    ("away from # to # s", |plan, n| plan.away = Away::During(n[0]..n[1])),
    ("API server flaps", |plan, _| plan.away = Away::Flapping),
    ("suspended meanwhile", |plan, _| plan.freezes = true),
    ("suspended from # to # s", |plan, n| plan.suspended.push(n[0]..n[1])),
    ("slow", |plan, _| { set_answers(plan, 0.05, 1.5); plan.view_lag = 2.0; }),
    ("slowish", |plan, _| { set_answers(plan, 0.01, 0.8); plan.view_lag = 2.0; }),
    ("answers take # s", |plan, n| plan.answers = (n[0], n[0])),
    ("answers take # to # s", |plan, n| plan.answers = (n[0], n[1])),
    ("kept connections die", |plan, _| plan.hedge = 0.5),
    ("seed slow", |plan, _| (plan.seed, plan.view_lag) = ((0.1, 9.0), 5.0)),
    ("seed takes # to # s", |plan, n| plan.seed = (n[0], n[1])),
    ("views lag # s", |plan, n| plan.view_lag = n[0]),
    ("# % of probes fail", |plan, n| plan.fails = n[0] / 100.0),
    ("probes throttled", |plan, _| plan.throttles = true),
    ("# % of writes not answered", |plan, n| plan.lost = n[0] / 100.0),
    ("writes refused", |plan, _| plan.refuses = true),
    ("pods linger", |plan, _| plan.pods_linger = 40.0),
    ("restores queue", |plan, _| plan.queue = 60.0),
    ("nobody leads", |plan, _| plan.leadership = Leadership::Nobody),
    ("Go leads", |plan, _| plan.leadership = Leadership::Go),
    ("alone", |plan, _| plan.alone = true),
    ("created shoots", |plan, _| plan.fresh = true),
    ("starts at # s", |plan, n| plan.starts[0] = n[0]),
    ("standby starts at # s", |plan, n| plan.starts[1] = n[0]),
];

fn set_clocks(plan: &mut Plan, share: f64, off: Seconds) {
    (plan.clocks.share, plan.clocks.off) = (share, off);
}

fn set_answers(plan: &mut Plan, from: Seconds, to: Seconds) {
    (plan.answers, plan.seed) = ((from, to), (from, to));
}

/// The name of a row.
pub fn name(row: &str) -> &str {
    row.split(':').next().unwrap_or(row)
}

impl Plan {
    /// The plan of these rows together.
    pub fn of(rows: &[&str]) -> Self {
        let mut plan = Self::plain();
        for row in rows {
            let words = row.split_once(": ").map_or(*row, |(_, words)| words);
            let words = words.trim_start_matches("X ").split(", ");
            words.for_each(|word| plan.apply(word));
        }
        plan
    }

    fn apply(&mut self, word: &str) {
        if let Ok(mishap) = word.parse() {
            return self.mishaps.push(mishap);
        }
        let parts = word.split(' ');
        let numbers: Vec<f64> = parts.clone().filter_map(|part| part.parse().ok()).collect();
        let pattern = parts.map(|part| {
            if part.parse::<f64>().is_ok() {
                "#"
            } else {
                part
            }
        });
        let pattern = pattern.collect::<Vec<_>>().join(" ");
        let known = WORDS.iter().find(|(known, _)| *known == pattern);
        let (_, change) = known.unwrap_or_else(|| panic!("no such word: {word}"));
        change(self, &numbers);
    }
}
