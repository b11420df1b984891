//! What happens, and what is said, when a right that Gardener grants (rules 81 to 84) is taken
//! away. Each is taken away by itself, but for those that nothing needs: the scenarios with
//! Gardener's objects do without all of them.
//!
//! docs/security.md has the table that these scenarios prove.

mod agents;
mod readers;
pub mod rights;
