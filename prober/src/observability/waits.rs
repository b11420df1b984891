//! Reasons for which a dependent is not written yet, in words.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use prober_core::shoot::Requirement;
use serde::{Deserialize, Serialize};

/// A write that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownWait {
    /// The name of the requirement.
    #[serde(rename = "for")]
    pub requirement: Cow<'static, str>,
    pub reason: Cow<'static, str>,
    /// The end of the wait, where it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

/// Returns what is waited for.
pub(crate) const fn reason(requirement: Requirement) -> &'static str {
    match requirement {
        Requirement::Owned => "the owner record to name this seed",
        Requirement::Ours => "the Cluster to name this seed",
        Requirement::NotPaused => "the pause to be lifted",
        Requirement::SeedCurrent => "the seed's Clusters to be read",
        Requirement::InitialDelay => "the end of initialDelay",
        Requirement::Confirmed => "a complete probe that agrees",
        Requirement::Stabilized => "the verdict to last for scaleUpStabilization",
        Requirement::SameTerms => "a probe since leadership, config or settings changed",
        Requirement::LeaderHadItsTurn => "the leader, whose turn it is",
        Requirement::Recent => "a probe of the last seconds",
        Requirement::Unchanged => "a probe since others changed it",
        Requirement::NotRepeated => "a probe since the last scaling",
        Requirement::NodesSeen => "a probe since its level was opened",
        Requirement::SeedVerified => "the seed's API server to confirm what is known of the shoot",
    }
}
