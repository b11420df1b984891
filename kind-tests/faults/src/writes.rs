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
            ignored: matches!(
                annotation(IGNORE),
                Some("1" | "t" | "T" | "true" | "TRUE" | "True")
            ),
        }
    }

    /// The same with these replicas and this memory.
    fn with(&self, replicas: i64, memory: Option<String>) -> Self {
        Self {
            replicas,
            memory,
            ..self.clone()
        }
    }

    /// The same with a marker, or without.
    fn marked(&self, marker: bool) -> Self {
        Self {
            marker,
            ..self.clone()
        }
    }

    /// The remembered replicas, if they can be used (rules of D-31 to D-33).
    pub fn remembered(&self) -> Option<i64> {
        let text = self.memory.as_deref()?;
        let digits = text.strip_prefix('+').unwrap_or(text);
        let number = digits
            .bytes()
            .all(|digit| digit.is_ascii_digit())
            .then(|| digits.parse::<i64>().ok())?;
        number.filter(|number| (1..=i64::from(i32::MAX)).contains(number))
    }
}

impl std::fmt::Display for ScaledDependent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.replicas)?;
        if let Some(memory) = &self.memory {
            write!(out, " memory {memory:?}")?;
        }
        out.write_str(if self.marker { " held" } else { "" })?;
        out.write_str(if self.ignored { " ignored" } else { "" })
    }
}

/// What the watchdog's write does.
///
/// # Errors
/// When it is none that it may ever make: what it breaks.
pub fn write_kind(before: &Value, after: &Value) -> Result<WriteKind, String> {
    if rest(before) != rest(after) {
        return Err("it changes more than replicas and its own annotations".into());
    }
    let [was, is] = [before, after].map(ScaledDependent::of);
    let (allowed, kind, otherwise) = match (was.replicas, is.replicas) {
        _ if was.ignored && was.marker => (
            was.marked(false),
            WriteKind::HandsOff,
            "it touches what is to be ignored, and not its marker alone",
        ),
        _ if was.ignored => return Err("it touches what is to be ignored".into()),
        (1.., 0) => {
            let held = was.marker && was.remembered().is_some();
            let kept = was.memory.clone().filter(|_| held);
            let memory = kept.unwrap_or_else(|| was.replicas.to_string());
            (
                was.with(0, Some(memory)).marked(true),
                WriteKind::Down,
                "the memory is lost, wrong or overwritten, or the marker is missing",
            )
        }
        (0, 1..) => (
            was.with(was.remembered().unwrap_or(1), None).marked(false),
            WriteKind::Up,
            "it does not restore what is remembered, or leaves annotations",
        ),
        (1.., 1..) if was.marker => (
            was.with(was.replicas, None).marked(false),
            WriteKind::Up,
            "more than the marker and the memory are taken away",
        ),
        (0, 0) if !was.marker && was.remembered().is_some() => (
            was.marked(true),
            WriteKind::Marked,
            "more than the marker is written back",
        ),
        _ => return Err("there was nothing to write".into()),
    };
    (is == allowed).then_some(kind).ok_or(otherwise.into())
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
