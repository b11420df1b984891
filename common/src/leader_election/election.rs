//! This process among its replicas: may it write, and who leads?

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use tokio::time::{Instant, timeout_at};

use super::record::ObservedLease;
use crate::followed::Followed;

/// Part of this process in the election. Cheap to clone; all clones follow the Lease.
#[derive(Clone, Debug)]
pub enum Election {
    /// It is one of those that elect a leader.
    Candidate {
        /// Its own name in the election.
        identity: Arc<str>,
        /// Time after which a leader that has not renewed counts as silent.
        silence: Duration,
        lease: Arc<Followed<ObservedLease>>,
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

impl Election {
    /// True if this process acts first: it surely leads now, or needs no leadership.
    pub fn leads(&self) -> bool {
        match self {
            Self::Candidate { lease, .. } => lease.lock().leads(),
            Self::Alone | Self::DryRun => true,
        }
    }

    /// Waits until it leads.
    pub async fn elected(&self) {
        if let Self::Candidate { lease, .. } = self {
            lease.reaches(ObservedLease::leads).await;
        }
    }

    /// Does something that needs leadership, such as a write that may first wait for a connection.
    /// `None` if this process does not lead, or stops leading before it is done; it is then
    /// dropped. Also `None` in a dry run.
    pub async fn while_leading<T>(&self, act: impl Future<Output = T>) -> Option<T> {
        let lease = match self {
            Self::Candidate { lease, .. } => lease,
            Self::Alone => return Some(act.await),
            Self::DryRun => return None,
        };
        tokio::select! {
            biased;
            () = lost(lease) => None,
            done = act => Some(done),
        }
    }

    pub fn is_dry_run(&self) -> bool {
        matches!(self, Self::DryRun)
    }

    /// Time from which the leader is silent (D-61) unless it renews; `None` if no Lease was seen.
    pub fn leader_silent_from(&self) -> Option<Instant> {
        match self {
            Self::Candidate { silence, lease, .. } => Some(lease.lock().changed_at? + *silence),
            Self::Alone | Self::DryRun => None,
        }
    }

    pub fn status(&self) -> RoleStatus {
        match self {
            Self::Candidate {
                identity, lease, ..
            } => {
                let lease = lease.lock();
                let is_leading = lease.leads();
                RoleStatus {
                    role: if is_leading {
                        RoleName::Leading
                    } else {
                        RoleName::Waiting
                    },
                    identity: Some(identity.to_string()),
                    leader: Some(lease.holder().to_owned()).filter(|leader| !leader.is_empty()),
                }
            }
            Self::Alone => RoleStatus::default(),
            Self::DryRun => RoleStatus {
                role: RoleName::DryRun,
                ..RoleStatus::default()
            },
        }
    }
}

/// Waits until this process does not lead.
pub(super) async fn lost(lease: &Followed<ObservedLease>) {
    loop {
        let changed = lease.changed();
        let until = lease.lock().leads_until;
        let Some(until) = until.filter(|until| Instant::now() < *until) else {
            return;
        };
        // A renewal moves the end.
        timeout_at(until, changed).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{sleep, sleep_until};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_by_itself_unless_it_is_renewed() {
        let lease = Arc::<Followed<ObservedLease>>::default();
        let election = Election::Candidate {
            identity: "it".into(),
            silence: Duration::ZERO,
            lease: Arc::clone(&lease),
        };
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let leads_until = |end: Option<u64>| {
            lease.change(|lease| lease.leads_until = end.map(after));
        };
        assert_eq!(
            (election.leads(), election.while_leading(async { 1 }).await),
            (false, None)
        );
        // What is under way ends with the leadership, and not with an end that was put off.
        for (end, moved_at, new_end, lost_at) in [
            (10, 5, Some(20), 20),
            (30, 25, Some(28), 28),
            (40, 35, None, 35),
        ] {
            leads_until(Some(end));
            election.elected().await;
            let moved = async {
                sleep_until(after(moved_at)).await;
                assert!(election.leads());
                leads_until(new_end);
            };
            let (ended, ()) = tokio::join!(election.while_leading(pending::<()>()), moved);
            let state = (ended, Instant::now(), election.leads());
            assert_eq!(state, (None, after(lost_at), false));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_election_nothing_is_held_back_and_in_a_dry_run_everything_is() {
        let day = || sleep(Duration::from_secs(24 * 3600));
        for (election, done) in [(Election::Alone, Some(())), (Election::DryRun, None)] {
            election.elected().await;
            assert!(election.leads());
            assert_eq!(election.while_leading(day()).await, done);
        }
    }
}
