//! The annotations of a resource: `strconv.Atoi` for the memory, `strconv.ParseBool` for
//! ignore-scaling (D-32, D-33, rule 67).

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use prober_core::replicas::{IGNORE_SCALING, Marks, Observed, REPLICAS, scale_up};
use prober_core::verdict::Scope;
use serde_json::json;

use crate::{Choices, GoProgram, ReaderInput};

/// What stands in the two annotations.
#[derive(Debug)]
pub struct Annotations {
    memory: String,
    ignore: String,
}

const MEMORY: &str = "([-+]?[0-9]{1,12}|[-+]?[0-9]{1,10}|-?[0-9]{15,20}|214748364[5-9]|[-+ _.0-9xobe]{0,8}|\\PC{0,4})";
const IGNORE: &str = "((1|t|T|true|TRUE|True|0|f|F|false|FALSE|False|tRUE|yes|on| true|true )|[tTrRuUeE1]{0,4}|\\PC{0,4})";

impl ReaderInput for Annotations {
    fn make(source: &mut Choices<'_>) -> Self {
        Self {
            memory: source.text(MEMORY),
            ignore: source.text(IGNORE),
        }
    }

    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        let answer = go
            .ask("integer", json!(self.memory))?
            .ok()
            .and_then(|number| number.as_i64());
        let expected = answer
            .and_then(|number| i32::try_from(number).ok())
            .filter(|number| *number >= 1);
        let remembering = Observed {
            marks: marks(REPLICAS, &self.memory),
            ..Observed::default()
        };
        let write = scale_up(&remembering, Scope::All, false);
        let ours = write.map(|write| (write.replicas, write.used_default_replicas));
        ensure!(
            ours == Some((Some(expected.unwrap_or(1)), expected.is_none())),
            "Go: {answer:?}, we: {ours:?}"
        );

        let answer = go
            .ask("boolean", json!(self.ignore))?
            .is_ok_and(|value| value == json!(true));
        let ours = marks(IGNORE_SCALING, &self.ignore).ignored;
        ensure!(answer == ours, "Go: {answer}, we: {ours}");
        Ok(())
    }
}

/// What one annotation says.
fn marks(name: &str, value: &str) -> Marks {
    Marks::of(Some(&BTreeMap::from([(name.to_owned(), value.to_owned())])))
}
