//! What holds of both agents' config files.

use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use common::document::{Loaded, Problems};

use crate::is_one_line;

/// Far more than the largest file needs, even instrumented on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads a file: the config, or none if it is refused, in one readable line for each problem.
pub fn read<C>(parse: impl FnOnce() -> Result<Loaded<C>, Problems>) -> Result<Option<C>> {
    // Wall-clock time is good enough for this.
    let begin = SystemTime::now();
    let outcome = parse();
    let took = begin.elapsed().unwrap_or_default();
    ensure!(took < PATIENCE, "it took {took:?}");
    let (config, said) = match outcome {
        Ok(Loaded { config, warnings }) => (Some(config), warnings),
        Err(problems) => {
            ensure!(!problems.is_empty(), "refused without a word");
            (None, problems)
        }
    };
    said.iter().try_for_each(|sentence| is_one_line(sentence))?;
    Ok(config)
}
