//! A benchmark with random numbers that can be repeated, on control planes of its own.

use anyhow::{Result, ensure};
use rand::RngExt;
use testbed::{Bed, scenario};

use crate::report::progress;

/// Runs a benchmark with this seed, or with one that is drawn.
pub fn seeded<F>(seed: Option<u64>, benchmark: impl FnOnce(&'static Bed, u64) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let seed = seed.unwrap_or_else(|| rand::rng().random());
    progress(format!("seed {seed}: repeat with --seed {seed}"));
    scenario(async move |bed| {
        ensure!(!bed.is_given(), "control planes of its own are needed: unset SEED_KUBECONFIG and SHOOT_KUBECONFIG");
        benchmark(bed, seed).await
    })
}
