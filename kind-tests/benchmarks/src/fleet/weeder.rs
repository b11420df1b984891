//! The weeder on a full seed: what its start asks for, and how soon a pod is deleted once the Service that it needs is back.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use clap::Args;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use testbed::agent::{Agent, Kind};
use testbed::audit::{Asked, Mark};
use testbed::gardener::{self, GARDEN, WEEDER, weeder_access};
use testbed::page::page;
use testbed::usage::Usage;
use testbed::{Bed, KubeApi, Seed, eventually};
use tokio::time::{Instant, interval, sleep_until};

use crate::course::seconds;
use crate::report::Goal::{AtMost, Exactly};
use crate::report::{Report, progress};

/// The Service that comes back, and the pod that waits for it.
const SERVICE: &str = "kube-apiserver";
const DEPENDANT: &str = "controller-manager";
/// The pods of a control plane: the one that waits, what the Services stand for, and what else there is.
const PODS: [(&str, &str); 12] = [
    ("kube-controller-manager", DEPENDANT),
    ("etcd-main-0", "main"),
    ("kube-apiserver-a", "apiserver"),
    ("kube-apiserver-b", "apiserver"),
    ("kube-scheduler", "scheduler"),
    ("machine-controller-manager", "machine-controller-manager"),
    ("cluster-autoscaler", "cluster-autoscaler"),
    ("cloud-controller-manager", "cloud-controller-manager"),
    ("csi-driver-controller", "csi-driver-controller"),
    ("gardener-resource-manager", "gardener-resource-manager"),
    ("vpn-seed-server", "vpn"),
    ("prometheus-shoot-0", "monitoring"),
];
const SLICES: [&str; 2] = ["etcd-main-client", SERVICE];
/// Objects per page of a list, the size that kubectl and the weeder use.
const PAGE: usize = 500;
/// Between two bursts of recoveries in the first seconds after a start.
const BETWEEN: Duration = Duration::from_millis(500);
const IN_FLIGHT: usize = 24;
const PATIENCE: Duration = Duration::from_secs(30);
/// By then all windows that a start opens are open.
const WINDOWS: Duration = Duration::from_secs(60);

/// How the seed is.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How many shoots.
    #[arg(long, default_value_t = 300)]
    shoots: usize,
    /// Services that come back at once.
    #[arg(long, default_value_t = 20)]
    at_once: usize,
    /// How often that happens while all is quiet, and as often again in the first seconds after a start.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// How many of the latter come after one start.
    #[arg(long, default_value_t = 5)]
    rounds_per_start: usize,
    /// For how many seconds the requests of a start are counted; the Go original's were in 20.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// Runs it.
pub async fn run(bed: &'static Bed, options: Options) -> Result<()> {
    let Options { shoots, at_once, rounds, rounds_per_start, seconds: counted } = options;
    ensure!(shoots >= at_once * rounds_per_start && rounds_per_start > 0, "too few shoots for so many recoveries");
    let seed = bed.own_seed().await?;
    seed.apply(weeder_access()).await?;
    progress(format!("filling a seed with the Services and pods of {shoots} shoots"));
    fill(seed.api(), shoots).await?;
    let token = seed.api().token(GARDEN, WEEDER).await?;
    let ground = Ground { kubeconfig: seed.plane().kubeconfig(&seed.plane().url(), &token), seed: &seed };

    progress(format!("a start, its first {counted} s"));
    let mark = seed.plane().mark();
    let begin = Instant::now();
    let weeder = ground.start().await?;
    sleep_until(begin + Duration::from_secs(counted)).await;
    let asked = ground.asked(&mark);
    let usage = Usage::of(weeder.id())?;

    // The windows that a start opens are spread over half a minute; what follows needs them open, so that it is seen when they
    // close.
    eventually("all first windows are open", WINDOWS, async || {
        let open = weeder.log("\"cause\"").len();
        ensure!(open >= shoots * SLICES.len(), "{open}");
        Ok(())
    })
    .await?;
    progress(format!("{rounds} times {at_once} recoveries at once"));
    let mut quiet = Vec::new();
    for round in 0..rounds {
        let first = round * at_once % (shoots - at_once + 1);
        let places = first..first + at_once;
        ground.break_down(Some(&weeder), places.clone()).await?;
        quiet.extend(ground.recover(places).await?);
    }
    super::end(weeder).await?;

    progress(format!("{rounds} times {at_once} recoveries at once, in the first seconds after a start"));
    let mut early = Vec::new();
    for done in (0..rounds).step_by(rounds_per_start) {
        let bursts = rounds_per_start.min(rounds - done);
        ground.break_down(None, 0..bursts * at_once).await?;
        let weeder = ground.start().await?;
        let mut ticks = interval(BETWEEN);
        for burst in 0..bursts {
            ticks.tick().await;
            early.extend(ground.recover(burst * at_once..(burst + 1) * at_once).await?);
        }
        super::end(weeder).await?;
    }

    let pods = shoots * PODS.iter().filter(|(_, role)| *role != "main").count();
    let pages = (pods.div_ceil(PAGE) + (shoots * SLICES.len()).div_ceil(PAGE)) as f64;
    // A watch is answered when it begins; any other request when it is complete.
    let counts = |asked: &&Asked| asked.stage == if asked.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
    let asked: Vec<&Asked> = asked.iter().filter(counts).collect();
    let election = asked.iter().filter(|asked| asked.resource == "leases").count();
    let refused = asked.iter().filter(|asked| asked.code >= 400 && asked.code != 404).count();
    let requests = (asked.len() - election) as f64;
    let start = format!("requests in the first {counted} s, without the election's");
    let what = format!("{shoots} shoots: {} pods, {} EndpointSlices on a real seed", shoots * PODS.len(), shoots * SLICES.len());
    let mut report = Report::new("weeder", what);
    report.rows([
        ("start", &start, requests, "", Some(AtMost(10.0 + pages))),
        ("election", "requests of the election in that time", election as f64, "", None),
        ("refused", "requests refused in that time", refused as f64, "", Some(Exactly(0.0))),
        ("resident", "resident memory", usage.resident, "MiB", None),
        ("most", "high-water mark of memory", usage.most, "MiB", None),
        ("cpu", &format!("CPU in the first {counted} s"), usage.cpu.as_secs_f64(), "s", None),
    ]);
    let goal = Some(AtMost(0.1));
    report.spread("quiet", "from endpoint ready to DELETE", &quiet.into_iter().collect(), "s", goal);
    report.spread("early", "the same in the first seconds after a start", &early.into_iter().collect(), "s", goal);
    report.print();
    Ok(())
}

/// A seed, and how a weeder reaches it.
struct Ground<'a> {
    seed: &'a Seed,
    kubeconfig: String,
}

impl Ground<'_> {
    /// Starts a weeder and waits until it is ready, which it is when it knows the seed's Services and pods, and leads.
    async fn start(&self) -> Result<Agent> {
        let weeder = Agent::alone(Kind::Weeder, &self.kubeconfig, None, &[])?;
        eventually("the weeder is ready and leads", PATIENCE, async || {
            let (status, body) = page(weeder.log_file(), "/readyz").await?;
            ensure!(status == 200, "{body}");
            ensure!(weeder.log("\"leading\"").iter().any(|line| line["msg"] == "leading"), "it does not lead");
            Ok(())
        })
        .await?;
        Ok(weeder)
    }

    fn asked(&self, mark: &Mark) -> Vec<Asked> {
        let user = format!("system:serviceaccount:{GARDEN}:{WEEDER}");
        self.seed.plane().asked(mark).into_iter().filter(|asked| asked.user == user).collect()
    }

    /// Takes the Service away in these shoots, then lets the pods that need it crash; a weeder that runs must know of the former
    /// before the latter.
    async fn break_down(&self, weeder: Option<&Agent>, shoots: Range<usize>) -> Result<()> {
        let api = self.seed.api();
        let closed = |namespace: &str| {
            let told = weeder.map(|weeder| weeder.log(namespace)).unwrap_or_default();
            told.iter().filter(|line| line["end"].is_string() && line["service"] == SERVICE).count()
        };
        let before: Vec<usize> = shoots.clone().map(|shoot| closed(&namespace(shoot))).collect();
        try_join_all(shoots.clone().map(|shoot| self.ready(shoot, false))).await?;
        if weeder.is_some() {
            eventually("the weeder knows that the Services are away", PATIENCE, async || {
                for (shoot, before) in shoots.clone().zip(&before) {
                    ensure!(closed(&namespace(shoot)) > *before, "{} not", namespace(shoot));
                }
                Ok(())
            })
            .await?;
        }
        let crash = async |shoot: usize| {
            let path = format!("/api/v1/namespaces/{}/pods/{}/status", namespace(shoot), PODS[0].0);
            api.merge(&path, &status(false)).await.map(drop)
        };
        try_join_all(shoots.map(crash)).await.map(drop)
    }

    /// Brings the Service back in these shoots, all at once. Returns for each after how many seconds the pod's DELETE came, and
    /// makes a new pod.
    async fn recover(&self, shoots: Range<usize>) -> Result<Vec<f64>> {
        let mark = self.seed.plane().mark();
        let sent = shoots.clone().map(async |shoot| {
            let sent = Utc::now();
            self.ready(shoot, true).await.map(|()| (namespace(shoot), sent))
        });
        let sent = try_join_all(sent).await?;
        let deleted: HashMap<String, DateTime<Utc>> = eventually("all pods that waited are deleted", PATIENCE, async || {
            let log = self.asked(&mark);
            let deletes = log.iter().filter(|asked| asked.verb == "delete" && asked.stage == "ResponseComplete");
            let deletes: Vec<&Asked> = deletes.collect();
            ensure!(deletes.len() == sent.len(), "{} of {}", deletes.len(), sent.len());
            let received = |asked: &Asked| Ok((asked.namespace.clone(), DateTime::parse_from_rfc3339(&asked.at)?.to_utc()));
            deletes.into_iter().map(received).collect()
        })
        .await?;
        try_join_all(shoots.map(|shoot| create_pod(self.seed.api(), shoot, PODS[0].0, PODS[0].1))).await?;
        let late = sent.into_iter().map(|(namespace, sent)| {
            let at = deleted.get(&namespace).with_context(|| format!("nothing was deleted in {namespace}"))?;
            Ok(seconds(sent, *at))
        });
        late.collect()
    }

    async fn ready(&self, shoot: usize, ready: bool) -> Result<()> {
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices/{SERVICE}", namespace(shoot));
        self.seed.api().merge(&path, &json!({"endpoints": [endpoint(ready)]})).await.map(drop)
    }
}

fn namespace(shoot: usize) -> String {
    format!("shoot--weeder--{shoot:04}")
}

fn endpoint(ready: bool) -> Value {
    json!({"addresses": ["10.1.2.3"], "conditions": {"ready": ready}})
}

fn status(runs: bool) -> Value {
    let state = match runs {
        true => json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}),
        false => json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}}),
    };
    json!({"status": {"phase": "Running", "containerStatuses": [
        {"name": "c", "image": "example.org/c", "imageID": "", "restartCount": 9, "ready": runs, "state": state},
    ]}})
}

async fn create_pod(api: &KubeApi, shoot: usize, name: &str, role: &str) -> Result<()> {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "5a3d0f4e-0000-4000-8000-000000000001", "controller": true,
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"gardener.cloud/role": "controlplane", "role": role}, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "image": "example.org/c", "args": ["--leader-elect=true"], "resources": {"requests": {"cpu": "100m"}}}]},
    });
    api.create(&format!("/api/v1/namespaces/{}/pods", namespace(shoot)), &pod).await
}

async fn fill(api: &KubeApi, shoots: usize) -> Result<()> {
    let all = |shoot: usize| async move {
        let namespace = namespace(shoot);
        api.create("/api/v1/namespaces", &gardener::namespace(&namespace)).await?;
        for service in SLICES {
            let slice = json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}}, "endpoints": [endpoint(true)],
            });
            api.create(&format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"), &slice).await?;
        }
        for (name, role) in PODS {
            create_pod(api, shoot, name, role).await?;
        }
        anyhow::Ok(())
    };
    stream::iter(0..shoots).map(all).buffer_unordered(IN_FLIGHT).try_collect().await
}
