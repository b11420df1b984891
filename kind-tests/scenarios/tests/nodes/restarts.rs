//! Pods whose containers end once, as ordinary ones do, at the moment from which the weeder deletes
//! pods.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testbed::followed::Followed;
use testbed::kube_api::ObjectChange;
use testbed::objects::metadata;
use testbed::{KubeApi, PATIENCE, eventually, eventually_within};
use tokio::time::Instant;

use crate::weeding::{NeededService, container};

/// How many there are: they restart at the same time.
const PODS: usize = 8;
const ROLE: &str = "apiserver";

/// How the containers are seen to restart.
#[derive(Default)]
struct Restarts {
    /// When `terminated` was first shown, by the UID of a pod that does not run again.
    ended: BTreeMap<String, Instant>,
    /// For how many seconds it was shown.
    shown: Vec<f64>,
    deleted: usize,
}

impl Restarts {
    fn observe(&mut self, change: ObjectChange) {
        let pod = match change {
            ObjectChange::Set(pod) => pod,
            ObjectChange::Gone(_) => {
                self.deleted += 1;
                return;
            }
        };
        let (uid, state) = (metadata(&pod, "uid"), &status(&pod)["state"]);
        if state["terminated"].is_object() {
            self.ended
                .entry(uid.to_owned())
                .or_insert_with(Instant::now);
        } else if state["running"].is_object()
            && let Some(ended) = self.ended.remove(uid)
        {
            self.shown.push(ended.elapsed().as_secs_f64());
        }
    }
}

/// Lets the containers of pods end with an error each time that they have run for so long, all
/// together and as the window of the weeder opens. Returns for each time for how many seconds
/// `terminated` was shown.
///
/// # Errors
/// When a pod is deleted.
pub async fn restarts(api: &KubeApi, runs: &[Duration]) -> Result<Vec<Vec<f64>>> {
    let service = NeededService::create(api, "restarts", true).await?;
    // It ends when its Service is back; one that does not answer once is not away.
    let asks = service.asks();
    let script = format!(
        "away=0; while [ $away -lt 5 ]; do {asks} && away=0 || away=$((away + 1)); sleep 1; done; touch away; until {asks}; do sleep 1; done; exit 1"
    );
    let mut server = container("server", script);
    server["readinessProbe"] =
        json!({"exec": {"command": ["/bin/test", "-e", "away"]}, "periodSeconds": 1});
    let spec = json!({"containers": [server]});
    service.deploy("kube-apiserver", ROLE, PODS, spec).await?;

    let pods = service.pods(ROLE);
    let seen = Followed::start(api, pods, Restarts::default(), Restarts::observe);
    let mut shown = Vec::new();
    for run in runs {
        service.set(false).await?;
        let have_run = "all run for so long, and miss the Service";
        eventually_within(have_run, *run + PATIENCE, async || {
            let pods = service.list(ROLE).await?;
            let ready = pods.iter().filter(|pod| status(pod)["ready"] == true);
            let ages: Vec<_> = ready.map(age).collect::<Result<_>>()?;
            ensure!(
                ages.len() == PODS && ages.iter().all(|age| age >= run),
                "{ages:.0?}"
            );
            Ok(())
        })
        .await?;
        service.set(true).await?;
        let restarts = eventually("each has restarted, or was deleted", async || {
            let mut seen = seen.get();
            let Restarts { shown, deleted, .. } = &*seen;
            ensure!(shown.len() + deleted >= PODS, "{shown:.1?}, {deleted}");
            Ok(std::mem::take(&mut *seen))
        });
        let Restarts {
            shown: times,
            deleted,
            ..
        } = restarts.await?;
        ensure!(deleted == 0, "{deleted} pods were deleted, {times:.1?}");
        shown.push(times);
    }
    Ok(shown)
}

fn status(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

/// For how long the container of a pod runs.
fn age(pod: &Value) -> Result<Duration> {
    let started = status(pod)["state"]["running"]["startedAt"].as_str();
    let started = DateTime::parse_from_rfc3339(started.context("it does not run")?)?;
    Ok((Utc::now() - started.to_utc()).to_std().unwrap_or_default())
}
