//! Kinds of lives, as data.

use crate::tests::simulation::{Seconds, Skew};

/// Times in which the nodes cannot reach their API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silences {
    None,
    /// For 5 to 200 s, with 2 to 200 s between.
    Outages,
    /// The same, with at most 15 s between.
    Blips,
}

/// Fate of the Machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    Stay,
    /// They are gone for some time, most of them at once.
    Go,
    /// They are deleted by force in an outage, which may last for good.
    Deleted {
        nodes_return: bool,
    },
}

/// Leadership of the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// One of the two, if any runs.
    One,
    Nobody,
    /// A replica of the Go original.
    Go,
}

/// A trouble at random moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// Somebody changes replicas or annotations of a dependent, or gardenlet does.
    Edit,
    Pause,
    Crash,
    /// A process is suspended for up to a minute.
    Suspend,
    Reload,
    /// A replica loses its view of the seed for up to a minute.
    BlindToSeed,
    /// The Clusters alone are not seen for up to a minute.
    BlindToClusters,
    /// The namespaces alone, which say whether the shoot is paused.
    BlindToNamespaces,
    /// A replica is shown nothing new of the seed for up to a minute, and does not notice.
    Stale,
    /// The shoot moves to another seed for up to 100 s.
    Moves,
    /// A dependent is deleted, or created again.
    Recreate,
    /// The owner record changes; with it, it is checked.
    Owner,
    Settings,
    Options,
    /// The lead changes hands up to twelve times.
    LeadFlaps,
}

/// A kind of life. Ranges are of what is drawn at random.
#[derive(Clone, Copy)]
pub struct ChaosPlan {
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
    pub passivates: bool,
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
    /// Errors of their clocks.
    pub skew: Skew,
    pub silences: Silences,
    /// Three of ten are spared by silences.
    pub spares: bool,
    pub churn: bool,
    pub conditions: bool,
    /// In outages a controller of the seed finds the routes of all nodes gone, which excludes them.
    pub routes_go: bool,
    pub machines: Machines,
    /// The API server is away for everyone for up to a minute now and then.
    pub away: bool,
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
    pub alone: bool,
    /// The shoot was created just before each start.
    pub fresh: bool,
    pub mishaps: &'static [Mishap],
}

impl ChaosPlan {
    pub const fn calm_from(&self) -> Seconds {
        self.life - self.calm
    }

    pub fn has(&self, mishap: Mishap) -> bool {
        self.mishaps.contains(&mishap)
    }

    pub fn is_skewed(&self) -> bool {
        (self.skew)(0.0) != 0.0 || (self.skew)(1.0) != 0.0
    }
}
