//! A kubelet for kube-apiserver's only pod: the container is a real process, which is restarted
//! with CrashLoopBackOff's waits, and the pod's status on the seed says what has become of it, as
//! kubelets of Kubernetes 1.36 do: they write it, then they try to start what has ended, and in
//! back-off they look at the pod again only at its end. Not before that is CrashLoopBackOff
//! written.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::control_plane::{ApiServer, reserve_port};
use testbed::seed::ControlPlane;
use testbed::{PATIENCE, eventually};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::weeder::plane::{Plane, PodPhase};

/// kube-apiserver's role among the pods of a control plane.
const ROLE: &str = "apiserver";
/// How often it looks at its process, and at whether the pod is still wanted. A deletion reaches a
/// kubelet at once, by its watch.
const TICK: Duration = Duration::from_millis(100);
/// How long a container waits after its second end, and then twice as long each time (a kubelet's
/// `initialCrashLoopBackOff` in Kubernetes 1.36). Its longest wait of five minutes is never reached
/// here.
pub const BACK_OFF: Duration = Duration::from_secs(10);
/// Gardener's failureThreshold of kube-apiserver's liveness probe. Its periodSeconds, 10, only
/// delays the beginning.
const FAILURES: u32 = 3;

/// The container of the pod that is there now.
#[derive(Clone, Debug)]
pub struct CrashingContainer {
    /// The pod's name and UID.
    pub pod: (String, String),
    /// How often it was restarted.
    pub restarts: u32,
    /// When it was started last.
    pub started: Instant,
    pub phase: Phase,
}

/// How far a container is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    Starting,
    Ready,
    /// It is started again then: at once after its first end, later at the end of its back-off.
    Ended(Instant),
}

/// The kubelet, and what it reports.
pub struct Kubelet<'a> {
    plane: &'a Plane,
    shoot: &'a ControlPlane,
    server: &'a ApiServer,
    /// The server's port, which must stay its own while it is away.
    _port: TcpSocket,
    reports: watch::Sender<Option<CrashingContainer>>,
}

impl<'a> Kubelet<'a> {
    /// A kubelet that starts the API server of `shoot` in the pod of `plane`. The one that runs
    /// already is killed.
    pub async fn new(plane: &'a Plane, shoot: &'a ControlPlane) -> Result<Self> {
        let server = shoot.server().context("an API server of our own")?;
        server.process().signal(Signal::SIGKILL)?;
        eventually("its port is free", async || {
            ensure!(
                TcpStream::connect(shoot.address()).await.is_err(),
                "somebody listens"
            );
            Ok(())
        })
        .await?;
        Ok(Self {
            plane,
            shoot,
            server,
            _port: reserve_port(shoot.address().port())?,
            reports: watch::Sender::new(None),
        })
    }

    /// What becomes of the container.
    pub fn containers(&self) -> watch::Receiver<Option<CrashingContainer>> {
        self.reports.subscribe()
    }

    /// Runs one pod after the other.
    pub async fn run(&self) -> Result<Infallible> {
        loop {
            let pod = self.plane.count(ROLE, 1).await?.pop().context("no pod")?;
            tokio::select! {
                Err(error) = self.keep_running(&pod) => return Err(error),
                deleted = self.deleted(&pod) => deleted?,
            }
            self.plane
                .api()
                .delete(&format!("{}/{}", self.plane.path("/api/v1", "pods"), pod.0))
                .await?;
        }
    }

    /// Waits until somebody deletes the pod.
    async fn deleted(&self, pod: &(String, String)) -> Result<()> {
        while self.plane.pods(ROLE).await?.contains(pod) {
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Starts the container again and again.
    async fn keep_running(&self, pod: &(String, String)) -> Result<Infallible> {
        let mut wait = Duration::ZERO;
        let mut container = CrashingContainer {
            pod: pod.clone(),
            restarts: 0,
            started: Instant::now(),
            phase: Phase::Starting,
        };
        loop {
            self.run_once(&mut container).await?;
            let due = Instant::now() + wait;
            self.report(&mut container, Phase::Ended(due)).await?;
            if !wait.is_zero() {
                sleep_until(due).await;
                self.plane
                    .report(&container.pod.0, PodPhase::Crashing, container.restarts)
                    .await?;
            }
            container.restarts += 1;
            wait = (wait * 2).max(BACK_OFF);
        }
    }

    /// Runs the container until it ends, or is ended because it was ready and is no longer alive.
    async fn run_once(&self, container: &mut CrashingContainer) -> Result<()> {
        container.started = Instant::now();
        let mut process = self.server.run()?;
        self.report(container, Phase::Starting).await?;
        let mut failures = 0;
        while process.ended()?.is_none() {
            let ready = container.phase == Phase::Ready;
            match self
                .shoot
                .api()
                .text(if ready { "/livez" } else { "/readyz" })
                .await
            {
                Ok(_) if ready => failures = 0,
                Ok(_) => self.report(container, Phase::Ready).await?,
                Err(_) if ready => failures += 1,
                Err(_) => {}
            }
            if failures == FAILURES {
                // A kubelet asks first. Without etcd kube-apiserver does not end within its grace,
                // which only delays the beginning.
                process.signal(Signal::SIGKILL)?;
                process.end(PATIENCE).await?;
            }
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Writes the pod's status on the seed, and reports it to whoever waits for it.
    async fn report(&self, container: &mut CrashingContainer, phase: Phase) -> Result<()> {
        container.phase = phase;
        let state = match phase {
            Phase::Starting => PodPhase::NotReady,
            Phase::Ready => PodPhase::Ready,
            Phase::Ended(_) => PodPhase::Terminated,
        };
        self.plane
            .report(&container.pod.0, state, container.restarts)
            .await?;
        self.reports.send_replace(Some(container.clone()));
        Ok(())
    }
}
