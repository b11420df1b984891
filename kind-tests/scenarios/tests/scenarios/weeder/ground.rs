//! A seed with a weeder at work, and Kubernetes' own controllers for ReplicaSets and
//! EndpointSlices.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::agent::{AgentKind, AgentStart, RunningAgent};
use testbed::audit::Asked;
use testbed::gardener::{GARDEN, WEEDER, weeder_access};
use testbed::log::tail;
use testbed::process::Process;
use testbed::{SeedCluster, Testbed, eventually};
use tokio::sync::Mutex;

use crate::election::leading;
use crate::shows;

const USER: &str = "system:serviceaccount:garden:dependency-watchdog-weeder";
/// The node of all pods: without one none becomes an endpoint.
pub const NODE: &str = "weeder";

/// A seed whose controllers run, and the weeders on it.
pub struct Ground {
    weeders: AtomicUsize,
    _controllers: Process,
    /// The last to be dropped, since another scenario has it then.
    pub seed: Arc<SeedCluster>,
}

/// What ordinary scenarios share.
static SHARED: Mutex<Option<(Arc<Ground>, RunningAgent)>> = Mutex::const_new(None);

impl Ground {
    /// The ground with one weeder that ordinary scenarios share. Another one where that weeder has
    /// ended.
    pub async fn shared(bed: &'static Testbed) -> Result<Arc<Self>> {
        let mut shared = SHARED.lock().await;
        if let Some((ground, weeder)) = &mut *shared
            && weeder.ended()?.is_none()
        {
            return Ok(ground.clone());
        }
        let ground = Self::own(bed).await?;
        let weeder = ground.leader(&[]).await?;
        *shared = Some((ground.clone(), weeder));
        Ok(ground)
    }

    /// A ground for one scenario, with no weeder yet.
    pub async fn own(bed: &'static Testbed) -> Result<Arc<Self>> {
        let seed = bed.own_seed().await?;
        seed.api().create_all(&weeder_access()).await?;
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"bed": "weeder"}}});
        seed.api().create(&node).await?;
        let file = |name: &str| seed.folder().join(name);
        std::fs::write(file("admin"), seed.plane().admin_kubeconfig())?;
        let args = [
            format!("--kubeconfig={}", file("admin").display()),
            "--controllers=endpointslice-controller,replicaset-controller".into(),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        let program = bed.programs().await?.join("kube-controller-manager");
        let controllers = Process::start(
            "kube-controller-manager",
            &program,
            &args,
            &file("controllers-log"),
        )?;
        Ok(Arc::new(Self {
            weeders: AtomicUsize::new(0),
            _controllers: controllers,
            seed,
        }))
    }

    /// Starts a weeder with Gardener's arguments and these.
    pub async fn weeder(&self, args: &[&str]) -> Result<RunningAgent> {
        let serial = self.weeders.fetch_add(1, Ordering::Relaxed);
        let token = self.seed.api().token(GARDEN, WEEDER).await?;
        let kubeconfig = self
            .seed
            .plane()
            .kubeconfig(&self.seed.plane().url(), &token);
        let name = format!("weeder-{serial}");
        let start = AgentStart::new(
            AgentKind::Weeder,
            self.seed.folder(),
            &name,
            &kubeconfig,
            AgentKind::Weeder.config(),
        )?;
        start.with(args.iter().copied()).run()
    }

    /// Starts one and waits until it leads and watches.
    pub async fn leader(&self, args: &[&str]) -> Result<RunningAgent> {
        let weeder = self.weeder(args).await?;
        leading(&weeder).await?;
        self.watched().await?;
        Ok(weeder)
    }

    fn log(&self, serial: usize) -> PathBuf {
        self.seed.folder().join(format!("weeder-{serial}.log"))
    }

    /// What the weeders have logged lately of a namespace.
    pub fn logged(&self, namespace: &str) -> String {
        let weeders = 0..self.weeders.load(Ordering::Relaxed);
        weeders
            .map(|serial| {
                format!(
                    "weeder {serial}:\n{}\n",
                    tail(&self.log(serial), 20, namespace)
                )
            })
            .collect()
    }

    /// Waits until some weeder has watched both kinds of objects.
    pub async fn watched(&self) -> Result<()> {
        eventually("a weeder watches", async || {
            let watches = self
                .asked()
                .into_iter()
                .filter(|asked| asked.verb == "watch" && asked.code == 200);
            let watched: BTreeSet<String> = watches.map(|asked| asked.resource).collect();
            ensure!(
                watched.contains("pods") && watched.contains("endpointslices"),
                "{watched:?}\n{}",
                self.logged("")
            );
            Ok(())
        })
        .await
    }

    /// What weeders have asked for.
    pub fn asked(&self) -> Vec<Asked> {
        self.seed.asked_by(USER)
    }

    /// The weeders' DELETEs in a namespace.
    pub fn deletes(&self, namespace: &str) -> Vec<Asked> {
        self.asked()
            .into_iter()
            .filter(|asked| asked.verb == "delete" && asked.namespace == namespace)
            .collect()
    }

    /// Nothing was forbidden to any weeder.
    pub fn requests_within_rights(&self) -> Result<()> {
        let forbidden: Vec<Asked> = self
            .asked()
            .into_iter()
            .filter(|asked| matches!(asked.code, 401 | 403))
            .collect();
        ensure!(forbidden.is_empty(), "{forbidden:#?}");
        Ok(())
    }
}

/// Waits until a weeder knows of every outage: no window is open.
pub async fn no_window(weeder: &RunningAgent) -> Result<()> {
    shows(weeder.log_file(), "dwd_weeder_windows_open", 0.0..=0.0).await
}
