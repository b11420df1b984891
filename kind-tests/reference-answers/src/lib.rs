//! Asks Go's own libraries what they make of a text, and compares that with what ours make of it.
//!
//! ```text
//! generator (a seed) -> input -> our reader ----------------------------> value or refusal --.
//!                            \-> question -> reference-answers (Go, kept running) -> answer --+-> the same, or a named exception
//! ```
//!
//! The Go original reads durations, numbers, flags, config files, label selectors and lists with libraries of Go and of
//! Kubernetes. Whatever an operator wrote for them must mean the same here (rules 5, 8, 15 to 21, 26), so each test of
//! this crate gives both sides inputs without end. The Go program is built by `build` from `go/`, once, into the user's cache.

mod campaign;
mod reference;

pub use campaign::{campaign, campaign_of_talks};
pub use reference::{Answer, Reference};
