//! Many inputs from one seed, and the smallest of those that fail.

use std::env;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Error, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{Choices, GoProgram, ReaderInput};

/// The seed of a run that names none: the same inputs each time.
const SEED: u64 = 1;
/// The bytes of an input, more than all but a few use up.
const BYTES: usize = 4096;
/// How many simpler inputs are tried at most when one fails.
const ATTEMPTS: usize = 4096;

/// Checks so many inputs and compares with Go what we read of them.
///
/// `DIFFERENTIAL_SEED` chooses other inputs. With `DIFFERENTIAL_SECONDS` round follows round, each
/// with the next seed, for that long; a failure names its seed, which then shows it in the first
/// round.
///
/// # Errors
/// The smallest input found that fails, and how; or that there is no Go program to ask.
pub fn campaign<I: ReaderInput>(cases: usize) -> Result<()> {
    let first: u64 = setting("DIFFERENTIAL_SEED")?.unwrap_or(SEED);
    let span = Duration::from_secs(setting("DIFFERENTIAL_SECONDS")?.unwrap_or(0));
    let begin = SystemTime::now();
    let mut go = GoProgram::start()?;
    let mut seed = first;
    loop {
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..cases {
            let mut bytes = vec![0; BYTES];
            random.fill_bytes(&mut bytes);
            if let Err(failure) = tried::<I>(&bytes, &mut go) {
                return Err(smallest::<I>(bytes, failure, &mut go)
                    .context(format!("DIFFERENTIAL_SEED={seed}")));
            }
        }
        seed += 1;
        // Wall-clock time is good enough to end by.
        if begin.elapsed().unwrap_or(span) >= span {
            break;
        }
    }
    println!(
        "seeds {first} to {}: {} inputs, no difference",
        seed - 1,
        (seed - first) as usize * cases
    );
    Ok(())
}

fn tried<I: ReaderInput>(bytes: &[u8], go: &mut GoProgram) -> Result<()> {
    let input = I::make(&mut Choices::new(bytes));
    input
        .check()
        .and_then(|()| input.compare(go))
        .with_context(|| format!("{input:#?}"))
}

/// How the simplest input fails that is like this one: pieces of its bytes are left out or zero,
/// the larger ones first.
fn smallest<I: ReaderInput>(mut bytes: Vec<u8>, mut failure: Error, go: &mut GoProgram) -> Error {
    let (mut attempts, mut size) = (0, bytes.len());
    while size > 0 && attempts < ATTEMPTS {
        let mut at = 0;
        while at < bytes.len() && attempts < ATTEMPTS {
            let end = bytes.len().min(at + size);
            let (before, after) = (&bytes[..at], &bytes[end..]);
            let simpler = [
                [before, after].concat(),
                [before, &vec![0; end - at], after].concat(),
            ];
            at = end;
            for simpler in simpler {
                attempts += 1;
                if simpler != bytes
                    && let Err(again) = tried::<I>(&simpler, go)
                {
                    at -= bytes.len() - simpler.len();
                    (bytes, failure) = (simpler, again);
                    break;
                }
            }
        }
        size /= 2;
    }
    failure
}

fn setting<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    name: &'static str,
) -> Result<Option<T>> {
    env::var(name)
        .ok()
        .map(|text| text.parse().with_context(|| format!("{name}={text:?}")))
        .transpose()
}
