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

    use super::*;

    fn object(replicas: i64, annotations: Value) -> Value {
        json!({"metadata": {"name": "x", "resourceVersion": "1", "annotations": annotations}, "spec": {"replicas": replicas, "paused": false}})
    }

    fn free(replicas: i64) -> Value {
        object(replicas, json!({}))
    }

    /// With this memory and the marker.
    fn marked(replicas: i64, memory: &str) -> Value {
        object(replicas, json!({REPLICAS: memory, PROTECTED: ""}))
    }

    /// With this memory and without the marker.
    fn bare(replicas: i64) -> Value {
        object(replicas, json!({REPLICAS: "3"}))
    }

    #[test]
    fn each_write_is_of_a_kind_or_wrong() {
        let unannotated = json!({"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"replicas": 3, "paused": false}});
        let ignored = |replicas| object(replicas, json!({IGNORE: "true"}));
        let ignored_and_marked = object(0, json!({IGNORE: "true", PROTECTED: ""}));
        let mut paused = marked(0, "3");
        paused["spec"]["paused"] = json!(true);
        let cases = [
            (
                "down, with what was there",
                free(3),
                marked(0, "3"),
                Some(WriteKind::Down),
            ),
            (
                "down, from no annotations at all",
                unannotated.clone(),
                marked(0, "3"),
                Some(WriteKind::Down),
            ),
            (
                "up, to no annotations at all",
                marked(0, "3"),
                unannotated,
                Some(WriteKind::Up),
            ),
            (
                "down again",
                marked(3, "3"),
                marked(0, "3"),
                Some(WriteKind::Down),
            ),
            (
                "down again, a held memory stays",
                marked(1, "3"),
                marked(0, "3"),
                Some(WriteKind::Down),
            ),
            (
                "down again, an invalid memory does not stay",
                marked(1, "x"),
                marked(0, "1"),
                Some(WriteKind::Down),
            ),
            (
                "a held memory is overwritten",
                marked(1, "3"),
                marked(0, "1"),
                None,
            ),
            (
                "0 is remembered of what runs",
                free(3),
                marked(0, "0"),
                None,
            ),
            (
                "0 is remembered of what is held",
                marked(0, "3"),
                marked(0, "0"),
                None,
            ),
            ("down without a marker", free(3), bare(0), None),
            ("up, found at 0", free(0), free(1), Some(WriteKind::Up)),
            ("up, to something else", marked(0, "3"), free(1), None),
            ("up, and the memory is left", marked(0, "3"), bare(3), None),
            (
                "a marker that was left goes",
                object(2, json!({PROTECTED: ""})),
                free(2),
                Some(WriteKind::Up),
            ),
            (
                "the marker comes back",
                bare(0),
                marked(0, "3"),
                Some(WriteKind::Marked),
            ),
            (
                "the marker comes back with another memory",
                bare(0),
                marked(0, "1"),
                None,
            ),
            (
                "a marker where nobody holds it",
                free(0),
                object(0, json!({PROTECTED: ""})),
                None,
            ),
            (
                "the marker goes from what is ignored",
                ignored_and_marked.clone(),
                ignored(0),
                Some(WriteKind::HandsOff),
            ),
            (
                "what is ignored goes down",
                ignored(2),
                ignored_and_marked,
                None,
            ),
            ("something else is changed too", free(3), paused, None),
            ("nothing is written", free(3), free(3), None),
            (
                "one request is enough, and there are two",
                free(3),
                marked(3, "3"),
                None,
            ),
        ];
        for (what, before, after, expected) in cases {
            assert_eq!(write_kind(&before, &after).ok(), expected, "{what}");
        }
        for (memory, replicas) in [
            ("3", 3),
            ("+2", 2),
            ("foo", 1),
            ("0", 1),
            ("-1", 1),
            ("", 1),
            ("2147483648", 1),
        ] {
            assert_eq!(
                write_kind(&marked(0, memory), &free(replicas)),
                Ok(WriteKind::Up),
                "{memory:?}"
            );
        }
    }

    #[test]
    fn what_takes_two_requests_is_announced_before_it_goes_down_and_forgotten_after_it_is_up() {
        let path = [
            free(3),
            marked(3, "3"),
            marked(0, "3"),
            marked(3, "3"),
            free(3),
        ];
        let ways = path
            .windows(2)
            .map(|step| write_kind_in_two(&step[0], &step[1]))
            .collect::<Vec<_>>();
        assert_eq!(
            ways,
            [
                Ok(WriteKind::Down),
                Ok(WriteKind::Down),
                Ok(WriteKind::Up),
                Ok(WriteKind::Up)
            ]
        );
        for (what, before, after) in [
            ("nothing is remembered", free(3), free(0)),
            ("something else is remembered", free(3), marked(3, "2")),
            ("something else is restored", marked(0, "3"), marked(2, "3")),
            ("nothing is written", marked(3, "3"), marked(3, "3")),
        ] {
            assert!(write_kind_in_two(&before, &after).is_err(), "{what}");
        }
    }
}
