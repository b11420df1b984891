//! The words by which rows name their kind of life.
//!
//! ```text
//! [short name: ]word, word 25 s, ...   each changes the plan of the words before it
//! ```

use super::plan::{Away, Leadership, Plan, Silences};

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
            plan.add(words);
        }
        plan
    }

    fn add(&mut self, words: &str) {
        words.split(", ").for_each(|word| self.add_word(word));
    }

    /// Applies a word, in which `#` stands for a number: `n`, and then `m`.
    #[rustfmt::skip]
    fn add_word(&mut self, word: &str) {
        let mut numbers = vec![];
        let words = word.split(' ').map(|part| part.parse().map_or(part, |number| {
            numbers.push(number);
            "#"
        }));
        let words = words.collect::<Vec<_>>().join(" ");
        numbers.extend([0.0; 2]);
        let (n, m) = (numbers[0], numbers[1]);
        match words.as_str() {
            "plain" => {}
            "life of # s" => (self.life, self.calm) = (n, -1.0),
            "life of # s with # s of calm" => (self.life, self.calm) = (n, m),
            "grace # s" => self.grace = n,
            "interval # s" => self.interval = n,
            "fraction #" => self.fraction = n,
            "no initialDelay" => self.initial_delay = 0.0,
            "levels wait" => self.down_delay = 10.0,
            "stabilization" => self.stabilization = 20.0,
            "only held down" => self.only_held_down = true,
            "many dependents" => self.many_dependents = true,
            "# to # nodes" => self.nodes = (n as usize, m as usize + 1),
            "few nodes" => self.nodes = (1, 4),
            "beats of # s" => (self.beat, self.lease_duration) = (n, (4.0 * n) as i32),
            "leases of # s" => self.lease_duration = n as i32,
            "beats stretched # to #" => self.stretch = (n, m),
            "renewals up to # s late" => self.late = n,
            "clocks #" => (self.clocks.share, self.clocks.off) = (1.0, n),
            "half #" => (self.clocks.share, self.clocks.off) = (0.5, n),
            "a third #" => (self.clocks.share, self.clocks.off) = (0.33, n),
            "others #" => self.clocks.others = n,
            "clocks within #" => self.clocks.spread = n,
            "put back by # s" => self.clocks.step = (300.0, -n),
            "step by # at # s" => self.clocks.step = (m, n),
            "drift # ms a second" => self.clocks.drift = n / 1000.0,
            "our clock #" => self.ours = n,
            "healthy" => self.silences = Silences::None,
            "blips" => self.silences = Silences::Blips,
            "some nodes spared" => self.spares = true,
            "churn" => self.churn = true,
            "conditions" => self.conditions = true,
            "routes go in outages" => self.routes_go = true,
            "Machines go" => self.machines_go = true,
            "away" => self.away = Away::Often,
            "away for # s" => self.away = Away::Once(n),
            "away from # to # s" => self.away = Away::During(n..m),
            "suspended meanwhile" => self.freezes = true,
            "suspended from # to # s" => self.suspended.push(n..m),
            "slow" => self.add("answers take 0.05 to 1.5 s, seed takes 0.05 to 1.5 s, views lag 2 s"),
            "slowish" => self.add("answers take 0.01 to 0.8 s, seed takes 0.01 to 0.8 s, views lag 2 s"),
            "answers take # s" => self.answers = (n, n),
            "answers take # to # s" => self.answers = (n, m),
            "seed slow" => self.add("seed takes 0.1 to 9 s, views lag 5 s"),
            "seed takes # to # s" => self.seed = (n, m),
            "views lag # s" => self.view_lag = n,
            "# % of probes fail" => self.fails = n / 100.0,
            "probes throttled" => self.throttles = true,
            "# % of writes not answered" => self.lost = n / 100.0,
            "writes refused" => self.refuses = true,
            "pods linger" => self.pods_linger = 40.0,
            "restores queue" => self.queue = 60.0,
            "nobody leads" => self.leadership = Leadership::Nobody,
            "Go leads" => self.leadership = Leadership::Go,
            "alone" => self.alone = true,
            "created shoots" => self.fresh = true,
            "starts at # s" => self.starts[0] = n,
            "standby starts at # s" => self.starts[1] = n,
            _ => {
                let mishap = word.parse();
                self.mishaps
                    .push(mishap.unwrap_or_else(|_| panic!("no such word: {word}")));
            }
        }
    }
}
