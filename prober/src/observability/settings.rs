//! Settings of a shoot in words, each with its source.

use std::fmt;

use go_compat::duration::GoDuration;
use prober_core::options::{ResolvedOptions, Source, Sourced};
use serde::Serialize;

use super::word;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownOption {
    pub setting: &'static str,
    pub value: String,
    #[serde(serialize_with = "word")]
    pub from: Source,
}

impl ShownOption {
    fn new(setting: &'static str, value: impl ToString, from: Source) -> Self {
        let value = value.to_string();
        Self {
            setting,
            value,
            from,
        }
    }

    /// All settings, by the names of the config's keys.
    pub fn all(options: &ResolvedOptions) -> [Self; 4] {
        let flag = |setting, flag: Sourced<bool>| Self::new(setting, flag.value, flag.from);
        let Sourced { value, from } = options.scale_up_stabilization;
        [
            flag("pause", options.pause),
            flag("restoreOnlyHeldDown", options.restore_only_held_down),
            Self::new("scaleUpStabilization", GoDuration::from_std(value), from),
            flag("standbyProtects", options.standby_protects),
        ]
    }

    /// Settings that annotations set.
    pub fn overruled(options: &ResolvedOptions) -> impl Iterator<Item = Self> + use<> {
        let by_annotation =
            |option: &Self| matches!(option.from, Source::Garden | Source::Namespace);
        Self::all(options).into_iter().filter(by_annotation)
    }
}

impl fmt::Display for ShownOption {
    /// `restoreOnlyHeldDown true (garden)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            setting,
            value,
            from,
        } = self;
        write!(f, "{setting} {value} ({})", from.into_str())
    }
}
