//! The config files of both agents.

use std::time::{Duration, SystemTime};

use anyhow::{Error, Result, ensure};
use common::document::{Loaded, Problems};
use prober::config::to_json;

use crate::is_one_line;

/// Far more than the largest file needs, even instrumented on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is taken says the same when it is written out.
pub fn prober(bytes: &[u8]) -> Result<()> {
    let Some(config) = read(bytes, prober::config::parse)? else {
        return Ok(());
    };
    let written = to_json(&config).to_string();
    let again = prober::config::parse(&written);
    let again = again.map_err(|problems| Error::msg(problems.join("; ")))?;
    ensure!(again.config == config, "{written}");
    Ok(())
}

pub fn weeder(bytes: &[u8]) -> Result<()> {
    read(bytes, weeder::config::parse).map(drop)
}

/// Returns the config; `None` if it is refused, in one readable line for each problem.
fn read<C>(
    bytes: &[u8],
    parse: impl FnOnce(&str) -> Result<Loaded<C>, Problems>,
) -> Result<Option<C>> {
    let text = String::from_utf8_lossy(bytes);
    // Wall-clock time is good enough for this.
    let begin = SystemTime::now();
    let parsed = parse(&text);
    let took = begin.elapsed().unwrap_or_default();
    ensure!(took < PATIENCE, "it took {took:?}");
    let (config, said) = match parsed {
        Ok(Loaded { config, warnings }) => (Some(config), warnings),
        Err(problems) => {
            ensure!(!problems.is_empty(), "refused without a word");
            (None, problems)
        }
    };
    said.iter().try_for_each(|sentence| is_one_line(sentence))?;
    Ok(config)
}
