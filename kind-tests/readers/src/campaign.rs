//! Many inputs from one seed, and the smallest of those that fail.

use std::env;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Error, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{Choices, GoProgram, ReaderInput};

/// The seed of a run that names none: the same inputs each time.
const SEED: u64 = 1;
/// The bytes of an input, more than all but a few use up.
const BYTES: usize = 4096;

/// Checks so many inputs and compares with Go what we read of them.
///
/// `DIFFERENTIAL_SEED` chooses other inputs. With `DIFFERENTIAL_SECONDS` round follows round, each
/// with the next seed, for that long; a failure names its seed, which then shows it in the first
/// round.
///
/// # Errors
/// The smallest input found that fails, and how; or that there is no Go program to ask.
pub fn campaign<I: ReaderInput>(cases: usize) -> Result<()> {
    let first = setting("DIFFERENTIAL_SEED", SEED)?;
    let span = Duration::from_secs(setting("DIFFERENTIAL_SECONDS", 0)?);
    let (begin, mut go, mut seed) = (SystemTime::now(), GoProgram::start()?, first);
    loop {
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..cases {
            let mut bytes = vec![0; BYTES];
            random.fill_bytes(&mut bytes);
            if let Err(failure) = tried::<I>(&bytes, &mut go) {
                let failure = smallest::<I>(bytes, failure, &mut go);
                return Err(failure.context(format!("DIFFERENTIAL_SEED={seed}")));
            }
        }
        // Wall-clock time is good enough to end by.
        if begin.elapsed().unwrap_or(span) >= span {
            break;
        }
        seed += 1;
    }
    let count = (seed - first + 1) as usize * cases;
    println!("seeds {first} to {seed}: {count} inputs, no difference");
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
    let mut size = bytes.len();
    while size > 0 {
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes.len().min(at + size);
            let (mut without, mut zeroed) = (bytes.clone(), bytes.clone());
            without.drain(at..end);
            zeroed[at..end].fill(0);
            let mut simpler = [without, zeroed].into_iter();
            let simpler = simpler.find_map(|simpler| {
                let again = tried::<I>(&simpler, go).err()?;
                (simpler != bytes).then_some((simpler, again))
            });
            at = end;
            if let Some((simpler, again)) = simpler {
                at -= bytes.len() - simpler.len();
                (bytes, failure) = (simpler, again);
            }
        }
        size /= 2;
    }
    failure
}

fn setting(name: &'static str, otherwise: u64) -> Result<u64> {
    let given = env::var(name).ok();
    let given = given.map(|text| text.parse().with_context(|| format!("{name}={text:?}")));
    given.unwrap_or(Ok(otherwise))
}
