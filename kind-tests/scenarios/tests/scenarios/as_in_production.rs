//! Gardener's real values, with a real kube-controller-manager that gives nodes up, and stops when
//! its Deployment is at 0.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::followed::{Followed, unknown_nodes};
use testbed::proxy::{ProxyMode, TcpProxy};
use testbed::renewers::{LeaseRenewers, LeaseWriter};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{
    DeploymentPod, KubeApi, ProberConfig, SeedCluster, ShootCluster, ShootPlan, Testbed,
    kube_controller_manager, scenario, start_prober,
};
use tokio::sync::watch;
use tokio::time::sleep;

const GRACE: Duration = Duration::from_secs(40);
const USUAL: [(&str, i64); 3] = [(KCM, 1), (MCM, 1), (CA, 1)];
/// HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS, which Gardener sets for
/// kubelets. Their connections carry watches, so that they have heard of the API server until the
/// gateway died.
const UNTIL_NOTICED: Duration = Duration::from_secs(25 + 12);

/// A shoot with its kube-controller-manager, and the nodes that were ever given up.
struct RealShoot {
    shoot: ShootCluster,
    unknown: Followed<BTreeSet<String>>,
    _manager: DeploymentPod,
}

impl RealShoot {
    async fn create(
        bed: &Testbed,
        seed: &Arc<SeedCluster>,
        name: &str,
        nodes: usize,
        secret: bool,
    ) -> Result<Self> {
        let plan = ShootPlan {
            nodes,
            grace: GRACE,
            deployments: USUAL.into(),
            secret,
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, seed, name, plan).await?;
        let programs = bed.programs().await?;
        let manager = kube_controller_manager(&programs, shoot.plane.admin_kubeconfig(), GRACE)?;
        Ok(Self {
            unknown: unknown_nodes(shoot.plane.api()),
            _manager: DeploymentPod::start(&shoot, KCM, vec![manager]),
            shoot,
        })
    }

    fn none_was_given_up(&self) -> Result<()> {
        let unknown = self.unknown.get().clone();
        ensure!(unknown.is_empty(), "{unknown:?}\n{}", self.shoot.story());
        Ok(())
    }
}

#[test]
fn gardeners_values_keep_all_nodes() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let kept = RealShoot::create(bed, &seed, "kept", 5, true).await?;
        // What cannot be probed is not protected.
        let lost = RealShoot::create(bed, &seed, "lost", 5, false).await?;
        let _prober = start_prober(&seed, ProberConfig::gardener()).await?;
        let shoot = &kept.shoot;
        // The second look is the first one after the initial delay.
        shoot.after_probes(1).await?;
        shoot.nodes.cut_all();
        lost.shoot.nodes.cut_all();
        let given_up = async || {
            kept.none_was_given_up()?;
            let count = lost.unknown.get().len();
            ensure!(count == 5, "{count} nodes");
            Ok(())
        };
        shoot.eventually("all nodes are given up", given_up).await?;
        shoot.held_down(&USUAL).await?;
        shoot
            .leases_older_than(GRACE + Duration::from_secs(10))
            .await?;
        shoot.nodes.heal_all();
        // The others wait for another 30 s, as they do where Gardener's own objects are at
        // work.
        shoot.free_at(&USUAL[..1]).await?;
        shoot.after_probes(1).await?;
        kept.none_was_given_up()?;
        kept.shoot.end().await
    })
}

/// The ways of kubelets that are connected through the gateway that dies.
#[derive(Clone)]
struct Ways {
    dying: KubeApi,
    other: KubeApi,
    /// Whether the kubelets have noticed.
    noticed: watch::Receiver<bool>,
}

impl LeaseWriter for Ways {
    async fn renew(&self, node: &str) -> bool {
        let mut noticed = self.noticed.clone();
        let noticed = async { drop(noticed.wait_for(|noticed| *noticed).await) };
        tokio::select! {
            biased;
            () = noticed => self.other.renew(node).await,
            done = self.dying.renew(node) => done,
        }
    }
}

/// One of two gateways between nodes and API server dies without a sign. Its connections swallow
/// what is sent, until the kubelets notice and connect through the other one.
#[test]
fn gateway_that_dies_costs_no_node() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let real = RealShoot::create(bed, &seed, "gateway", 3, true).await?;
        let shoot = &real.shoot;
        let gateway = TcpProxy::start(shoot.plane.address()).await?;
        let through = format!("https://{}", gateway.address());
        let through = shoot
            .plane
            .admin_kubeconfig()
            .replace(&shoot.plane.url(), &through);
        let (notice, noticed) = watch::channel(false);
        let ways = Ways {
            dying: KubeApi::connect(&through).await?,
            other: shoot.plane.api().clone(),
            noticed,
        };
        let mut kubelets = LeaseRenewers::new(ways, shoot.nodes.beat());
        // The third node is connected through the other gateway.
        for (number, name) in (0..).zip(&shoot.nodes.names()[..2]) {
            kubelets.join(name, shoot.nodes.beat() / 3 * number);
        }
        shoot.nodes.cut(0..2);
        let _prober = start_prober(&seed, ProberConfig::gardener()).await?;
        shoot.after_probes(1).await?;

        let begin = shoot.history().len();
        gateway.set(ProxyMode::Stalled);
        let kubelets_notice = async {
            sleep(UNTIL_NOTICED).await;
            notice.send_replace(true);
            Ok(())
        };
        tokio::try_join!(kubelets_notice, shoot.held_down(&USUAL))?;
        shoot.free_at(&USUAL).await?;
        let writes = shoot.writes_since(begin);
        ensure!(writes.len() == 6, "{writes:?}");
        real.none_was_given_up()?;
        real.shoot.end().await
    })
}
