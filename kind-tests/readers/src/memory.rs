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
    memory: Option<String>,
    marker: Option<String>,
    ignore: Option<String>,
    only_held_down: bool,
    is_scope_small: bool,
}

fn integer(source: &mut Source<'_>) -> String {
    match source.below(13) {
        0..4 => source.any::<i32>().to_string(),
        4..8 => source.text("[-+]?[0-9]{1,12}"),
        8 => source.any::<i64>().to_string(),
        9 => (i64::from(i32::MAX) + source.number(-2..=2)).to_string(),
        10..12 => source.text("[-+ _.0-9xobe]{0,8}"),
        _ => source.text("\\PC{0,4}"),
    }
}

fn boolean(source: &mut Source<'_>) -> String {
    let words = "(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False|tRUE|yes|on| true|true |)";
    let pattern = source.pick(&[words, "[tTrRuUeE1]{0,4}", "\\PC{0,4}"]);
    source.text(pattern)
}

impl Input for Resource {
    fn make(source: &mut Source<'_>) -> Self {
        Self {
            replicas: if source.percent(50) { source.any() } else { source.below(4) as u16 },
            memory: source.maybe(integer),
            marker: source.maybe(|source| source.text("(|\\PC{0,4})")),
            ignore: source.maybe(boolean),
            only_held_down: source.any(),
            is_scope_small: source.any(),
        }
    }

    /// Down and up again gives what there was, from any start; doing either twice does nothing more.
    fn check(&self) -> Result<()> {
        let mut annotations = self.annotations();
        let mut replicas = i32::from(self.replicas);
        let (before, marked) = (replicas, self.marker.is_some());
        let remembered =
            self.memory.as_deref().and_then(|text| text.parse::<i64>().ok()).filter(|n| (1..=0x7fff_ffff).contains(n));
        let ignored = matches!(self.ignore.as_deref(), Some("1" | "t" | "T" | "true" | "TRUE" | "True"));

        let down = scale_down(&observe(replicas, &annotations));
        apply(down.as_ref(), &mut replicas, &mut annotations);
        ensure!(scale_down(&observe(replicas, &annotations)).is_none(), "twice is once");
        if ignored {
            ensure!((replicas, annotations.get(REPLICAS)) == (before, self.memory.as_ref()), "hands off");
            return Ok(());
        }
        ensure!(replicas == 0);
        let kept = annotations.get(REPLICAS);
        let is_kept = kept.is_some_and(|text| text.parse::<i32>().is_ok_and(|count| count > 0));
        ensure!(before == 0 || is_kept, "{kept:?} is remembered");
        if marked && remembered.is_some() {
            ensure!(kept == self.memory.as_ref(), "what is remembered while held down stays");
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
        if let Some(text) = &self.memory {
            let answer = go.ask(&json!({"integer": text}))?.ok().and_then(|number| number.as_i64());
            let expected = answer.and_then(|number| i32::try_from(number).ok()).filter(|number| *number >= 1);
            let remembering = BTreeMap::from([(REPLICAS.to_owned(), text.clone())]);
            let write = scale_up(&observe(0, &remembering), Scope::All, false);
            let ours = write.map(|write| (write.replicas, write.fell_back));
            ensure!(ours == Some((Some(expected.unwrap_or(1)), expected.is_none())), "Go: {answer:?}, we: {ours:?}");
        }
        if let Some(text) = &self.ignore {
            let answer = go.ask(&json!({"boolean": text}))?.is_ok_and(|value| value == json!(true));
            let ours = Marks::of(Some(&self.annotations())).ignored;
            ensure!(answer == ours, "Go: {answer}, we: {ours}");
        }
        Ok(())
    }
}

impl Resource {
    fn annotations(&self) -> BTreeMap<String, String> {
        let all = [(REPLICAS, &self.memory), (MELTDOWN_PROTECTION_ACTIVE, &self.marker), (IGNORE_SCALING, &self.ignore)];
        all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?))).collect()
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
