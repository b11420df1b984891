//! A probe: the leases, and the nodes where they will matter.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use prober_core::lease::LeaseList;
use prober_core::shoot::Answer;
use prober_core::verdict::NodeRecord;
use tokio::time::{Instant, sleep};

use super::error::{Cause, ProbeError};
use super::{Budget, KubeconfigSecret, Listing, ShootClient};

/// Leases that take longer are not waited for before the nodes are listed too: where answers are
/// slow, one after the other may be too late. Where they are not, a second connection would cost
/// more than it saves: a quarter of what memory grows by when all shoots fail at once.
const NODES_BESIDE: Duration = Duration::from_millis(100);

impl ShootClient {
    /// Asks once, with the same Secret throughout. Anything but a complete, most-recent answer is an
    /// error, which is never evidence of anything.
    pub async fn probe(
        &mut self,
        secret: &Arc<KubeconfigSecret>,
        with_nodes: bool,
        budget: Budget,
    ) -> Result<Answer, ProbeError> {
        let (Listing { times, items }, nodes) = if with_nodes {
            // In a box, or healthy probes would have room for it.
            Box::pin(self.leases_and_nodes(secret, budget)).await?
        } else {
            (self.leases(secret, budget).await?, None)
        };
        Ok(Answer {
            times,
            leases: items,
            nodes,
        })
    }

    async fn leases_and_nodes(
        &mut self,
        secret: &Arc<KubeconfigSecret>,
        budget: Budget,
    ) -> Result<(Listing<LeaseList>, Option<Vec<NodeRecord>>), ProbeError> {
        let (began, mut client) = (Instant::now(), self.beside(secret));
        let mut beside = pin!(async {
            sleep(NODES_BESIDE).await;
            client.nodes(budget).await
        });
        let mut nodes = None;
        let leases = {
            let mut leases = pin!(self.leases(secret, budget));
            loop {
                tokio::select! {
                    biased;
                    listed = &mut leases => break listed?,
                    listed = &mut beside, if nodes.is_none() => nodes = Some(listed),
                }
            }
        };
        if nodes.is_none() && began.elapsed() >= NODES_BESIDE {
            nodes = Some(beside.await);
        }
        let nodes = match nodes {
            Some(Ok(nodes)) => nodes,
            Some(Err(error)) if matches!(error.cause, Cause::Throttled { .. }) => {
                return Err(error);
            }
            _ => self.nodes(budget).await?,
        };
        Ok((leases, Some(nodes.items)))
    }
}
