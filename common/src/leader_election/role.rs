//! Who leads, as far as this replica has seen: for people who look at one of several.

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::fence::Fence;

/// What part this replica plays. Cheap to clone; all clones follow the election.
#[derive(Clone, Debug)]
pub enum Role {
    /// It is one of those that elect a leader.
    Candidate {
        /// Its own name in the election.
        identity: String,
        /// Who holds the Lease, as last seen.
        holder: watch::Receiver<Holder>,
        /// Open while this replica leads.
        fence: Fence,
    },
    /// There is no election: it works.
    Alone,
    /// It writes nothing, and so needs no lead.
    DryRun,
}

#[derive(Clone, Debug, Default)]
pub struct Holder {
    /// Empty when nobody holds the Lease.
    pub identity: String,
    /// When the holder will have missed two renewals unless it makes one.
    pub silent_from: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// `leading`, `waiting`, `alone` or `dry run`.
    pub role: &'static str,
    /// This replica's name in the election.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The leader's name; none when nobody leads, or there is no election.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}

impl Role {
    pub fn standing(&self) -> Standing {
        match self {
            Self::Candidate {
                identity,
                holder,
                fence,
            } => Standing {
                role: if fence.is_open() {
                    "leading"
                } else {
                    "waiting"
                },
                identity: Some(identity.clone()),
                leader: Some(holder.borrow().identity.clone()).filter(|holder| !holder.is_empty()),
            },
            Self::Alone => Standing {
                role: "alone",
                identity: None,
                leader: None,
            },
            Self::DryRun => Standing {
                role: "dry run",
                identity: None,
                leader: None,
            },
        }
    }

    /// Whether it acts first: it leads, or needs no lead.
    pub fn leads(&self) -> bool {
        match self {
            Self::Candidate { fence, .. } => fence.is_open(),
            Self::Alone | Self::DryRun => true,
        }
    }

    /// Waits until it leads.
    pub async fn elected(&self) {
        if let Self::Candidate { fence, .. } = self {
            fence.opened().await;
        }
    }

    /// What its writes go through: open while it surely leads, never open in a dry run.
    pub fn write_fence(&self) -> Fence {
        match self {
            Self::Candidate { fence, .. } => fence.clone(),
            Self::Alone => Fence::always_open(),
            Self::DryRun => Fence::always_closed(),
        }
    }

    pub fn is_dry_run(&self) -> bool {
        matches!(self, Self::DryRun)
    }

    /// When the leader will have missed two renewals of its Lease unless it makes one; none if no
    /// Lease was seen.
    pub fn leader_silent_from(&self) -> Option<Instant> {
        match self {
            Self::Candidate { holder, .. } => holder.borrow().silent_from,
            Self::Alone | Self::DryRun => None,
        }
    }
}
