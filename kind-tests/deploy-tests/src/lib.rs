//! What the suite for installations stands on. It needs programs that the other tests do not, so it is a suite of its own.
//!
//! ```text
//! deploy/helm ------ helm template ----+--> Objects --> compared with each other and with what Gardener deploys
//! deploy/kustomize - kustomize build --+       |------> dry run on a real API server, pods under the restricted standard
//!                                              |------> real agents, started as their Deployments say
//!                                              '------> promtool, and a real Prometheus that scrapes those agents
//! status page ------ a real Chromium: wide, as a phone, by night
//! ```
//!
//! helm and kustomize are built from their Go modules, once (`programs/build`); promtool, prometheus and chromium are the system's.

pub mod browser;
pub mod cluster;
pub mod prometheus;
pub mod repository;
pub mod tools;

pub use kind_tests::{installation, objects};
