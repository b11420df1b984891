//! A probe: the leases, and the nodes where they will matter.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::try_join;
use prober_core::lease::LeaseList;
use prober_core::shoot::Answer;
use prober_core::verdict::NodeRecord;
use tokio::time::timeout;

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
        let (leases, nodes) = if with_nodes {
            // In a box, or healthy probes would have room for it.
            let (leases, nodes) = Box::pin(self.leases_and_nodes(secret, budget)).await?;
            (leases, Some(nodes.items))
        } else {
            (self.leases(secret, budget).await?, None)
        };
        Ok(Answer {
            times: leases.times,
            leases: leases.items,
            nodes,
        })
    }

    async fn leases_and_nodes(
        &mut self,
        secret: &Arc<KubeconfigSecret>,
        budget: Budget,
    ) -> Result<(Listing<LeaseList>, Listing<Vec<NodeRecord>>), ProbeError> {
        let mut beside = self.beside(secret);
        let (leases, nodes) = {
            let mut leases = pin!(self.leases(secret, budget));
            match timeout(NODES_BESIDE, &mut leases).await {
                Ok(leases) => (leases?, None),
                Err(_) => {
                    let nodes = beside.nodes(budget).map(|nodes| Ok(Some(nodes)));
                    try_join(leases, nodes).await?
                }
            }
        };
        let nodes = match nodes {
            Some(Ok(nodes)) => nodes,
            Some(Err(error)) if matches!(error.cause, Cause::Throttled { .. }) => {
                return Err(error);
            }
            _ => self.nodes(budget).await?,
        };
        Ok((leases, nodes))
    }
}
