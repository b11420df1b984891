//! A shoot's etcd goes away, its kube-apiserver crash-loops, and etcd returns: what the weeder
//! saves of the back-off. etcd and kube-apiserver are real processes, and so are the seed's API
//! server, its controllers and the weeder; the kubelet is ours.
//!
//! Most of this is waiting. Tests begin in the order of their names, and with this name it begins
//! early.

mod kubelet;

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use testbed::control_plane::Etcd;
use testbed::{PATIENCE, Testbed};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::kubelet::{BACK_OFF, CrashingContainer, Kubelet, Phase};
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::weeder::plane::{ETCD, Plane, PodPhase};

/// The restarts until the back-off in which etcd returns: one after its liveness probe has failed.
/// That one has no etcd, and ends after 20 s.
const RESTARTS: u32 = 1;

#[test]
fn when_etcd_returns_kube_apiserver_starts_at_once_with_the_weeder_and_after_its_back_off_without()
-> Result<()> {
    on_ground(async |bed| {
        let (weeded, bare) = (Ground::shared(bed).await?, Ground::own(bed).await?);
        let (with, without) = tokio::try_join!(
            outage(bed, &weeded, "back-off", 1),
            outage(bed, &bare, "back-off-without-weeder", 0)
        )?;
        println!("with the weeder:    {with}\nwithout the weeder: {without}");

        let Return { before, after, .. } = &with;
        ensure!(
            after.pod != before.pod && after.restarts == 0,
            "not a new pod: {with:?}"
        );
        ensure!(
            after.started < with.due,
            "the old pod would have been restarted before: {with:?}"
        );

        let Return { before, after, .. } = &without;
        ensure!(
            after.pod == before.pod && after.restarts == before.restarts + 1,
            "not the same pod: {without:?}"
        );
        ensure!(
            after.started >= without.due,
            "restarted before its time: {without:?}"
        );
        Ok(())
    })
}

/// How kube-apiserver came back.
#[derive(Debug)]
struct Return {
    /// The container that was in back-off when etcd returned.
    before: CrashingContainer,
    /// When it was to be restarted.
    due: Instant,
    /// When etcd accepted connections again.
    etcd: Instant,
    /// The container that answers.
    after: CrashingContainer,
    /// When it was ready.
    ready: Instant,
}

impl fmt::Display for Return {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = |at: Instant| at.saturating_duration_since(self.etcd).as_secs_f64();
        write!(
            out,
            "of a back-off of {BACK_OFF:?} {:.1} s are left; kube-apiserver starts {:.1} s and is ready {:.1} s after etcd",
            since(self.due),
            since(self.after.started),
            since(self.ready),
        )
    }
}

/// The outage of one shoot's etcd, in which the weeder, if there is one, deletes so many pods.
async fn outage(
    bed: &'static Testbed,
    ground: &Arc<Ground>,
    name: &str,
    deleted: usize,
) -> Result<Return> {
    let plane = Plane::on(ground, name, 1).await?;
    let (shoot, mut etcd) = bed.start_with_own_etcd(name).await?;
    let kubelet = Kubelet::new(&plane, &shoot).await?;
    let mut containers = kubelet.containers();
    let story = async {
        plane.all("main", PodPhase::Ready).await?;
        until(&mut containers, "API server", |container| {
            container.phase == Phase::Ready
        })
        .await?;
        away_and_back(&plane, &mut etcd, &mut containers).await
    };
    let outcome = tokio::select! {
        outcome = story => outcome,
        Err(error) = kubelet.run() => Err(error.context("the kubelet")),
    };
    let outcome = outcome.with_context(|| ground.logged(&plane.namespace))?;
    drop(kubelet);
    plane.end(deleted).await?;
    Ok(outcome)
}

async fn away_and_back(
    plane: &Plane,
    etcd: &mut Etcd,
    containers: &mut watch::Receiver<Option<CrashingContainer>>,
) -> Result<Return> {
    let pods = plane.pods("apiserver").await?;
    etcd.kill().await?;
    plane.all("main", PodPhase::NotReady).await?;
    plane.service(ETCD, false).await?;
    let is_in_back_off = |container: &CrashingContainer| {
        matches!(container.phase, Phase::Ended(_)) && container.restarts == RESTARTS
    };
    let before = until(containers, "back-off", is_in_back_off).await?;
    let Phase::Ended(due) = before.phase else {
        anyhow::bail!("no back-off: {before:?}")
    };
    ensure!(
        pods.contains(&before.pod),
        "replaced while etcd was away: {before:?}, {pods:?}"
    );

    etcd.start_again().await?;
    let returned = Instant::now();
    plane.all("main", PodPhase::Ready).await?;
    let after = until(containers, "API server", |container| {
        container.phase == Phase::Ready
    })
    .await?;
    Ok(Return {
        before,
        due,
        etcd: returned,
        after,
        ready: Instant::now(),
    })
}

/// Waits until the container is so.
async fn until(
    containers: &mut watch::Receiver<Option<CrashingContainer>>,
    what: &str,
    is: impl Fn(&CrashingContainer) -> bool,
) -> Result<CrashingContainer> {
    let found = timeout(
        PATIENCE,
        containers.wait_for(|container| container.as_ref().is_some_and(&is)),
    )
    .await;
    found
        .with_context(|| format!("no {what} within {PATIENCE:?}"))??
        .clone()
        .context("no container")
}
