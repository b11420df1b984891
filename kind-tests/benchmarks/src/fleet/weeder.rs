//! The weeder on a full seed: what its start asks for, and how soon a pod is deleted once the Service that it needs is back.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::Utc;
use clap::Args;
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::agent::{Agent, Kind};
use testbed::audit::{Asked, Mark};
use testbed::gardener::{self, GARDEN, Manifest, WEEDER, weeder_access};
use testbed::page::page;
use testbed::seed::apply;
use testbed::usage::Usage;
use testbed::{Bed, Seed, eventually};
use tokio::time::{Instant, interval, sleep_until};

use super::fill::create;
use crate::course::seconds;
use crate::report::Goal::{AtMost, Exactly};
use crate::report::{Report, progress};

/// The Service that comes back, and the pod that waits for it, with its role.
const SERVICE: &str = "kube-apiserver";
const DEPENDANT: (&str, &str) = ("kube-controller-manager", "controller-manager");
/// The pods of a control plane: the one that waits, what the Services stand for, and what else there is.
const PODS: [(&str, &str); 12] = [
    DEPENDANT,
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
    create(seed.api(), (0..shoots).map(objects)).await?;
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
        early.extend(ground.recover_early(rounds_per_start.min(rounds - done), at_once).await?);
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
    report.spread("quiet", "from endpoint ready to DELETE", &quiet.into_iter().collect(), goal);
    report.spread("early", "the same in the first seconds after a start", &early.into_iter().collect(), goal);
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
        let closed = || {
            let logged = weeder.map(|weeder| weeder.log("\"not_ready\"")).unwrap_or_default();
            logged.iter().filter(|line| line["end"] == "not_ready" && line["service"] == SERVICE).count()
        };
        let before = closed();
        try_join_all(shoots.clone().map(|shoot| self.ready(shoot, false))).await?;
        eventually("the weeder knows that the Services are away", PATIENCE, async || {
            let known = closed() - before;
            ensure!(weeder.is_none() || known >= shoots.len(), "{known} of {}", shoots.len());
            Ok(())
        })
        .await?;
        let crash = async |shoot: usize| {
            let path = format!("/api/v1/namespaces/{}/pods/{}/status", namespace(shoot), DEPENDANT.0);
            let state =
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}});
            let container =
                json!({"name": "c", "image": "example.org/c", "imageID": "", "restartCount": 9, "ready": false, "state": state});
            let status = json!({"status": {"phase": "Running", "containerStatuses": [container]}});
            self.seed.api().merge(&path, &status).await.map(drop)
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
        let late = eventually("all pods that waited are deleted", PATIENCE, async || {
            let log = self.asked(&mark);
            let deletes: Vec<_> =
                log.iter().filter(|asked| asked.verb == "delete" && asked.stage == "ResponseComplete").collect();
            ensure!(deletes.len() == sent.len(), "{} of {}", deletes.len(), sent.len());
            let late = sent.iter().map(|(namespace, sent)| {
                let delete = deletes.iter().find(|asked| asked.namespace == *namespace);
                let delete = delete.with_context(|| format!("nothing was deleted in {namespace}"))?;
                Ok(seconds(*sent, delete.at.parse()?))
            });
            late.collect::<Result<Vec<f64>>>()
        })
        .await?;
        try_join_all(shoots.map(|shoot| apply(self.seed.api(), vec![pod(shoot, DEPENDANT)]))).await?;
        Ok(late)
    }

    /// Starts a weeder and brings the Service back in so many shoots at once, burst after burst.
    async fn recover_early(&self, bursts: usize, at_once: usize) -> Result<Vec<f64>> {
        self.break_down(None, 0..bursts * at_once).await?;
        let weeder = self.start().await?;
        let (mut ticks, mut late) = (interval(BETWEEN), Vec::new());
        for burst in 0..bursts {
            ticks.tick().await;
            late.extend(self.recover(burst * at_once..(burst + 1) * at_once).await?);
        }
        super::end(weeder).await?;
        Ok(late)
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

fn pod(shoot: usize, (name, role): (&str, &str)) -> Manifest {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "5a3d0f4e-0000-4000-8000-000000000001", "controller": true,
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"gardener.cloud/role": "controlplane", "role": role}, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "image": "example.org/c", "args": ["--leader-elect=true"], "resources": {"requests": {"cpu": "100m"}}}]},
    });
    (format!("/api/v1/namespaces/{}/pods", namespace(shoot)), pod)
}

/// Everything of one shoot, in the order in which it is to be created.
fn objects(shoot: usize) -> Vec<Manifest> {
    let mut objects = vec![("/api/v1/namespaces".to_owned(), gardener::namespace(&namespace(shoot)))];
    objects.extend(SLICES.map(|service| {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}}, "endpoints": [endpoint(true)],
        });
        (format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", namespace(shoot)), slice)
    }));
    objects.extend(PODS.map(|name_and_role| pod(shoot, name_and_role)));
    objects
}
