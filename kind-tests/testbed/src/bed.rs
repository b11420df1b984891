//! What all scenarios of one test process share: a runtime, etcd, a certificate authority, and
//! control planes that are lent and given back.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Result, ensure};
use api_server::Authority;
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, Semaphore};

use crate::control_plane::{ApiServer, Baseline, ControlPlane, Etcd, ForNodes};
use crate::go_programs;
use crate::loan::{Idle, IdlePlanes, Loan};
use crate::prober::{Prober, ProberConfig};
use crate::secrets;
use crate::seed::SeedCluster;
use crate::stalls::tolerating_stalls;
use crate::wait::eventually;

/// One runtime for the whole process: what a scenario leaves to the next ones must not end with
/// that scenario.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new().expect("a runtime needs nothing but threads"));
static BED: LazyLock<Testbed> = LazyLock::new(Testbed::new);

/// API servers that start at once: each keeps a core busy for some seconds.
const STARTS: usize = 2;
/// What an API server creates by itself, some time after it is ready.
const SYSTEM: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// What the scenarios of a test process share.
pub struct Testbed {
    local: OnceCell<Local>,
    starts: Semaphore,
    serial: AtomicUsize,
    idle_shoots: IdlePlanes,
    idle_seeds: IdlePlanes,
    shared: tokio::sync::Mutex<Option<Arc<SeedCluster>>>,
}

struct Local {
    programs: PathBuf,
    etcd: Etcd,
    authority: Authority,
}

/// Runs a scenario on the shared runtime; once more where it fails and this machine stood still
/// meanwhile.
pub fn scenario(act: impl AsyncFn(&'static Testbed) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(tolerating_stalls(async || lent(&act).await))
}

/// Runs something on the shared runtime, once.
pub fn with_bed(act: impl AsyncFnOnce(&'static Testbed) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(lent(act))
}

/// Does something with the testbed. It fails also when any program under test has leaked a
/// credential so far.
async fn lent(act: impl AsyncFnOnce(&'static Testbed) -> Result<()>) -> Result<()> {
    match (act(&BED).await, secrets::all().no_leaks()) {
        (Err(error), Err(leaks)) => Err(error.context(leaks)),
        (result, no_leaks) => result.and(no_leaks),
    }
}

impl Testbed {
    fn new() -> Self {
        // Whoever installed one before us is welcome.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Self {
            local: OnceCell::new(),
            starts: Semaphore::new(STARTS),
            serial: AtomicUsize::new(0),
            idle_shoots: Arc::default(),
            idle_seeds: Arc::default(),
            shared: tokio::sync::Mutex::default(),
        }
    }

    async fn local(&self) -> Result<&Local> {
        self.local
            .get_or_try_init(async || {
                let programs = go_programs::built("control-plane")?;
                let etcd = Etcd::start(&programs).await?;
                Ok(Local {
                    programs,
                    etcd,
                    authority: Authority::new()?,
                })
            })
            .await
    }

    /// The folder with kube-controller-manager.
    pub async fn programs(&self) -> Result<PathBuf> {
        Ok(self.local().await?.programs.clone())
    }

    /// Lets etcd forget all that was before now, for every control plane of the testbed.
    ///
    /// # Errors
    /// When it does not do so.
    pub async fn compact(&self) -> Result<()> {
        self.local().await?.etcd.compact().await
    }

    /// A control plane of the testbed's own.
    pub async fn start_control_plane(&self, role: &str) -> Result<ControlPlane> {
        Ok(self.start_with_prefix(role).await?.0)
    }

    /// A control plane of the testbed's own, and what its keys in etcd begin with.
    async fn start_with_prefix(&self, role: &str) -> Result<(ControlPlane, String)> {
        let etcd = &self.local().await?.etcd;
        let _start = self.starts.acquire().await?;
        let name = format!("{role}-{}", self.serial.fetch_add(1, Ordering::Relaxed));
        Ok((self.start(etcd, &name, None).await?, name))
    }

    /// A control plane of the testbed's own, for real kubelets.
    pub async fn start_for_nodes(&self, role: &str, nodes: &ForNodes) -> Result<ControlPlane> {
        let etcd = &self.local().await?.etcd;
        self.start(etcd, role, Some(nodes)).await
    }

    /// A control plane with an etcd of its own, which may be stopped without harm to the others.
    pub async fn start_with_own_etcd(&self, role: &str) -> Result<(ControlPlane, Etcd)> {
        let etcd = Etcd::start(&self.local().await?.programs).await?;
        Ok((self.start(&etcd, role, None).await?, etcd))
    }

    async fn start(
        &self,
        etcd: &Etcd,
        name: &str,
        nodes: Option<&ForNodes>,
    ) -> Result<ControlPlane> {
        let local = self.local().await?;
        let server = ApiServer::start(&local.programs, etcd, &local.authority, name, nodes);
        let plane = Arc::new(server.await?);
        eventually("the API server has created its namespaces", async || {
            let namespaces = plane.api().names("/api/v1/namespaces").await?;
            let is_there = |name: &&str| namespaces.iter().any(|namespace| namespace == name);
            ensure!(SYSTEM.iter().all(is_there), "{namespaces:?}");
            Ok(())
        })
        .await?;
        Ok(plane)
    }

    /// A control plane for a shoot.
    pub(crate) async fn lend_shoot(&self) -> Result<(ControlPlane, Loan)> {
        self.lend(&self.idle_shoots, "shoot", async |_| Ok(()))
            .await
    }

    /// A control plane that an earlier scenario had, as it was before, or a new one, with what
    /// `equip` brings.
    async fn lend(
        &self,
        pool: &IdlePlanes,
        role: &str,
        equip: impl AsyncFn(&ControlPlane) -> Result<()>,
    ) -> Result<(ControlPlane, Loan)> {
        let idle = pool.lock().pop();
        let idle = match idle {
            Some(idle) => {
                idle.baseline.restore().await?;
                // Its answers are as new as what they list.
                equip(&idle.plane).await?;
                idle
            }
            None => {
                let (plane, prefix) = self.start_with_prefix(role).await?;
                equip(&plane).await?;
                let baseline = Baseline::of(&self.local().await?.etcd, &prefix).await?;
                Idle { plane, baseline }
            }
        };
        Ok((idle.plane.clone(), Loan::new(pool, idle)))
    }

    /// The seed that ordinary scenarios share, with one prober at work on it. Another one where
    /// that prober has ended, as it does when it cannot renew its Lease for long enough.
    pub async fn seed(&'static self) -> Result<Arc<SeedCluster>> {
        let mut shared = self.shared.lock().await;
        if let Some(seed) = shared.as_ref().filter(|seed| seed.is_probed()) {
            return Ok(seed.clone());
        }
        let seed = self.prepared_seed().await?;
        seed.keep(Prober::start(&seed, ProberConfig::default()).await?);
        let seed = Arc::new(seed);
        *shared = Some(seed.clone());
        Ok(seed)
    }

    /// A seed for one scenario alone, with no prober yet.
    pub async fn own_seed(&'static self) -> Result<Arc<SeedCluster>> {
        Ok(Arc::new(self.prepared_seed().await?))
    }

    /// A seed with no prober yet.
    async fn prepared_seed(&'static self) -> Result<SeedCluster> {
        let lent = self.lend(&self.idle_seeds, "seed", SeedCluster::equip);
        let (plane, loan) = lent.await?;
        SeedCluster::begin(plane, Some(loan)).await
    }
}
