//! What all scenarios of one test process share: a runtime, etcd, and a certificate authority.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::Result;
use api_server::Authority;
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, Semaphore};

use crate::control_plane::{ApiServer, ControlPlane, Etcd, ForNodes};
use crate::go_programs;
use crate::secrets;
use crate::seed::SeedCluster;
use crate::stalls::tolerating_stalls;

/// One runtime for the whole process: what a scenario leaves to the next ones must not end with
/// that scenario.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new().expect("a runtime needs nothing but threads"));
static BED: LazyLock<Testbed> = LazyLock::new(Testbed::new);

/// API servers that start at once: each keeps a core busy for some seconds.
const STARTS: usize = 2;

/// What the scenarios of a test process share.
pub struct Testbed {
    local: OnceCell<Local>,
    starts: Semaphore,
    serial: AtomicUsize,
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
        }
    }

    async fn local(&self) -> Result<&Local> {
        self.local
            .get_or_try_init(async || {
                let programs = go_programs::built("control-plane")?;
                Ok(Local {
                    etcd: Etcd::start(&programs).await?,
                    authority: Authority::new()?,
                    programs,
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

    /// A control plane with a part of etcd for itself.
    pub async fn start_control_plane(&self, role: &str) -> Result<ControlPlane> {
        let name = format!("{role}-{}", self.serial.fetch_add(1, Ordering::Relaxed));
        self.start(&self.local().await?.etcd, &name, None).await
    }

    /// One for real kubelets.
    pub async fn start_for_nodes(&self, role: &str, nodes: &ForNodes) -> Result<ControlPlane> {
        self.start(&self.local().await?.etcd, role, Some(nodes))
            .await
    }

    /// One with an etcd of its own, which may be stopped without harm to the others.
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
        let _start = self.starts.acquire().await?;
        let server = ApiServer::start(&local.programs, etcd, &local.authority, name, nodes);
        server.await.map(Arc::new)
    }

    /// A seed for one scenario alone, with no prober yet.
    pub async fn own_seed(&self) -> Result<Arc<SeedCluster>> {
        let plane = self.start_control_plane("seed").await?;
        SeedCluster::prepare(plane).await.map(Arc::new)
    }
}
