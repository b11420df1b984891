//! What happens, and what is said, when a right that Gardener grants (rules 81 to 84) is taken away. Each is taken away by
//! itself, but for those that nothing needs: these are all taken away at once, and nobody notices.
//!
//! docs/security.md has the table that these scenarios prove.

mod agents;
mod readers;
mod rights;
mod unneeded;
