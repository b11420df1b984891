//! One of two gateways between nodes and API server dies without a sign. Its connections swallow
//! what is sent, until the kubelets notice and connect through the other one.

use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use testbed::proxy::{ProxyMode, TcpProxy};
use testbed::renewers::{LeaseRenewers, LeaseWriter};
use testbed::shoot::{Body, CA, KCM, MCM};
use testbed::{KubeApi, Prober, ProberConfig, ShootCluster, scenario};
use tokio::time::{Instant, sleep_until};

use super::{all_are, manager, shoot};
use crate::end_alone;

/// HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS, which Gardener sets for
/// kubelets. Their connections carry watches, so that they have heard of the API server until the
/// gateway died.
const UNTIL_NOTICED: Duration = Duration::from_secs(25 + 12);

/// The ways of kubelets that are connected through the gateway that dies.
#[derive(Clone)]
struct Ways {
    dying: KubeApi,
    other: KubeApi,
    /// When the kubelets notice.
    noticed: Arc<OnceLock<Instant>>,
}

impl LeaseWriter for Ways {
    async fn renew(&self, node: &str) -> bool {
        let noticed = async {
            match self.noticed.get() {
                Some(at) => sleep_until(*at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = noticed => self.other.renew(node).await,
            done = self.dying.renew(node) => done,
        }
    }
}

/// For how long a Deployment was at 0 replicas, where it was taken down and brought back once since
/// this entry of the history.
fn at_zero(shoot: &ShootCluster, name: &str, from: usize) -> Result<Duration> {
    let writes: Vec<_> = shoot
        .writes_since(from)
        .into_iter()
        .filter(|write| write.name == name)
        .collect();
    let [down, up] = writes.as_slice() else {
        bail!("{name}\n{}", shoot.story())
    };
    Ok(up.at - down.at)
}

#[test]
fn gateway_that_dies_costs_no_node() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = shoot(bed, &seed, "gateway", 3, Body::default()).await?;
        let gateway = TcpProxy::start(shoot.plane.address()).await?;
        let through = shoot.plane.admin_kubeconfig().replace(
            &shoot.plane.url(),
            &format!("https://{}", gateway.address()),
        );
        let ways = Ways {
            dying: KubeApi::connect(&through).await?,
            other: shoot.plane.api().clone(),
            noticed: Arc::default(),
        };
        let mut kubelets = LeaseRenewers::new(ways.clone(), shoot.nodes.beat());
        // The third node is connected through the other gateway.
        for (number, name) in (0..).zip(&shoot.nodes.names()[..2]) {
            kubelets.join(name, shoot.nodes.beat() / 3 * number);
        }
        shoot.nodes.cut(0..2);
        let manager = manager(bed, &shoot).await?;
        let prober = Prober::start(&seed, ProberConfig::gardener()).await?;
        shoot.after_probes(1).await?;

        let begin = shoot.history().len();
        gateway.set(ProxyMode::Stalled);
        ensure!(
            ways.noticed.set(Instant::now() + UNTIL_NOTICED).is_ok(),
            "it dies once"
        );
        shoot
            .held_down(&[(KCM, "1"), (MCM, "1"), (CA, "1")])
            .await?;
        shoot.free_at(&[(KCM, 1), (MCM, 1), (CA, 1)]).await?;
        for name in [KCM, MCM, CA] {
            println!(
                "{name} was at 0 replicas for {:.1?}",
                at_zero(&shoot, name, begin)?
            );
        }
        all_are(&shoot, "True").await?;
        drop((kubelets, manager));
        end_alone(shoot, prober).await
    })
}
