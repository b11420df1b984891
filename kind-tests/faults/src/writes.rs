//! Which writes to a dependent are right in themselves, whatever the nodes do. Pure.

use serde_json::Value;
use testbed::gardener::{IGNORE, PROTECTED, REPLICAS};

/// A dependent, as far as the watchdog may change it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependent {
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

/// Which way a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To 0.
    Down,
    /// Back, or a marker that was left is taken away.
    Up,
    /// Held down, and carries the marker again that somebody took away.
    Marked,
    /// The marker goes because the operators want the resource left alone; right at any time.
    HandsOff,
}

impl Dependent {
    /// Reads an object.
    pub fn of(object: &Value) -> Self {
        let annotation = |key: &str| object["metadata"]["annotations"][key].as_str();
        Self {
            replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
            ready: object["status"]["readyReplicas"].as_i64().unwrap_or(0),
            memory: annotation(REPLICAS).map(str::to_owned),
            marker: annotation(PROTECTED).is_some(),
            ignored: matches!(annotation(IGNORE), Some("1" | "t" | "T" | "true" | "TRUE" | "True")),
        }
    }

    /// The remembered replicas, if they can be used (rules of D-31 to D-33).
    pub fn remembered(&self) -> Option<i64> {
        let text = self.memory.as_deref()?;
        let digits = text.strip_prefix('+').unwrap_or(text);
        let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?;
        number.filter(|number| (1..=i64::from(i32::MAX)).contains(number))
    }
}

impl std::fmt::Display for Dependent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.replicas)?;
        if let Some(memory) = &self.memory {
            write!(out, " memory {memory:?}")?;
        }
        out.write_str(if self.marker { " held" } else { "" })?;
        out.write_str(if self.ignored { " ignored" } else { "" })
    }
}

/// Which way the watchdog's write goes.
///
/// # Errors
/// When it is none that it may ever make: what it breaks.
pub fn way(before: &Value, after: &Value) -> Result<Way, String> {
    if rest(before) != rest(after) {
        return Err("it changes more than replicas and its own annotations".into());
    }
    let (was, is) = (Dependent::of(before), Dependent::of(after));
    let (allowed, way, otherwise) = match (was.replicas, is.replicas) {
        _ if was.ignored && was.marker => {
            (Dependent { marker: false, ..was }, Way::HandsOff, "it touches what is to be ignored, and not its marker alone")
        }
        _ if was.ignored => return Err("it touches what is to be ignored".into()),
        (1.., 0) => {
            let kept = was.memory.clone().filter(|_| was.marker && was.remembered().is_some());
            let memory = Some(kept.unwrap_or_else(|| was.replicas.to_string()));
            let down = Dependent { replicas: 0, memory, marker: true, ..was };
            (down, Way::Down, "the memory is lost, wrong or overwritten, or the marker is missing")
        }
        (0, 1..) => {
            let replicas = was.remembered().unwrap_or(1);
            let up = Dependent { replicas, memory: None, marker: false, ..was };
            (up, Way::Up, "it does not restore what is remembered, or leaves annotations")
        }
        (1.., 1..) if was.marker => {
            (Dependent { memory: None, marker: false, ..was }, Way::Up, "more than the marker and the memory are taken away")
        }
        (0, 0) if !was.marker && was.remembered().is_some() => {
            (Dependent { marker: true, ..was }, Way::Marked, "more than the marker is written back")
        }
        _ => return Err("there was nothing to write".into()),
    };
    if is == allowed { Ok(way) } else { Err(otherwise.into()) }
}

/// The same for a kind that is scaled by a request of its own, which comes after the annotations on the way down and before them on
/// the way up.
///
/// # Errors
/// When it is none that it may ever make: what it breaks.
pub fn way_in_two(before: &Value, after: &Value) -> Result<Way, String> {
    let (was, is) = (Dependent::of(before), Dependent::of(after));
    let announced = Dependent { memory: Some(was.replicas.to_string()), marker: true, ..was.clone() };
    let raised = Dependent { replicas: was.remembered().unwrap_or(1), ..was.clone() };
    match was.replicas {
        _ if was.ignored || rest(before) != rest(after) => way(before, after),
        1.. if !was.marker && is == announced => Ok(Way::Down),
        0 if is == raised => Ok(Way::Up),
        _ => way(before, after),
    }
}

/// All of an object that the watchdog must not change.
fn rest(object: &Value) -> Value {
    let mut rest = object.clone();
    let mut forget = |place: &str, keys: &[&str]| {
        if let Some(fields) = rest.pointer_mut(place).and_then(Value::as_object_mut) {
            fields.retain(|key, _| !keys.contains(&key.as_str()));
        }
    };
    forget("/metadata/annotations", &[REPLICAS, PROTECTED]);
    forget("/metadata", &["resourceVersion", "generation", "managedFields"]);
    forget("/spec", &["replicas"]);
    // No annotations and none at all are the same.
    let annotations = &mut rest["metadata"]["annotations"];
    if annotations.as_object().is_some_and(serde_json::Map::is_empty) {
        *annotations = Value::Null;
    }
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(replicas: i64, annotations: Value) -> Value {
        json!({"metadata": {"name": "x", "resourceVersion": "1", "annotations": annotations}, "spec": {"replicas": replicas, "paused": false}})
    }

    fn held(memory: &str) -> Value {
        object(0, json!({REPLICAS: memory, PROTECTED: ""}))
    }

    #[test]
    fn a_scale_down_remembers_what_was_there() {
        assert_eq!(way(&object(3, json!({})), &held("3")), Ok(Way::Down));
        let mut bare = object(3, json!({}));
        bare["metadata"].as_object_mut().unwrap().remove("annotations");
        assert_eq!(way(&bare, &held("3")), Ok(Way::Down));
        assert_eq!(way(&held("3"), &bare), Ok(Way::Up));
        assert_eq!(way(&object(3, json!({REPLICAS: "3", PROTECTED: ""})), &held("3")), Ok(Way::Down));
        assert_eq!(way(&object(1, json!({REPLICAS: "3", PROTECTED: ""})), &held("3")), Ok(Way::Down), "a held memory stays");
        assert_eq!(way(&object(1, json!({REPLICAS: "x", PROTECTED: ""})), &held("1")), Ok(Way::Down), "an invalid one does not");
        assert!(way(&object(1, json!({REPLICAS: "3", PROTECTED: ""})), &held("1")).is_err(), "overwritten");
        assert!(way(&object(3, json!({})), &held("0")).is_err());
        assert!(way(&object(3, json!({})), &object(0, json!({REPLICAS: "3"}))).is_err(), "no marker");
        assert!(way(&held("3"), &held("0")).is_err(), "0 is never remembered");
    }

    #[test]
    fn a_restore_brings_back_what_is_remembered_and_forgets_it() {
        let free = |replicas| object(replicas, json!({}));
        for (memory, replicas) in [("3", 3), ("+2", 2), ("foo", 1), ("0", 1), ("-1", 1), ("", 1), ("2147483648", 1)] {
            assert_eq!(way(&held(memory), &free(replicas)), Ok(Way::Up), "{memory:?}");
        }
        assert_eq!(way(&object(0, json!({})), &free(1)), Ok(Way::Up), "found at 0");
        assert!(way(&held("3"), &free(1)).is_err());
        assert!(way(&held("3"), &object(3, json!({REPLICAS: "3"}))).is_err(), "the memory is left");
        assert_eq!(way(&object(2, json!({PROTECTED: ""})), &free(2)), Ok(Way::Up), "a marker that was left");
    }

    #[test]
    fn a_marker_is_written_back_to_what_is_held_with_a_memory() {
        let bare = object(0, json!({REPLICAS: "3"}));
        assert_eq!(way(&bare, &held("3")), Ok(Way::Marked));
        assert!(way(&bare, &held("1")).is_err(), "another memory");
        assert!(way(&object(0, json!({})), &object(0, json!({PROTECTED: ""}))).is_err(), "nobody holds it");
    }

    #[test]
    fn what_takes_two_requests_is_announced_before_it_goes_down_and_forgotten_after_it_is_up() {
        let (free, announced) = (object(3, json!({})), object(3, json!({REPLICAS: "3", PROTECTED: ""})));
        let path = [&free, &announced, &held("3"), &announced, &free];
        let ways = path.windows(2).map(|step| way_in_two(step[0], step[1])).collect::<Vec<_>>();
        assert_eq!(ways, [Ok(Way::Down), Ok(Way::Down), Ok(Way::Up), Ok(Way::Up)]);
        assert!(way_in_two(&free, &object(0, json!({}))).is_err(), "nothing is remembered");
        assert!(way_in_two(&free, &object(3, json!({REPLICAS: "2", PROTECTED: ""}))).is_err(), "something else is");
        assert!(way_in_two(&held("3"), &object(2, json!({REPLICAS: "3", PROTECTED: ""}))).is_err(), "something else is restored");
        assert!(way_in_two(&announced, &announced).is_err(), "nothing is written");
        assert!(way(&free, &announced).is_err(), "one request is enough for it");
    }

    #[test]
    fn what_is_ignored_or_not_ours_is_not_touched() {
        let ignored = |replicas: i64, marker: bool| {
            let mut object = object(replicas, json!({IGNORE: "true"}));
            if marker {
                object["metadata"]["annotations"][PROTECTED] = json!("");
            }
            object
        };
        assert_eq!(way(&ignored(0, true), &ignored(0, false)), Ok(Way::HandsOff));
        assert!(way(&ignored(2, false), &ignored(0, true)).is_err());
        let mut other = held("3");
        other["spec"]["paused"] = json!(true);
        assert!(way(&object(3, json!({})), &other).is_err());
        assert!(way(&object(3, json!({})), &object(3, json!({}))).is_err());
    }
}
