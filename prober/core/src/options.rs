//! Settings that annotations on namespaces can override.
//!
//! ```text
//! config --> annotations on `garden`, for the whole seed --> annotations on the shoot's namespace --> options of the shoot
//! ```
//!
//! A value that cannot be parsed is refused, and the inherited one applies.

use std::collections::BTreeMap;
use std::time::Duration;

use go_compat::flag;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::config::Config;

/// Gardener's own namespace. Annotations there apply to the whole seed.
pub const GARDEN: &str = "garden";

/// Keeps probing the shoot but writes nothing in either direction.
pub const PAUSE: &str = "dependency-watchdog.gardener.cloud/pause";
pub const RESTORE_ONLY_HELD_DOWN: &str =
    "dependency-watchdog.gardener.cloud/restore-only-held-down";
pub const SCALE_UP_STABILIZATION: &str =
    "dependency-watchdog.gardener.cloud/scale-up-stabilization";
pub const STANDBY_PROTECTS: &str = "dependency-watchdog.gardener.cloud/standby-protects";

/// Number of characters of a refused value in its error.
const SHOWN: usize = 50;

/// Settings from the annotations of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pause: Option<bool>,
    restore_only_held_down: Option<bool>,
    scale_up_stabilization: Option<Duration>,
    standby_protects: Option<bool>,
    /// Errors of values that cannot be parsed, each with its annotation; these are ignored.
    pub refused: Vec<String>,
}

impl Overrides {
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let mut refused = Vec::new();
        let mut boolean = |annotation| read(annotations, annotation, flag::boolean, &mut refused);
        Self {
            pause: boolean(PAUSE),
            restore_only_held_down: boolean(RESTORE_ONLY_HELD_DOWN),
            standby_protects: boolean(STANDBY_PROTECTS),
            scale_up_stabilization: read(
                annotations,
                SCALE_UP_STABILIZATION,
                flag::duration,
                &mut refused,
            ),
            refused,
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn read<T>(
    annotations: &BTreeMap<String, String>,
    annotation: &'static str,
    parse: fn(&str) -> Result<T, String>,
    refused: &mut Vec<String>,
) -> Option<T> {
    let value = annotations.get(annotation)?;
    let refuse = |expected: String| {
        let shown: String = value.chars().take(SHOWN).collect();
        refused.push(format!("{annotation}: {shown:?} is refused, {expected}"));
    };
    parse(value).map_err(refuse).ok()
}

/// Origin of a value.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Source {
    /// Not set, and the config has no key for it.
    Default,
    Config,
    Garden,
    Namespace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub from: Source,
}

impl<T> Sourced<T> {
    /// Returns the value of the first namespace that sets it, or else the default.
    fn resolve(
        value: T,
        from: Source,
        namespaces: [(Option<&Overrides>, Source); 2],
        set: fn(&Overrides) -> Option<T>,
    ) -> Self {
        namespaces
            .into_iter()
            .find_map(|(overrides, from)| {
                Some(Self {
                    value: set(overrides?)?,
                    from,
                })
            })
            .unwrap_or(Self { value, from })
    }
}

/// Options of one shoot, with their origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedOptions {
    pub pause: Sourced<bool>,
    pub restore_only_held_down: Sourced<bool>,
    pub scale_up_stabilization: Sourced<Duration>,
    pub standby_protects: Sourced<bool>,
}

impl ResolvedOptions {
    /// Resolves the annotations of the shoot's own namespace, then those of `garden`, then the
    /// config.
    pub fn resolve(config: &Config, garden: Option<&Overrides>, own: Option<&Overrides>) -> Self {
        let by = [(own, Source::Namespace), (garden, Source::Garden)];
        let flag = |value, set| Sourced::resolve(value, Source::Config, by, set);
        Self {
            pause: Sourced::resolve(false, Source::Default, by, |set| set.pause),
            restore_only_held_down: flag(config.restore_only_held_down, |set| {
                set.restore_only_held_down
            }),
            standby_protects: flag(config.standby_protects, |set| set.standby_protects),
            scale_up_stabilization: Sourced::resolve(
                config.scale_up_stabilization,
                Source::Config,
                by,
                |set| set.scale_up_stabilization,
            ),
        }
    }
}

#[cfg(test)]
mod tests;
