//! Reasons for which a dependent is not written yet, in words.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use prober_core::shoot::Reason;
use serde::{Deserialize, Serialize};

/// A write that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownWait {
    /// The name of the reason.
    #[serde(rename = "for")]
    pub kind: Cow<'static, str>,
    pub reason: Cow<'static, str>,
    /// The end of the wait, where it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

/// Returns what is waited for.
pub(crate) const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::NotOurs => "the Cluster to name this seed",
        Reason::NotOwned => "the owner record to name this seed",
        Reason::Paused => "the pause to be lifted",
        Reason::SeedUnseen => "the seed's Clusters to be read",
        Reason::InitialDelay => "the end of initialDelay",
        Reason::Order => "its level and its delay",
        Reason::Terms => "a probe since leadership, config or settings changed",
        Reason::Stabilization => "the verdict to last for scaleUpStabilization",
        Reason::Leader => "the leader, whose turn it is",
        Reason::Undone => "the last write, which others have undone, to be some seconds ago",
        Reason::Backoff => "another attempt after the last one, which failed",
        Reason::Changed => "a probe since others changed it",
        Reason::Answer => "a probe of the last seconds",
        Reason::Permit => "other writes, which go first",
    }
}
