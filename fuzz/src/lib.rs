//! What must hold of every reading of what comes from outside, whatever it is.
//!
//! ```text
//! libFuzzer -> bytes -> a target (fuzz_targets/) -> a check of this crate: panics when something does not hold
//! ```
//!
//! Each check reads its input with the product's own code and compares with a second way to the same result: a round trip,
//! another form of the same thing, plain arithmetic, a model of a few lines.

pub mod clusters;
pub mod config;
pub mod durations;
pub mod flags;
pub mod kubeconfig;
pub mod lists;
pub mod memory;
#[path = "../../kind-tests/testbed/src/api/protobuf/wire.rs"]
pub mod protobuf;
pub mod selectors;

/// JSON as YAML that any parser takes: what is not plain ASCII is escaped.
fn yaml(value: &serde_json::Value) -> String {
    let escaped = |c: char| if matches!(c, ' '..='~') { c.to_string() } else { format!("\\U{:08x}", u32::from(c)) };
    value.to_string().chars().map(escaped).collect()
}

/// What is said to a person or a log stays readable, however long what came in: at most this many bytes for one thing.
const WORDS: usize = 2048;

/// Panics when a message is no single line of bounded length.
fn must_be_one_line(message: &str) {
    assert!(!message.is_empty(), "a refusal without a word");
    assert!(message.len() <= WORDS, "{} bytes: {:?}...", message.len(), message.chars().take(200).collect::<String>());
    assert!(!message.contains(['\n', '\r', '\u{1b}']), "not one plain line: {message:?}");
}
