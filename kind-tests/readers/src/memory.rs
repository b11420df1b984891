//! The annotations of a resource: replicas are never lost and 0 is never remembered (D-29 to D-33); `strconv.Atoi` for the memory,
//! `strconv.ParseBool` for ignore-scaling (D-32, D-33, rule 67).

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use prober::core::replicas::{
    IGNORE_SCALING, MELTDOWN_PROTECTION_ACTIVE, Mark, Marks, Observed, REPLICAS, Write, scale_down, scale_up,
};
use prober::core::verdict::Scope;
use serde_json::json;

use crate::{Go, Input, Source};

/// A resource with any annotations.
#[derive(Debug)]
pub struct Resource {
    replicas: u16,
    annotations: BTreeMap<String, String>,
    only_held_down: bool,
    is_scope_small: bool,
}

/// Patterns of annotations.
const ANNOTATIONS: [(&str, &str); 3] = [
    (REPLICAS, "([-+]?[0-9]{1,12}|[-+]?[0-9]{1,10}|-?[0-9]{15,20}|214748364[5-9]|[-+ _.0-9xobe]{0,8}|\\PC{0,4})"),
    (MELTDOWN_PROTECTION_ACTIVE, "(|\\PC{0,4})"),
    (IGNORE_SCALING, "((1|t|T|true|TRUE|True|0|f|F|false|FALSE|False|tRUE|yes|on| true|true )|[tTrRuUeE1]{0,4}|\\PC{0,4})"),
];

impl Input for Resource {
    fn make(source: &mut Source<'_>) -> Self {
        let mut annotations = BTreeMap::new();
        for (name, pattern) in ANNOTATIONS {
            if source.percent(50) {
                annotations.insert(name.to_owned(), source.text(pattern));
            }
        }
        let replicas = if source.percent(50) { source.any() } else { source.below(4) as u16 };
        Self { replicas, annotations, only_held_down: source.any(), is_scope_small: source.any() }
    }

    /// Down and up again gives what there was, from any start; doing either twice does nothing more.
    fn check(&self) -> Result<()> {
        let mut annotations = self.annotations.clone();
        let mut replicas = i32::from(self.replicas);
        let (before, marked) = (replicas, annotations.contains_key(MELTDOWN_PROTECTION_ACTIVE));
        let memory = self.annotations.get(REPLICAS);
        let remembered = memory.and_then(|text| text.parse::<i64>().ok()).filter(|n| (1..=0x7fff_ffff).contains(n));
        let ignored = annotations.get(IGNORE_SCALING).map(String::as_str);
        let ignored = matches!(ignored, Some("1" | "t" | "T" | "true" | "TRUE" | "True"));

        let down = scale_down(&observe(replicas, &annotations));
        apply(down.as_ref(), &mut replicas, &mut annotations);
        ensure!(scale_down(&observe(replicas, &annotations)).is_none(), "twice is once");
        if ignored {
            ensure!((replicas, annotations.get(REPLICAS)) == (before, memory), "hands off");
            return Ok(());
        }
        ensure!(replicas == 0);
        let kept = annotations.get(REPLICAS);
        let is_kept = kept.is_some_and(|text| text.parse::<i32>().is_ok_and(|count| count > 0));
        ensure!(before == 0 || is_kept, "{kept:?} is remembered");
        if marked && remembered.is_some() {
            ensure!(kept == memory, "what is remembered while held down stays");
        }

        let scope = if self.is_scope_small { Scope::HeldDown } else { Scope::All };
        let up = scale_up(&observe(replicas, &annotations), scope, self.only_held_down);
        let held_down = annotations.contains_key(MELTDOWN_PROTECTION_ACTIVE);
        apply(up.as_ref(), &mut replicas, &mut annotations);
        if !held_down && (self.only_held_down || self.is_scope_small) {
            ensure!(up.is_none(), "{up:?}");
            return Ok(());
        }
        let expected = match remembered {
            // It was above 0 and not held down: what there was counts, not an old memory.
            _ if before > 0 && !marked => i64::from(before),
            Some(remembered) => remembered,
            None if before > 0 => i64::from(before),
            None => 1,
        };
        ensure!(i64::from(replicas) == expected, "{replicas} instead of {expected}");
        let is_clean = !annotations.contains_key(REPLICAS) && !annotations.contains_key(MELTDOWN_PROTECTION_ACTIVE);
        ensure!(is_clean, "{annotations:?} is left behind");
        ensure!(scale_up(&observe(replicas, &annotations), Scope::All, false).is_none(), "twice is once");
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        if let Some(text) = self.annotations.get(REPLICAS) {
            let answer = go.ask("integer", json!(text))?.ok().and_then(|number| number.as_i64());
            let expected = answer.and_then(|number| i32::try_from(number).ok()).filter(|number| *number >= 1);
            let remembering = BTreeMap::from([(REPLICAS.to_owned(), text.clone())]);
            let write = scale_up(&observe(0, &remembering), Scope::All, false);
            let ours = write.map(|write| (write.replicas, write.fell_back));
            ensure!(ours == Some((Some(expected.unwrap_or(1)), expected.is_none())), "Go: {answer:?}, we: {ours:?}");
        }
        if let Some(text) = self.annotations.get(IGNORE_SCALING) {
            let answer = go.ask("boolean", json!(text))?.is_ok_and(|value| value == json!(true));
            let ours = Marks::of(Some(&self.annotations)).ignored;
            ensure!(answer == ours, "Go: {answer}, we: {ours}");
        }
        Ok(())
    }
}

fn observe(replicas: i32, annotations: &BTreeMap<String, String>) -> Observed {
    Observed { replicas, marks: Marks::of(Some(annotations)), ..Observed::default() }
}

fn apply(write: Option<&Write>, replicas: &mut i32, annotations: &mut BTreeMap<String, String>) {
    let Some(write) = write else { return };
    *replicas = write.replicas.unwrap_or(*replicas);
    for (key, mark) in [(REPLICAS, &write.memory), (MELTDOWN_PROTECTION_ACTIVE, &write.marker)] {
        match mark {
            Some(Mark::Set(value)) => drop(annotations.insert(key.to_owned(), value.clone())),
            Some(Mark::Remove) => drop(annotations.remove(key)),
            None => {}
        }
    }
}
