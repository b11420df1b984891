//! What is here only because the original was written in Go: operators' Deployments, config files
//! and log pipelines were made for it, and must work unchanged with this program.
//!
//! | Module | As in |
//! |---|---|
//! | [`yaml`] | YAML 1.1 on its way through JSON into structs: which scalar is which text, which key is which field |
//! | [`zap`] | zap's options, its lines, its sampling |

pub mod yaml;
pub mod zap;
