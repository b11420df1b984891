//! A seed with a weeder at work, and Kubernetes' own controllers for ReplicaSets and EndpointSlices.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testbed::agent::{Agent, Kind, Start};
use testbed::audit::Asked;
use testbed::gardener::{GARDEN, WEEDER, weeder_access};
use testbed::log::{lines, tail};
use testbed::page::metrics;
use testbed::process::Process;
use testbed::shoot::PATIENCE;
use testbed::{Bed, Seed, eventually};
use tokio::sync::OnceCell;

const USER: &str = "system:serviceaccount:garden:dependency-watchdog-weeder";
/// The node of all pods: without one none becomes an endpoint.
pub const NODE: &str = "weeder";

/// A seed whose controllers run, and the weeders on it.
pub struct Ground {
    pub seed: Arc<Seed>,
    weeders: AtomicUsize,
    _controllers: Process,
}

/// What ordinary scenarios share.
static SHARED: OnceCell<(Arc<Ground>, Weeder)> = OnceCell::const_new();

impl Ground {
    /// The ground with one weeder that ordinary scenarios share.
    pub async fn shared(bed: &'static Bed) -> Result<Arc<Self>> {
        let begin = async || {
            let ground = Self::own(bed).await?;
            let weeder = ground.weeder(&[]).await?;
            weeder.leads().await?;
            ground.watched().await?;
            anyhow::Ok((ground, weeder))
        };
        Ok(SHARED.get_or_try_init(begin).await?.0.clone())
    }

    /// A ground for one scenario, with no weeder yet.
    pub async fn own(bed: &'static Bed) -> Result<Arc<Self>> {
        let seed = bed.own_seed().await?;
        seed.apply(weeder_access()).await?;
        let node = json!({"metadata": {"name": NODE, "labels": {"bed": "weeder"}}});
        seed.apply(vec![("/api/v1/nodes".into(), node)]).await?;
        let file = |name: &str| seed.folder().join(name);
        std::fs::write(file("admin"), seed.plane().admin_kubeconfig())?;
        let args = [
            format!("--kubeconfig={}", file("admin").display()),
            "--controllers=endpointslice-controller,replicaset-controller".into(),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        let program = bed.programs().await?.join("kube-controller-manager");
        let controllers = Process::start("kube-controller-manager", &program, &args, &file("controllers-log"))?;
        Ok(Arc::new(Self { seed, weeders: AtomicUsize::new(0), _controllers: controllers }))
    }

    /// Starts a weeder with Gardener's arguments and these.
    pub async fn weeder(&self, args: &[&str]) -> Result<Weeder> {
        let serial = self.weeders.fetch_add(1, Ordering::Relaxed);
        let token = self.seed.api().token(GARDEN, WEEDER).await?;
        let kubeconfig = self.seed.plane().kubeconfig(&self.seed.plane().url(), &token);
        let name = format!("weeder-{serial}");
        let start = Start::new(Kind::Weeder, self.seed.folder(), &name, &kubeconfig, Kind::Weeder.config())?;
        let start = start.with(args.iter().copied());
        Ok(Weeder { agent: start.run()?, log: start.log })
    }

    fn log(&self, serial: usize) -> PathBuf {
        self.seed.folder().join(format!("weeder-{serial}.log"))
    }

    /// What the weeders have told lately of a namespace.
    pub fn told(&self, namespace: &str) -> String {
        let weeders = 0..self.weeders.load(Ordering::Relaxed);
        weeders.map(|serial| format!("weeder {serial}:\n{}\n", tail(&self.log(serial), 20, namespace))).collect()
    }

    /// Waits until some weeder has watched both kinds of objects.
    pub async fn watched(&self) -> Result<()> {
        eventually("a weeder watches", PATIENCE, async || {
            let watches = self.asked().into_iter().filter(|asked| asked.verb == "watch" && asked.code == 200);
            let watched: BTreeSet<String> = watches.map(|asked| asked.resource).collect();
            ensure!(watched.contains("pods") && watched.contains("endpointslices"), "{watched:?}\n{}", self.told(""));
            Ok(())
        })
        .await
    }

    /// What weeders have asked for.
    pub fn asked(&self) -> Vec<Asked> {
        self.seed.plane().asked(&Default::default()).into_iter().filter(|asked| asked.user == USER).collect()
    }

    /// The weeders' DELETEs in a namespace.
    pub fn deletes(&self, namespace: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.verb == "delete" && asked.namespace == namespace).collect()
    }

    /// Nothing was forbidden to any weeder.
    pub fn lawful(&self) -> Result<()> {
        let forbidden: Vec<Asked> = self.asked().into_iter().filter(|asked| matches!(asked.code, 401 | 403)).collect();
        ensure!(forbidden.is_empty(), "{forbidden:#?}");
        Ok(())
    }
}

/// A running weeder. Dropping it kills it.
pub struct Weeder {
    pub agent: Agent,
    pub log: PathBuf,
}

impl Weeder {
    /// By which name it leads; none while it does not.
    pub fn identity(&self) -> Option<String> {
        let told = lines(&self.log, "\"leading\"");
        told.iter().find(|line| line["msg"] == "leading").and_then(|line| line["identity"].as_str()).map(Into::into)
    }

    /// Waits until it says that it leads; by which name.
    pub async fn leads(&self) -> Result<String> {
        eventually("the weeder leads", PATIENCE, async || {
            self.identity().with_context(|| format!("it does not say so:\n{}", tail(&self.log, 5, "")))
        })
        .await
    }

    /// Waits until it knows of the outage: no window is open.
    pub async fn rests(&self) -> Result<()> {
        eventually("no open window", PATIENCE, async || {
            let open = metrics(&self.log).await?.value("dwd_weeder_windows_open")?;
            ensure!(open == 0.0, "{open}");
            Ok(())
        })
        .await
    }

    /// Holds it up until what is returned is dropped.
    pub fn paused(&self) -> Result<Paused<'_>> {
        self.agent.pause(true)?;
        Ok(Paused(&self.agent))
    }
}

/// A weeder that does nothing.
pub struct Paused<'a>(&'a Agent);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        // When it has ended meanwhile, the scenario notices that by itself.
        let _ = self.0.pause(false);
    }
}
