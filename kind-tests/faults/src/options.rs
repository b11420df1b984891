//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// Random faults against the real watchdog, judged by an independent oracle
#[derive(Clone, Debug, Parser)]
pub struct SoakOptions {
    /// The dependency-watchdog under test
    pub binary: PathBuf,
    /// How long faults go on: seconds, minutes or hours (90s, 10m, 2h)
    #[arg(long, default_value = "10m", value_parser = duration_of)]
    pub duration: Duration,
    /// The same seed makes the same stories; chosen and printed when it is not given
    #[arg(long, default_value_t = rand::random::<u32>().into(), hide_default_value = true)]
    pub seed: u64,
    /// Shoots whose API servers are in memory
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub shoots: u16,
    /// In so many pieces, each followed by an idle time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
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
