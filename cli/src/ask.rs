//! The running prober, asked for its status: the replica that leads, else another one.
//!
//! ```text
//! --address -------------------------------------------> /statusz.json
//! Lease, pods --> leader, then the others --port-forward--> the same, past any NetworkPolicy
//! ```

use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use bytes::Bytes;
use common::logging::with_causes;
use common::metrics::RequestCounter;
use common::seed_client::{self, KubeconfigChoice};
use common::status::WholeStatus;
use common::transport::Dialer;
use futures::FutureExt;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::Selector;
use kube::{Api, Client, ResourceExt};
use prober::{ProberStatus, ShootView};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::commands::SeedArgs;

/// Time for the answer of a replica, which is made from memory.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for an answer of the seed: more than a connection to it may take, which is 10 s.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Default of --health-bind-addr.
const HEALTH_PORT: u16 = 9644;
/// The prober's Deployment, by Gardener's name (rule 85).
pub(crate) const DEPLOYMENT: &str = "dependency-watchdog-prober";
/// Lease of the prober's election, by Gardener's name (rule 79).
const LEASE: &str = "dwd-prober-leader-election";
/// Selects pods that are not evicted, and have not ended.
const RUNNING: &str = "status.phase!=Failed,status.phase!=Succeeded";
/// Command that lists the Deployments that are held down, and from how many replicas, by asking the
/// seed alone.
const HELD_DOWN: &str = r#"kubectl get deployments -A -o jsonpath='{range .items[?(@.metadata.annotations.dependency-watchdog\.gardener\.cloud/meltdown-protection-active)]}{.metadata.namespace} {.metadata.name} was at {.metadata.annotations.dependency-watchdog\.gardener\.cloud/replicas}{"\n"}{end}'"#;

type Status = WholeStatus<ProberStatus>;

/// Answer of a replica.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// Its pod or address.
    pub answered_by: String,
    /// Replicas that were asked before and do not answer, and why.
    pub problems: Vec<String>,
    #[serde(flatten)]
    pub whole: Status,
}

impl Answer {
    /// A shoot of the seed.
    pub(crate) fn shoot(&self, namespace: &str) -> anyhow::Result<&ShootView> {
        let mut shoots = self.whole.status.shoots.iter();
        shoots
            .find(|shoot| shoot.namespace == namespace)
            .with_context(|| {
                format!("the prober knows no Cluster {namespace:?}; `dependency-watchdog status` lists all it knows")
            })
    }
}

/// Connects by the kubeconfig. Sends nothing yet.
pub(crate) async fn connect(args: &SeedArgs) -> anyhow::Result<Client> {
    let choice = KubeconfigChoice {
        path: args.kubeconfig.clone(),
        context: args.context.clone().filter(|name| !name.is_empty()),
    };
    seed_client::connect(Dialer::default(), choice, &RequestCounter::default()).await
}

/// Asks the replica at the address, or the one that leads, then the others until one answers.
pub(crate) async fn ask(args: &SeedArgs) -> anyhow::Result<Answer> {
    let answer = match &args.address {
        Some(address) => at(address).await,
        None => any_pod(connect(args).await?, &args.garden_namespace).await,
    };
    answer.map_err(|error| {
        let reason = with_causes(error.as_ref());
        anyhow!("no prober answers ({reason}). Deployments that are held down:\n  {HELD_DOWN}")
    })
}

async fn at(address: &str) -> anyhow::Result<Answer> {
    let answer = async { get(TcpStream::connect(address).await?, address).await };
    let whole = within(ANSWER_TIMEOUT, answer).await;
    Ok(Answer {
        answered_by: address.to_owned(),
        problems: Vec::new(),
        whole: whole.with_context(|| address.to_owned())?,
    })
}

async fn any_pod(client: Client, namespace: &str) -> anyhow::Result<Answer> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut problems = Vec::new();
    for pod in pods(client, &api, namespace).await? {
        let answered_by = pod.name_any();
        match within(ANSWER_TIMEOUT, forwarded(&api, &pod)).await {
            Err(error) => problems.push(format!("{answered_by}: {}", with_causes(error.as_ref()))),
            Ok(whole) => {
                return Ok(Answer {
                    answered_by,
                    problems,
                    whole,
                });
            }
        }
    }
    bail!("{}", problems.join("; "))
}

/// The prober's pods, the leader's first.
async fn pods(client: Client, api: &Api<Pod>, namespace: &str) -> anyhow::Result<Vec<Pod>> {
    let deployment = deployment(&client, namespace).await?;
    let selector: Selector = deployment.spec.selector.try_into()?;
    let running = ListParams::default().labels_from(&selector).fields(RUNNING);
    let listed = within(REQUEST_TIMEOUT, api.list(&running)).await;
    let listed = listed.with_context(|| format!("the pods in {namespace} cannot be listed"))?;
    let mut pods = listed.items;
    ensure!(
        !pods.is_empty(),
        "the Deployment {DEPLOYMENT} in {namespace} has no pods"
    );
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    let lease = within(REQUEST_TIMEOUT, leases.get(LEASE)).await;
    // Without the Lease any replica is as good. A name in the election is the pod's and a UUID.
    let holder = lease.ok().and_then(|lease| lease.spec?.holder_identity);
    let leader = holder.as_deref().and_then(|name| name.split_once('_'));
    pods.sort_by_key(|pod| leader.is_none_or(|(leader, _)| leader != pod.name_any()));
    Ok(pods)
}

/// Reads the prober's Deployment.
pub(crate) async fn deployment(client: &Client, namespace: &str) -> anyhow::Result<Deployment> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let read = within(REQUEST_TIMEOUT, deployments.get(DEPLOYMENT)).await;
    read.with_context(|| format!("the Deployment {DEPLOYMENT} in {namespace} cannot be read"))
}

/// Bounds a request in time.
pub(crate) async fn within<T, E: Into<anyhow::Error>>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    match timeout(limit, answer).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => bail!("no answer in {} s", limit.as_secs()),
    }
}

/// Asks a pod through the kubelet, before which no NetworkPolicy stands.
async fn forwarded(pods: &Api<Pod>, pod: &Pod) -> anyhow::Result<Status> {
    let port = health_port(pod);
    let mut forwarder = pods.portforward(&pod.name_any(), &[port]).await?;
    let stream = forwarder.take_stream(port).context("no stream")?;
    let failed = forwarder.take_error(port);
    let answer = get(stream, "localhost").await;
    match failed.and_then(|failed| failed.now_or_never().flatten()) {
        Some(failed) if answer.is_err() => bail!("{failed}"),
        _ => answer,
    }
}

/// Gets the status over a connection.
async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
) -> anyhow::Result<Status> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/statusz.json")
        .header(HOST, host)
        .body(Empty::<Bytes>::new())?;
    let answer = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        ensure!(status.is_success(), "it answers {status} to /statusz.json");
        read(&answer.into_body().collect().await?.to_bytes())
    };
    // The connection ends once the answer is there, and the sender is gone.
    let (answer, _) = futures::join!(answer, connection);
    answer
}

/// Reads what a replica answers. One of another version may say other things.
fn read(body: &[u8]) -> anyhow::Result<Status> {
    serde_json::from_slice(body).with_context(|| {
        let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let theirs = answer["process"]["version"].as_str().unwrap_or("unknown");
        let ours = env!("CARGO_PKG_VERSION");
        format!("its status (version {theirs}) cannot be read by this one ({ours})")
    })
}

/// The port at which a replica serves its status: the one that is named so. Gardener's pods name
/// none.
fn health_port(pod: &Pod) -> u16 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some("health"));
    port.and_then(|port| port.container_port.try_into().ok())
        .unwrap_or(HEALTH_PORT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replica_is_asked_at_the_port_that_is_named_health() {
        for (ports, asked) in [
            (json!(null), HEALTH_PORT),
            (
                json!([{ "name": "metrics", "containerPort": 9643 }]),
                HEALTH_PORT,
            ),
            (
                json!([{ "name": "metrics", "containerPort": 1 }, { "name": "health", "containerPort": 8080 }]),
                8080,
            ),
        ] {
            let containers = json!([{ "name": "sidecar" }, { "name": "prober", "ports": ports }]);
            let pod = json!({ "spec": { "containers": containers } });
            let pod = serde_json::from_value(pod).expect("a pod");
            assert_eq!(health_port(&pod), asked, "{ports}");
        }
    }

    #[test]
    fn an_answer_of_another_version_is_named_by_it() {
        let error = read(br#"{"process": {"version": "9.9.9"}}"#).expect_err("most is missing");
        let said = with_causes(error.as_ref());
        assert!(
            said.starts_with("its status (version 9.9.9) cannot be read"),
            "{said}"
        );
    }
}
