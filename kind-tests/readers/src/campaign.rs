//! Many inputs from one seed.

use std::env;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{Choices, GoProgram, ReaderInput};

/// The bytes of an input, more than all but a few use up.
const BYTES: usize = 4096;

/// Checks so many inputs and compares with Go what we read of them.
///
/// `DIFFERENTIAL_SEED` chooses other inputs than those of the seed 1. With `DIFFERENTIAL_SECONDS`
/// round follows round, each with the next seed, for that long; a failure names its seed, which
/// then shows it in the first round.
///
/// # Errors
/// The first input that fails, and how; or that there is no Go program to ask.
pub fn campaign<I: ReaderInput>(cases: usize) -> Result<()> {
    let setting = |name| env::var(name).ok().map(|text| text.parse()).transpose();
    let mut seed = setting("DIFFERENTIAL_SEED")?.unwrap_or(1);
    let span = Duration::from_secs(setting("DIFFERENTIAL_SECONDS")?.unwrap_or(0));
    let (begin, mut go) = (SystemTime::now(), GoProgram::start()?);
    loop {
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..cases {
            let mut bytes = vec![0; BYTES];
            random.fill_bytes(&mut bytes);
            let input = I::make(&mut Choices::new(&bytes));
            let held = input.check().and_then(|()| input.compare(&mut go));
            held.with_context(|| format!("DIFFERENTIAL_SEED={seed}: {input:#?}"))?;
        }
        // Wall-clock time is good enough to end by.
        if begin.elapsed().unwrap_or(span) >= span {
            return Ok(());
        }
        seed += 1;
    }
}
