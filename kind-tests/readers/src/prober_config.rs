//! The prober's file.

use std::sync::LazyLock;

use anyhow::{Error, Result, ensure};
use prober::config::{parse, to_json};
use serde_json::Value;

use crate::config::read;
use crate::yaml::{file, template};
use crate::{Choices, ReaderInput, in_yaml};

/// A file.
#[derive(Debug)]
pub struct ProberFile(String);

static TEMPLATE: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/prober_config.yaml")));

impl ReaderInput for ProberFile {
    fn make(source: &mut Choices<'_>) -> Self {
        Self(file(source, &TEMPLATE))
    }

    /// What is taken says the same when it is written out.
    fn check(&self) -> Result<()> {
        let Some(config) = read(|| parse(&self.0))? else {
            return Ok(());
        };
        if let Some(check) = &config.owner_check {
            ensure!(!check.timeout.is_zero() && check.timeout < check.interval);
            ensure!(check.interval <= check.tolerance);
        }
        let again = parse(&in_yaml(&to_json(&config)));
        let again = again.map_err(|problems| Error::msg(problems.join("; ")))?;
        ensure!(again.config == config, "{again:?} from {:?}", self.0);
        Ok(())
    }
}
