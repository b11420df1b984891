//! What comes from outside, reader by reader: inputs out of bytes, what must hold of every reading,
//! and what Go's libraries read.
//!
//! ```text
//! libFuzzer (../fuzz) -.                        .-> check: what must hold of our reading alone
//!                       +-> bytes -> an Input --+
//! a seed (campaign) ---'                        '-> compare: our reading --------------------------> the same, or a named exception
//!                                                        question -> reference-answers (Go) -> answer --'
//! ```
//! Each check compares with a second way to the same result: a round trip, another form of the same
//! thing, a model of a few lines.
//!
//! The Go original reads durations, label selectors and lists with libraries of Go and of Kubernetes. Whatever an operator wrote for them must mean the same here
//! (rules 21, 26). A difference is a defect of ours, but for those that are decided:
//! each of them is a named exception where the two are compared.

mod campaign;
pub mod clusters;
mod config;
pub mod durations;
mod go;
pub mod kubeconfig;
pub mod lists;
pub mod prober_config;
mod source;
pub mod weeder_config;
mod yaml;

use std::fmt::Debug;

use anyhow::{Result, ensure};

pub use campaign::campaign;
pub use go::{GoAnswer, GoProgram};
pub use source::Choices;

/// Something that one of our readers is given.
pub trait ReaderInput: Debug + Sized {
    /// Makes one out of bytes, whatever they are.
    fn make(source: &mut Choices<'_>) -> Self;

    /// Whether all holds that must hold of our reading, whatever the input is.
    ///
    /// # Errors
    /// What does not hold.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Whether we read it as Go does. Of some inputs there is nothing to compare.
    ///
    /// # Errors
    /// How the two differ, or that Go does not answer.
    fn compare(&self, _go: &mut GoProgram) -> Result<()> {
        Ok(())
    }
}

/// Checks the input that these bytes make, for libFuzzer.
///
/// # Panics
/// When something does not hold.
pub fn check_bytes<I: ReaderInput>(bytes: &[u8]) {
    let input = I::make(&mut Choices::new(bytes));
    let held = input.check();
    assert!(held.is_ok(), "{held:?}\n{input:#?}");
}

/// What is said to a person or a log stays readable, however long what came in: at most this many
/// bytes for one thing.
const WORDS: usize = 2048;

/// A message is a single line of bounded length.
fn is_one_line(message: &str) -> Result<()> {
    ensure!(!message.is_empty(), "a refusal without a word");
    ensure!(
        message.len() <= WORDS,
        "{} bytes: {:?}...",
        message.len(),
        message.chars().take(200).collect::<String>()
    );
    ensure!(
        !message.contains(['\n', '\r', '\u{1b}']),
        "not one plain line: {message:?}"
    );
    Ok(())
}

/// JSON as YAML that any parser takes: what is not plain ASCII is escaped.
fn in_yaml(value: &serde_json::Value) -> String {
    let escaped = |c: char| {
        if matches!(c, ' '..='~') {
            c.to_string()
        } else {
            format!("\\U{:08x}", u32::from(c))
        }
    };
    value.to_string().chars().map(escaped).collect()
}
