//! Which writes to a dependent are right in themselves, whatever the nodes do. Pure.

use serde_json::Value;
use testbed::gardener::{IGNORE, PROTECTED, REPLICAS};

/// A dependent, as far as the watchdog may change it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScaledDependent {
    /// spec.replicas.
    pub replicas: i64,
    /// What is remembered, as it is written.
    pub memory: Option<String>,
    /// Whether it is marked as held down.
    pub marker: bool,
    /// Whether operators want it left alone.
    pub ignored: bool,
}

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// To 0.
    Down,
    /// Back, or a marker that was left is taken away.
    Up,
    /// Held down, and carries the marker again that somebody took away.
    Marked,
    /// The marker goes because the operators want the resource left alone; right at any time.
    HandsOff,
}

impl ScaledDependent {
    /// Reads an object.
    pub fn of(object: &Value) -> Self {
        let annotation = |key: &str| object["metadata"]["annotations"][key].as_str();
        Self {
            replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
            memory: annotation(REPLICAS).map(str::to_owned),
            marker: annotation(PROTECTED).is_some(),
            ignored: annotation(IGNORE) == Some("true"),
        }
    }

    /// The remembered replicas, if they can be used (rules of D-31 to D-33).
    pub fn remembered(&self) -> Option<i64> {
        let number = self.memory.as_deref()?.parse::<i32>().ok();
        number.filter(|number| *number >= 1).map(i64::from)
    }
}

/// What the watchdog's write does.
///
/// # Errors
/// When it is none that it may ever make: what it breaks.
pub fn write_kind(before: &Value, after: &Value) -> Result<WriteKind, String> {
    if rest(before) != rest(after) {
        return Err("changes by more than replicas and its own annotations".into());
    }
    let [was, is] = [before, after].map(ScaledDependent::of);
    if was == is {
        return Err("is written without need".into());
    }
    let (remembers, memory) = (was.remembered(), was.memory.clone());
    let (kind, replicas, memory, marker) = match (was.replicas, is.replicas) {
        (replicas, _) if was.ignored => (WriteKind::HandsOff, replicas, memory, false),
        (1.., 0) if was.marker && remembers.is_some() => (WriteKind::Down, 0, memory, true),
        (1.., 0) => (WriteKind::Down, 0, Some(was.replicas.to_string()), true),
        (0, 0) => {
            let marker = was.marker || remembers.is_some();
            (WriteKind::Marked, 0, memory, marker)
        }
        (0, _) => (WriteKind::Up, remembers.unwrap_or(1), None, false),
        (replicas, _) => {
            let memory = memory.filter(|_| !was.marker);
            (WriteKind::Up, replicas, memory, false)
        }
    };
    let allowed = ScaledDependent {
        replicas,
        memory,
        marker,
        ignored: was.ignored,
    };
    let wrong = || format!("is written wrongly: {allowed:?} would be right");
    (is == allowed).then_some(kind).ok_or_else(wrong)
}

/// All of an object that the watchdog must not change. No annotations and none at all are the same.
fn rest(object: &Value) -> Value {
    let mut rest = object.clone();
    rest["metadata"]["resourceVersion"] = Value::Null;
    for key in [REPLICAS, PROTECTED] {
        rest["metadata"]["annotations"][key] = Value::Null;
    }
    rest["spec"]["replicas"] = Value::Null;
    rest
}
