//! What is here only because the original was written in Go: operators' Deployments, config files and log pipelines were made for it,
//! and must work unchanged with this program.
//!
//! | Module | As in |
//! |---|---|
//! | [`flag`] | the package `flag`: how words are flags, and how values are spelt |
//! | [`duration`] | `time.ParseDuration` and `Duration.String` |
//! | [`yaml`] | YAML 1.1 on its way through JSON into structs: which scalar is which text, which key is which field |
//! | [`zap`] | zap's flags, its lines, its sampling |

pub mod duration;
pub mod flag;
pub(crate) mod yaml;
pub mod zap;
