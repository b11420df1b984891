//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// How long faults go on until everything must become idle.
const ROUND: Duration = Duration::from_secs(75);

/// A wrong thing that the soak does itself, in the watchdog's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
    /// Takes the controllers of a healthy shoot down
    ScaleDown,
    /// The same when its API server was away, for its nodes too, and is just back
    Away,
    /// Holds the probers up in an outage, without a word to the oracle
    Sleep,
    /// Restores a shoot in mid-outage
    Restore,
    /// Restores without the lead what carries no marker
    Leaderless,
    /// Remembers 0
    Memory,
    /// Deletes a pod that does not crash
    Deletion,
    /// Takes a controller down in an outage that somebody has just raised: the leader ascribes it to
    /// others
    Record,
    /// Lets the agents' connections grow in number; it takes two rounds at least to be seen
    Leak,
}

/// Random faults against the real watchdog, judged by an independent oracle
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
pub struct SoakOptions {
    /// The dependency-watchdog under test
    pub binary: PathBuf,
    /// How long faults go on: seconds, minutes or hours (90s, 10m, 2h); Ctrl-C ends them early,
    /// with all that belongs to the end
    #[arg(long, default_value = "10m", value_parser = duration_of)]
    pub duration: Duration,
    /// The same seed makes the same stories; chosen and printed when it is not given
    #[arg(long, default_value_t = rand::random::<u32>().into(), hide_default_value = true)]
    pub seed: u64,
    /// Shoots whose API servers are in memory
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub shoots: u16,
    /// In so many pieces, each followed by an idle time; one in 75 s when it is not given
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Shows that the oracle bites: the soak itself does something wrong and must end with an error
    #[arg(long)]
    pub sabotage: Option<Sabotage>,
}

impl SoakOptions {
    /// How many rounds of faults there are, each followed by an idle time.
    pub fn rounds(&self) -> u32 {
        let usual = (self.duration.as_secs() / ROUND.as_secs()).max(1);
        self.rounds
            .unwrap_or_else(|| u32::try_from(usual).unwrap_or(u32::MAX))
    }
}

/// `90s`, `10m`, `2h`.
fn duration_of(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3600)];
    let read = units
        .iter()
        .find_map(|(unit, seconds)| Some(text.strip_suffix(*unit)?.parse::<u64>().ok()? * seconds));
    read.map(Duration::from_secs)
        .ok_or_else(|| "expected a duration like 90s, 10m or 2h".to_owned())
}
