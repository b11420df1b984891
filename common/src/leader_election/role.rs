//! This replica's part in the election, and the leader as far as it is known.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use tokio::time::Instant;

use super::election::Election;
use super::fence::Fence;
use crate::followed::Followed;

/// Cheap to clone; all clones follow the election.
#[derive(Clone, Debug)]
pub enum Role {
    /// It is one of those that elect a leader.
    Candidate {
        /// Its own name in the election.
        identity: String,
        election: Arc<Followed<Election>>,
    },
    /// There is no election: it works.
    Alone,
    /// It writes nothing, and so needs no leadership.
    DryRun,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleStatus {
    pub role: RoleName,
    /// This replica's name in the election.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The leader's name; `None` if nobody leads, or there is no election.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}

/// Present role of a replica, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum RoleName {
    Leading,
    Waiting,
    #[default]
    Alone,
    #[serde(rename = "dry run")]
    #[strum(to_string = "dry run")]
    DryRun,
}

impl Role {
    pub fn status(&self) -> RoleStatus {
        let mut status = RoleStatus::default();
        status.role = match self {
            Self::Candidate { identity, election } => {
                status.identity = Some(identity.clone());
                let leader = election.lock().leader.clone();
                status.leader = Some(leader).filter(|leader| !leader.is_empty());
                if self.leads() {
                    RoleName::Leading
                } else {
                    RoleName::Waiting
                }
            }
            Self::Alone => RoleName::Alone,
            Self::DryRun => RoleName::DryRun,
        };
        status
    }

    /// True if it acts first: it leads, or needs no leadership.
    pub fn leads(&self) -> bool {
        match self {
            Self::Candidate { election, .. } => election.lock().leads(),
            Self::Alone | Self::DryRun => true,
        }
    }

    /// Waits until it leads.
    pub async fn elected(&self) {
        if !self.is_dry_run() {
            self.write_fence().opened().await;
        }
    }

    /// The fence of its writes: open while it surely leads, never open in a dry run.
    pub fn write_fence(&self) -> Fence {
        match self {
            Self::Candidate { election, .. } => Fence::new(Arc::clone(election)),
            Self::Alone => Fence::always_open(),
            Self::DryRun => Fence::always_closed(),
        }
    }

    pub fn is_dry_run(&self) -> bool {
        matches!(self, Self::DryRun)
    }

    /// Time of the leader's second missed renewal, unless it makes one; `None` if no Lease was
    /// seen.
    pub fn leader_silent_from(&self) -> Option<Instant> {
        match self {
            Self::Candidate { election, .. } => election.lock().leader_silent_from,
            Self::Alone | Self::DryRun => None,
        }
    }
}
