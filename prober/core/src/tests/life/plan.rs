//! Kinds of lives, as data.

use std::ops::Range;

use strum::EnumString;

use super::Seconds;

/// Later than any life.
pub const FOR_GOOD: Seconds = 1e6;

/// Times in which the nodes cannot reach their API server.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Silences {
    None,
    /// For 5 to 200 s, with 2 to 200 s between.
    #[default]
    Outages,
    /// The same, with at most 15 s between.
    Blips,
    Once(Range<Seconds>),
}

/// Absences of the API server.
#[derive(Clone, Debug, Default)]
pub enum Away {
    #[default]
    Never,
    /// For up to a minute now and then.
    Often,
    /// For so long, at a random moment.
    Once(Seconds),
    During(Range<Seconds>),
}

/// Leadership of the replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leadership {
    /// One of the two, if any runs.
    #[default]
    One,
    Nobody,
    /// A replica of the Go original.
    Go,
    /// A replica that renews its Lease and does nothing.
    Hangs,
}

/// A trouble at random moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString)]
pub enum Mishap {
    /// Somebody changes replicas or annotations of a dependent, or gardenlet does.
    #[strum(serialize = "edits")]
    Edit,
    #[strum(serialize = "pauses")]
    Pause,
    #[strum(serialize = "crashes")]
    Crash,
    /// A process is suspended for up to a minute.
    #[strum(serialize = "suspensions")]
    Suspend,
    #[strum(serialize = "reloads")]
    Reload,
    /// A replica loses some of its views of the seed for up to a minute.
    #[strum(serialize = "blind to the seed")]
    Blind,
    /// A replica is shown nothing new of the seed for up to a minute, and does not notice.
    #[strum(serialize = "stale views")]
    Stale,
    /// The shoot moves to another seed for up to 100 s.
    #[strum(serialize = "the shoot moves")]
    Moves,
    /// A dependent is deleted, or created again.
    #[strum(serialize = "dependents created again")]
    Recreate,
    /// The owner record changes; with it, it is checked.
    #[strum(serialize = "owner")]
    Owner,
    #[strum(serialize = "settings")]
    Settings,
    #[strum(serialize = "options")]
    Options,
    /// The lead changes hands up to twelve times.
    #[strum(serialize = "lead flaps")]
    LeadFlaps,
}

/// Errors of the nodes' clocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// The share that is off, by how much, and by how much the others are.
    pub share: f64,
    pub off: Seconds,
    pub others: Seconds,
    /// All are off by up to so much besides.
    pub spread: Seconds,
    /// When all step, and by how much.
    pub step: (Seconds, Seconds),
    pub drift: f64,
}

impl Clocks {
    /// The error of a node's, of a number from 0 to 1 drawn for it.
    pub fn error(&self, draw: f64) -> Seconds {
        let off = if draw < self.share {
            self.off
        } else {
            self.others
        };
        off + self.spread * (2.0 * draw - 1.0)
    }

    pub fn are_off(&self) -> bool {
        self.error(0.0) != 0.0 || self.error(1.0) != 0.0
    }

    /// The further error at a moment.
    pub fn further(&self, t: Seconds) -> Seconds {
        let (stepped, by) = self.step;
        self.drift * t + if t >= stepped { by } else { 0.0 }
    }
}

/// A kind of life. Ranges are of what is drawn at random.
#[derive(Clone, Default)]
pub struct Plan {
    pub life: Seconds,
    /// For so long at the end nothing goes wrong any more.
    pub calm: Seconds,
    // What is configured.
    pub grace: Seconds,
    pub interval: Seconds,
    pub fraction: f64,
    pub initial_delay: Seconds,
    pub down_delay: Seconds,
    pub stabilization: Seconds,
    pub only_held_down: bool,
    /// Five dependents with levels, delays and timeouts at random.
    pub many_dependents: bool,
    // The nodes.
    pub nodes: (usize, usize),
    pub beat: Seconds,
    /// Beats are so many times as long.
    pub stretch: (f64, f64),
    /// Renewals arrive so much late.
    pub late: Seconds,
    pub lease_duration: i32,
    pub clocks: Clocks,
    pub silences: Silences,
    /// Three of ten are spared by silences.
    pub spares: bool,
    pub churn: bool,
    pub conditions: bool,
    /// The first so many nodes never count.
    pub excluded: usize,
    /// In outages a controller of the seed finds the routes of all nodes gone, which excludes them.
    pub routes_go: bool,
    /// Machines are gone for some time, most of them at once.
    pub machines_go: bool,
    /// The API server is away for everyone.
    pub away: Away,
    // Answers of the shoot and of the seed.
    pub answers: (Seconds, Seconds),
    pub seed: (Seconds, Seconds),
    pub view_lag: Seconds,
    /// Shares of probes that fail, and of writes without an answer.
    pub fails: f64,
    pub throttles: bool,
    pub lost: f64,
    /// The seed refuses the writes of kube-controller-manager in every other 100 s.
    pub refuses: bool,
    pub pods_linger: Seconds,
    /// The longest that a restore waits for its permit to write, beside those of other shoots.
    pub queue: Seconds,
    // The replicas.
    pub leadership: Leadership,
    /// When they start.
    pub starts: [Seconds; 2],
    pub alone: bool,
    /// The shoot was created just before each start.
    pub fresh: bool,
    /// Error of their own wall clocks.
    pub ours: Seconds,
    /// Times in which they are suspended; and if they are while the API server is away.
    pub suspended: Vec<Range<Seconds>>,
    pub freezes: bool,
    pub mishaps: Vec<Mishap>,
}

impl Plan {
    /// Outages, Gardener's settings, kubelets with exact clocks, and nothing else.
    pub fn plain() -> Self {
        Self {
            life: 2400.0,
            calm: 500.0,
            grace: 40.0,
            interval: 30.0,
            fraction: 0.6,
            initial_delay: 30.0,
            nodes: (2, 9),
            beat: 10.0,
            stretch: (1.0, 1.04),
            lease_duration: 40,
            answers: (0.01, 0.05),
            seed: (0.005, 0.05),
            view_lag: 0.3,
            pods_linger: 6.0,
            starts: [0.0, 0.01],
            ..Self::default()
        }
    }

    pub fn calm_from(&self) -> Seconds {
        self.life - self.calm
    }

    pub fn has(&self, mishap: Mishap) -> bool {
        self.mishaps.contains(&mishap)
    }

    /// Age from which on a lease is expired (D-79).
    pub fn threshold(&self) -> Seconds {
        let beat = f64::from(self.lease_duration) / 4.0;
        if beat * 2.0 > self.grace {
            beat * 1.5
        } else {
            self.grace * 0.75
        }
    }
}
