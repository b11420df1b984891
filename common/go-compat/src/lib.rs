//! What is here only because the original was written in Go: operators' Deployments, config files
//! and log pipelines were made for it, and must work unchanged with this program.
//!
//! | Module | As in |
//! |---|---|
//! | [`yaml`] | YAML 1.1 on its way through JSON into structs: which scalar is which text, which key is which field |
//! | [`zap`] | zap's options, its lines, its sampling |

#![allow(
    missing_docs,
    reason = "only this binary uses the crate: a name that needs no words gets none"
)]

pub mod yaml;
pub mod zap;
