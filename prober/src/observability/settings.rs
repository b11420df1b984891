//! Settings of a shoot in words, each with its source.

use std::borrow::Cow;
use std::fmt;

use go_compat::duration::GoDuration;
use prober_core::options::{ResolvedOptions, Source, Sourced};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownOption {
    pub setting: Cow<'static, str>,
    pub value: String,
    pub from: Source,
}

impl ShownOption {
    fn new(setting: &'static str, value: impl ToString, from: Source) -> Self {
        let value = value.to_string();
        Self {
            setting: setting.into(),
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
            Self::new("scaleUpStabilization", GoDuration(value), from),
            flag("standbyProtects", options.standby_protects),
        ]
    }

    /// True if an annotation sets it.
    pub fn is_overruled(&self) -> bool {
        matches!(self.from, Source::Garden | Source::Namespace)
    }

    /// Settings that annotations set.
    pub fn overruled(options: &ResolvedOptions) -> impl Iterator<Item = Self> + use<> {
        Self::all(options).into_iter().filter(Self::is_overruled)
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
