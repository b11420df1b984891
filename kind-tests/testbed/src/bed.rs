//! What all scenarios of one test process share: a runtime, etcd, a certificate authority, and
//! control planes that are lent and given back.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result};
use api_server::Authority;
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, Semaphore};

use crate::control_plane::{ApiServer, Baseline, Etcd, ForNodes};
use crate::go_programs;
use crate::prober::{Prober, ProberConfig};
use crate::secrets;
use crate::seed::{ControlPlane, Idle, Loan, SeedCluster};
use crate::stalls::tolerating_stalls;

/// One runtime for the whole process: what a scenario leaves to the next ones must not end with
/// that scenario.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new().expect("a runtime needs nothing but threads"));
static BED: OnceCell<Testbed> = OnceCell::const_new();

/// API servers that start at once: each keeps a core busy for some seconds.
const STARTS: usize = 2;

/// What the scenarios of a test process share.
pub struct Testbed {
    local: OnceCell<Local>,
    starts: Semaphore,
    serial: AtomicUsize,
    idle: Mutex<Vec<ControlPlane>>,
    idle_seeds: Arc<Mutex<Vec<Idle>>>,
    shared: tokio::sync::Mutex<Option<Arc<SeedCluster>>>,
    /// Kubeconfigs of clusters that somebody else has started: SEED_KUBECONFIG and
    /// SHOOT_KUBECONFIG.
    given: Option<(String, String)>,
    /// Given clusters have room for one scenario at a time.
    turn: Semaphore,
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
    let bed = BED.get_or_try_init(async || Testbed::new()).await?;
    let turn = if bed.is_given() {
        Some(bed.turn.acquire().await?)
    } else {
        None
    };
    let result = act(bed).await;
    drop(turn);
    match (result, secrets::all().no_leaks()) {
        (Err(error), Err(leaks)) => Err(error.context(leaks)),
        (result, no_leaks) => result.and(no_leaks),
    }
}

/// Runs a scenario on the testbed's own control planes alone; on given clusters it says `why` not.
pub fn own_scenario(why: &str, act: impl AsyncFn(&'static Testbed) -> Result<()>) -> Result<()> {
    scenario(async |bed| {
        if bed.is_given() {
            eprintln!("skipped: {why}");
            return Ok(());
        }
        act(bed).await
    })
}

impl Testbed {
    fn new() -> Result<Self> {
        // Whoever installed one before us is welcome.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let read = |variable: &str| {
            let path = std::env::var_os(variable);
            let text = path.map(std::fs::read_to_string).transpose();
            text.with_context(|| variable.to_owned())
        };
        let given = match (read("SEED_KUBECONFIG")?, read("SHOOT_KUBECONFIG")?) {
            (Some(seed), Some(shoot)) => Some((seed, shoot)),
            (None, None) => None,
            _ => anyhow::bail!("SEED_KUBECONFIG and SHOOT_KUBECONFIG go together"),
        };
        Ok(Self {
            local: OnceCell::new(),
            starts: Semaphore::new(STARTS),
            serial: AtomicUsize::new(0),
            idle: Mutex::default(),
            idle_seeds: Arc::default(),
            shared: tokio::sync::Mutex::default(),
            given,
            turn: Semaphore::new(1),
        })
    }

    /// Whether the clusters are somebody else's: then there is no audit log, and no server of ours
    /// to stop.
    pub fn is_given(&self) -> bool {
        self.given.is_some()
    }

    async fn local(&self) -> Result<&Local> {
        self.local
            .get_or_try_init(async || {
                let programs = go_programs::built("control-plane").await?;
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

    /// The authority that signs the certificates of the testbed's servers.
    pub async fn authority(&self) -> Result<&Authority> {
        Ok(&self.local().await?.authority)
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
        ControlPlane::own(server.await?).await
    }

    /// A control plane for a shoot: one that an earlier scenario has given back, or a new one.
    pub async fn lend(&self) -> Result<ControlPlane> {
        if let Some((_, shoot)) = &self.given {
            return ControlPlane::given(shoot).await;
        }
        let idle = self.idle.lock().pop();
        match idle {
            Some(plane) => Ok(plane),
            None => self.start_control_plane("shoot").await,
        }
    }

    /// Takes a clean control plane back.
    pub fn give_back(&self, plane: ControlPlane) {
        if self.given.is_none() {
            self.idle.lock().push(plane);
        }
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
        if self.is_given() {
            // Two probers on one seed would fight: the shared one ends with its seed.
            *self.shared.lock().await = None;
        }
        Ok(Arc::new(self.prepared_seed().await?))
    }

    /// A seed that an earlier scenario had, as it was before, or a new one.
    async fn prepared_seed(&'static self) -> Result<SeedCluster> {
        if let Some((seed, _)) = &self.given {
            return SeedCluster::prepare(ControlPlane::given(seed).await?).await;
        }
        let idle = self.idle_seeds.lock().pop();
        let seed = match idle {
            Some(seed) => {
                seed.baseline.restore().await?;
                // Its answers are as new as what they list.
                SeedCluster::equip(&seed.plane).await?;
                seed
            }
            None => {
                let (plane, prefix) = self.start_with_prefix("seed").await?;
                SeedCluster::equip(&plane).await?;
                Idle {
                    plane,
                    baseline: Baseline::of(&self.local().await?.etcd, &prefix).await?,
                }
            }
        };
        SeedCluster::begin(seed.plane.clone(), Some(Loan::new(&self.idle_seeds, seed))).await
    }
}
