//! The weeder on a full seed: what its start asks for, and how soon a pod is deleted once the
//! Service that it needs is back.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use clap::Args;
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::agent::{Agent, Kind};
use testbed::audit::{Asked, Mark};
use testbed::gardener::{self, GARDEN, WEEDER, weeder_access};
use testbed::page::page;
use testbed::usage::Usage;
use testbed::{Bed, Seed, eventually};
use tokio::time::{Instant, interval, sleep_until};

use super::fill::create;
use crate::course::seconds;
use crate::report::Goal::{AtMost, Exactly};
use crate::report::{BenchmarkReport, Spread, progress};

/// The Service that comes back.
const SERVICE: &str = "kube-apiserver";
const SLICES: [&str; 2] = ["etcd-main-client", SERVICE];
/// Pods of a control plane by their names, which are their roles too: the one that waits, what the
/// Services stand for, and what else there is.
const WAITING: &str = "controller-manager";
const OF_SERVICES: [&str; 2] = ["main", "apiserver"];
const OTHERS: usize = 9;
/// Objects per page of a list, the size that kubectl and the weeder use.
const PAGE: usize = 500;
/// Between two bursts of recoveries in the first seconds after a start.
const BETWEEN: Duration = Duration::from_millis(500);

/// How the seed is.
#[derive(Args, Clone, Debug)]
pub struct WeederOptions {
    /// How many shoots.
    #[arg(long, default_value_t = 300)]
    shoots: usize,
    /// Services that come back at once.
    #[arg(long, default_value_t = 20)]
    at_once: usize,
    /// How often that happens while all is quiet, and as often again in the first seconds after a
    /// start.
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
pub async fn run(bed: &'static Bed, options: WeederOptions) -> Result<()> {
    let WeederOptions {
        shoots,
        at_once,
        rounds,
        rounds_per_start,
        seconds: counted,
    } = options;
    ensure!(
        shoots >= at_once * rounds && rounds_per_start > 0,
        "too few shoots for so many recoveries"
    );
    let seed = bed.own_seed().await?;
    seed.api().create_all(&weeder_access()).await?;
    progress(format!(
        "filling a seed with the Services and pods of {shoots} shoots"
    ));
    create(seed.api(), (0..shoots).map(objects)).await?;

    progress(format!("a start, its first {counted} s"));
    let mark = seed.plane().mark();
    let begin = Instant::now();
    let weeder = start(&seed).await?;
    sleep_until(begin + Duration::from_secs(counted)).await;
    let asked = asked_since(&seed, &mark);
    let usage = Usage::of(weeder.id())?;

    // What follows needs all windows that a start opens, so that it is seen when they close.
    logged(&weeder, "cause", shoots * SLICES.len(), |_| true).await?;
    progress(format!("{rounds} times {at_once} recoveries at once"));
    let bursts =
        move |count: usize| (0..count).map(move |burst| burst * at_once..(burst + 1) * at_once);
    let mut quiet = Vec::new();
    for places in bursts(rounds) {
        turn(&seed, places.clone(), false).await?;
        // It must know of this before pods crash.
        let is_closed = |line: &Value| line["end"] == "not_ready" && line["service"] == SERVICE;
        logged(&weeder, "not_ready", places.end, is_closed).await?;
        crash(&seed, places.clone()).await?;
        quiet.extend(recover(&seed, places).await?);
    }
    super::end(weeder).await?;

    progress(format!(
        "{rounds} times {at_once} recoveries at once, in the first seconds after a start"
    ));
    let mut early = Vec::new();
    for done in (0..rounds).step_by(rounds_per_start) {
        let bursts = bursts(rounds_per_start.min(rounds - done));
        for places in bursts.clone() {
            turn(&seed, places.clone(), false).await?;
            crash(&seed, places).await?;
        }
        let (weeder, mut ticks) = (start(&seed).await?, interval(BETWEEN));
        for places in bursts {
            ticks.tick().await;
            early.extend(recover(&seed, places).await?);
        }
        super::end(weeder).await?;
    }
    report(&options, &asked, usage, [quiet, early]).print()
}

fn report(
    options: &WeederOptions,
    asked: &[Asked],
    usage: Usage,
    late: [Vec<f64>; 2],
) -> BenchmarkReport {
    let WeederOptions {
        shoots, seconds, ..
    } = options;
    let (pods, slices) = (
        shoots * (1 + OF_SERVICES.len() + OTHERS),
        shoots * SLICES.len(),
    );
    // The weeder has no use for etcd's.
    let pages = ((pods - shoots).div_ceil(PAGE) + slices.div_ceil(PAGE)) as f64;
    // A watch is answered when it begins; any other request when it is complete.
    let counts = |asked: &&Asked| {
        asked.stage
            == if asked.verb == "watch" {
                "ResponseStarted"
            } else {
                "ResponseComplete"
            }
    };
    let asked: Vec<&Asked> = asked.iter().filter(counts).collect();
    let election = asked
        .iter()
        .filter(|asked| asked.resource == "leases")
        .count();
    let refused = asked
        .iter()
        .filter(|asked| asked.code >= 400 && asked.code != 404)
        .count();
    let requests = (asked.len() - election) as f64;
    let start = format!("requests in the first {seconds} s, without the election's");
    let mut report = BenchmarkReport::new(
        "weeder",
        format!("{shoots} shoots: {pods} pods, {slices} EndpointSlices on a real seed"),
    );
    report.rows([
        ("start", &start, requests, "", Some(AtMost(10.0 + pages))),
        (
            "election",
            "requests of the election in that time",
            election as f64,
            "",
            None,
        ),
        (
            "refused",
            "requests refused in that time",
            refused as f64,
            "",
            Some(Exactly(0.0)),
        ),
        ("resident", "resident memory", usage.resident, "MiB", None),
        ("most", "high-water mark of memory", usage.most, "MiB", None),
        (
            "cpu",
            &format!("CPU in the first {seconds} s"),
            usage.cpu.as_secs_f64(),
            "s",
            None,
        ),
    ]);
    let goal = Some(AtMost(0.1));
    let [quiet, early]: [Spread; 2] = late.map(|late| late.into_iter().collect());
    report.spread("quiet", "from endpoint ready to DELETE", &quiet, goal);
    report.spread(
        "early",
        "the same in the first seconds after a start",
        &early,
        goal,
    );
    report
}

/// Starts a weeder and waits until it is ready, which it is when it knows the seed's Services and
/// pods, and leads.
async fn start(seed: &Seed) -> Result<Agent> {
    let token = seed.api().token(GARDEN, WEEDER).await?;
    let weeder = Agent::alone(
        Kind::Weeder,
        &seed.plane().kubeconfig(&seed.plane().url(), &token),
        None,
        &[],
    )?;
    eventually("the weeder is ready", async || {
        let (status, body) = page(weeder.log_file(), "/readyz").await?;
        ensure!(status == 200, "{body}");
        Ok(())
    })
    .await?;
    logged(&weeder, "leading", 1, |line| line["msg"] == "leading").await?;
    Ok(weeder)
}

/// Waits until a weeder has logged so many lines like that, which have this word in quotes.
async fn logged(
    weeder: &Agent,
    word: &str,
    count: usize,
    is_it: impl Fn(&Value) -> bool,
) -> Result<()> {
    eventually(&format!("the weeder logs of {word}"), async || {
        let logged = weeder
            .log(&format!("{word:?}"))
            .iter()
            .filter(|line| is_it(line))
            .count();
        ensure!(logged >= count, "{logged} of {count}");
        Ok(())
    })
    .await
}

fn asked_since(seed: &Seed, mark: &Mark) -> Vec<Asked> {
    let user = format!("system:serviceaccount:{GARDEN}:{WEEDER}");
    seed.plane()
        .asked(mark)
        .into_iter()
        .filter(|asked| asked.user == user)
        .collect()
}

/// Brings the Service back in these shoots, or takes it away, in all at once. Returns each one's
/// namespace and when that was sent.
async fn turn(
    seed: &Seed,
    shoots: Range<usize>,
    ready: bool,
) -> Result<Vec<(String, DateTime<Utc>)>> {
    let sent = shoots.map(async |shoot| {
        let (namespace, sent) = (namespace(shoot), Utc::now());
        let path =
            format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{SERVICE}");
        seed.api()
            .merge(&path, &json!({"endpoints": [endpoint(ready)]}))
            .await?;
        anyhow::Ok((namespace, sent))
    });
    try_join_all(sent).await
}

/// Lets the pods that need the Service crash.
async fn crash(seed: &Seed, shoots: Range<usize>) -> Result<()> {
    let state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}});
    let container = json!({"name": "c", "image": "example.org/c", "imageID": "", "restartCount": 9, "ready": false, "state": state});
    let status = json!({"status": {"phase": "Running", "containerStatuses": [container]}});
    let crash = async |shoot| {
        let path = format!(
            "/api/v1/namespaces/{}/pods/{WAITING}/status",
            namespace(shoot)
        );
        seed.api().merge(&path, &status).await
    };
    try_join_all(shoots.map(crash)).await.map(drop)
}

/// Brings the Service back in these shoots, all at once. Returns for each after how many seconds
/// the pod's DELETE came, and makes a new pod.
async fn recover(seed: &Seed, shoots: Range<usize>) -> Result<Vec<f64>> {
    let mark = seed.plane().mark();
    let sent = turn(seed, shoots.clone(), true).await?;
    let late = eventually("all pods that waited are deleted", async || {
        let mut deletes = asked_since(seed, &mark);
        deletes.retain(|asked| asked.verb == "delete" && asked.stage == "ResponseComplete");
        ensure!(
            deletes.len() == sent.len(),
            "{} of {}",
            deletes.len(),
            sent.len()
        );
        let late = sent.iter().map(|(namespace, sent)| {
            let delete = deletes.iter().find(|asked| asked.namespace == *namespace);
            let delete = delete.with_context(|| format!("nothing was deleted in {namespace}"))?;
            Ok(seconds(*sent, delete.at.parse()?))
        });
        late.collect::<Result<Vec<f64>>>()
    })
    .await?;
    create(seed.api(), shoots.map(|shoot| vec![pod(shoot, WAITING)])).await?;
    Ok(late)
}

fn namespace(shoot: usize) -> String {
    format!("shoot--weeder--{shoot:04}")
}

fn endpoint(ready: bool) -> Value {
    json!({"addresses": ["10.1.2.3"], "conditions": {"ready": ready}})
}

fn pod(shoot: usize, name: &str) -> Value {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "5a3d0f4e-0000-4000-8000-000000000001", "controller": true,
    });
    let labels = json!({"gardener.cloud/role": "controlplane", "role": name});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace(shoot), "labels": labels, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "image": "example.org/c", "args": ["--leader-elect=true"], "resources": {"requests": {"cpu": "100m"}}}]},
    })
}

/// Everything of one shoot, in the order in which it is to be created.
fn objects(shoot: usize) -> Vec<Value> {
    let namespace = namespace(shoot);
    let mut objects = vec![gardener::namespace(&namespace)];
    objects.extend(SLICES.map(|service| {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": [endpoint(true)],
            "metadata": {"name": service, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        })
    }));
    objects.extend(
        [WAITING]
            .into_iter()
            .chain(OF_SERVICES)
            .map(|name| pod(shoot, name)),
    );
    objects.extend((0..OTHERS).map(|number| pod(shoot, &format!("other-{number}"))));
    objects
}
