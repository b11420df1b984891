//! Which writes to a dependent are right in themselves, whatever the nodes do. Pure.

use serde_json::Value;
use testbed::gardener::{IGNORE, PROTECTED, REPLICAS};

/// A dependent, as far as the watchdog may change it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScaledDependent {
    /// spec.replicas.
    pub replicas: i64,
    /// status.readyReplicas.
    pub ready: i64,
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
            ready: object["status"]["readyReplicas"].as_i64().unwrap_or(0),
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

/// The same for a kind that is scaled by a request of its own, which comes after the annotations on
/// the way down and before them on the way up.
///
/// # Errors
/// When it is none that it may ever make: what it breaks.
pub fn write_kind_in_two(before: &Value, after: &Value) -> Result<WriteKind, String> {
    let [was, is] = [before, after].map(ScaledDependent::of);
    let announced = was
        .with(was.replicas, Some(was.replicas.to_string()))
        .marked(true);
    let raised = was.with(was.remembered().unwrap_or(1), was.memory.clone());
    match was.replicas {
        _ if was.ignored || rest(before) != rest(after) => write_kind(before, after),
        1.. if !(was.marker && was.remembered().is_some()) && is == announced => {
            Ok(WriteKind::Down)
        }
        0 if is == raised => Ok(WriteKind::Up),
        _ => write_kind(before, after),
    }
}

/// All of an object that the watchdog must not change. No annotations and none at all are the same.
fn rest(object: &Value) -> Value {
    let mut rest = object.clone();
    for key in ["resourceVersion", "generation", "managedFields"] {
        rest["metadata"][key] = Value::Null;
    }
    for key in [REPLICAS, PROTECTED] {
        rest["metadata"]["annotations"][key] = Value::Null;
    }
    rest["spec"]["replicas"] = Value::Null;
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::WriteKind::{Down, HandsOff, Marked, Up};
    use super::*;

    /// An object by its replicas and, behind them, its memory, `held` and `ignored`; `-`: it has no
    /// annotations at all.
    fn object(state: &str) -> Value {
        let mut object = json!({"metadata": {"name": "x", "resourceVersion": "1", "annotations": {}}, "spec": {"paused": false}});
        for (place, word) in state.split(' ').enumerate() {
            let annotations = &mut object["metadata"]["annotations"];
            match word {
                _ if place == 0 => object["spec"]["replicas"] = word.parse().expect("replicas"),
                "held" => annotations[PROTECTED] = json!(""),
                "ignored" => annotations[IGNORE] = json!("true"),
                "-" => *annotations = Value::Null,
                memory => annotations[REPLICAS] = json!(memory),
            }
        }
        object
    }

    #[test]
    fn each_write_is_of_a_kind_or_wrong() {
        for (what, before, after, expected) in [
            ("down, with what was there", "3", "0 3 held", Some(Down)),
            ("down, from no annotations", "3 -", "0 3 held", Some(Down)),
            ("up, to no annotations", "0 3 held", "3 -", Some(Up)),
            ("down again", "3 3 held", "0 3 held", Some(Down)),
            ("a held memory stays", "1 3 held", "0 3 held", Some(Down)),
            (
                "an invalid one does not",
                "1 x held",
                "0 1 held",
                Some(Down),
            ),
            ("a held memory is overwritten", "1 3 held", "0 1 held", None),
            ("0 is remembered of what runs", "3", "0 0 held", None),
            ("and of what is held", "0 3 held", "0 0 held", None),
            ("down without a marker", "3", "0 3", None),
            ("up, found at 0", "0", "1", Some(Up)),
            ("up, to something else", "0 3 held", "1", None),
            ("up, and the memory is left", "0 3 held", "3 3", None),
            ("a marker that was left goes", "2 held", "2", Some(Up)),
            ("the marker comes back", "0 3", "0 3 held", Some(Marked)),
            ("with another memory", "0 3", "0 1 held", None),
            ("a marker where nobody holds it", "0", "0 held", None),
            (
                "the marker goes from what is ignored",
                "0 held ignored",
                "0 ignored",
                Some(HandsOff),
            ),
            (
                "what is ignored goes down",
                "2 ignored",
                "0 held ignored",
                None,
            ),
            ("nothing is written", "3", "3", None),
            (
                "one request is enough, and there are two",
                "3",
                "3 3 held",
                None,
            ),
            ("a memory with a sign", "0 +2 held", "2", Some(Up)),
            ("what is no memory", "0 foo held", "1", Some(Up)),
            ("nor 0", "0 0 held", "1", Some(Up)),
            ("nor less", "0 -1 held", "1", Some(Up)),
            ("nor nothing", "0  held", "1", Some(Up)),
            ("nor too much", "0 2147483648 held", "1", Some(Up)),
        ] {
            let found = write_kind(&object(before), &object(after)).ok();
            assert_eq!(found, expected, "{what}");
        }
        let mut paused = object("0 3 held");
        paused["spec"]["paused"] = json!(true);
        assert!(write_kind(&object("3"), &paused).is_err());
    }

    #[test]
    fn what_takes_two_requests_is_announced_before_it_goes_down_and_forgotten_after_it_is_up() {
        for (before, after, expected) in [
            ("3", "3 3 held", Some(Down)),
            ("3 3 held", "0 3 held", Some(Down)),
            ("0 3 held", "3 3 held", Some(Up)),
            ("3 3 held", "3", Some(Up)),
            ("3", "0", None),
            ("3", "3 2 held", None),
            ("0 3 held", "2 3 held", None),
            ("3 3 held", "3 3 held", None),
        ] {
            let found = write_kind_in_two(&object(before), &object(after)).ok();
            assert_eq!(found, expected, "{before} to {after}");
        }
    }
}
