//! Parts that exist only because the original was written in Go: operators' Deployments and config files
//! were made for it, and must work unchanged with this program.
//!
//! | Module | As in |
//! |---|---|
//! | [`duration`] | `time.ParseDuration`: how a duration is written |
//! | [`flag`] | package `flag`: how a value is written |
//! | [`null`] | `encoding/json`: null in the place of a value that is not set |

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

pub mod duration;
pub mod flag;
pub mod null;
