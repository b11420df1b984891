//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How long faults go on between two rests.
const ROUND: Duration = Duration::from_secs(75);

pub const USAGE: &str = "\
usage: soak PATH_TO_dependency-watchdog [--duration=10m] [--seed=NUMBER] [--shoots=50] [--real=true] [--rounds=NUMBER] [--sabotage=NAME]

  --duration  how long faults go on: seconds, minutes or hours (90s, 10m, 2h);
              Ctrl-C ends them early, with all that belongs to the end
  --seed      the same seed makes the same stories; chosen and printed when it is not given
  --shoots    shoots whose API servers are in memory
  --real      whether there is also one with a real kube-apiserver and kube-controller-manager; needs Go
  --rounds    in so many pieces, with a rest after each; one in 75 s when it is not given
  --sabotage  shows that the oracle bites: the soak itself does something wrong and must end with an error;
              scale-down, away, restore, leaderless, memory, deletion, sleep or leak";

/// A wrong thing that the soak does itself, in the watchdog's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Takes the controllers of a healthy shoot down.
    ScaleDown,
    /// The same when its API server was away, for its nodes too, and is just back.
    Away,
    /// Restores a shoot in mid-outage.
    Restore,
    /// Restores without the lead what carries no marker.
    Leaderless,
    /// Remembers 0.
    Memory,
    /// Deletes a pod that does not crash.
    Deletion,
    /// Holds the probers up in an outage, without a word to the oracle.
    Sleep,
    /// Lets the agents' connections grow in number; it takes two rounds at least to be seen.
    Leak,
}

/// What the command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub binary: PathBuf,
    pub duration: Duration,
    pub seed: u64,
    pub shoots: usize,
    pub real: bool,
    /// How many rounds of faults there are, each followed by rest.
    pub rounds: u32,
    pub sabotage: Option<Sabotage>,
}

impl Options {
    /// Reads the words behind the program's name.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut words = words.into_iter();
        let binary = PathBuf::from(words.next().context("the watchdog's path is missing")?);
        let (duration, seed) = (Duration::from_secs(600), rand::random::<u32>().into());
        let mut options = Self { binary, duration, seed, shoots: 50, real: true, rounds: 0, sabotage: None };
        for word in words {
            let (name, value) = word.split_once('=').with_context(|| format!("{word}: expected --name=value"))?;
            match name {
                "--duration" => options.duration = duration_of(value)?,
                "--seed" => options.seed = value.parse().with_context(|| word.clone())?,
                "--shoots" => options.shoots = value.parse().with_context(|| word.clone())?,
                "--real" => options.real = value.parse().with_context(|| word.clone())?,
                "--rounds" => options.rounds = value.parse().with_context(|| word.clone())?,
                "--sabotage" => {
                    options.sabotage = Some(match value {
                        "scale-down" => Sabotage::ScaleDown,
                        "away" => Sabotage::Away,
                        "restore" => Sabotage::Restore,
                        "leaderless" => Sabotage::Leaderless,
                        "memory" => Sabotage::Memory,
                        "deletion" => Sabotage::Deletion,
                        "sleep" => Sabotage::Sleep,
                        "leak" => Sabotage::Leak,
                        _ => bail!("{word}: no such sabotage"),
                    });
                }
                _ => bail!("{name}: no such option"),
            }
        }
        if options.shoots == 0 {
            bail!("--shoots: at least 1");
        }
        if options.rounds == 0 {
            options.rounds = u32::try_from((options.duration.as_secs() / ROUND.as_secs()).max(1)).unwrap_or(u32::MAX);
        }
        Ok(options)
    }
}

/// `90s`, `10m`, `2h`.
fn duration_of(text: &str) -> Result<Duration> {
    let expected = || format!("{text}: expected a duration like 90s, 10m or 2h");
    let seconds = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        _ => bail!(expected()),
    };
    let number: u64 = text[..text.len() - 1].parse().with_context(expected)?;
    Ok(Duration::from_secs(number * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Options> {
        Options::read(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn options_are_read() {
        let options =
            read(&["dwd", "--duration=2h", "--seed=7", "--shoots=3", "--real=false", "--rounds=4", "--sabotage=memory"]).unwrap();
        let expected = Options {
            binary: "dwd".into(),
            duration: Duration::from_secs(7200),
            seed: 7,
            shoots: 3,
            real: false,
            rounds: 4,
            sabotage: Some(Sabotage::Memory),
        };
        assert_eq!(options, expected);
        assert_eq!((read(&["dwd"]).unwrap().duration, read(&["dwd"]).unwrap().rounds), (Duration::from_secs(600), 8));
        assert_eq!(read(&["dwd", "--duration=18s"]).unwrap().rounds, 1);
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [
            &[][..],
            &["dwd", "--duration=10"],
            &["dwd", "--duration=m"],
            &["dwd", "--shoots=0"],
            &["dwd", "fast"],
            &["dwd", "--x=1"],
        ] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }
}
