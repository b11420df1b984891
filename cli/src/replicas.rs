//! The running prober, asked for its status: the replica that leads, and another one where that does
//! not answer or is late with a probe.
//!
//! ```text
//! --address --------------------------------------------> /statusz.json
//! Lease, pods --> leader, then the others --pods/proxy----> /statusz.json
//!                                         '-port-forward--> the same, past any NetworkPolicy
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use bytes::Bytes;
use common::status::WholeStatus;
use futures::FutureExt;
use http::uri::Authority;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{Request, Selector};
use kube::{Api, Client, Resource, ResourceExt};
use prober::{ProberStatus, ShootEntry};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::commands::SeedArgs;
use crate::config::{self, DEPLOYMENT};
use crate::leader::{self, LeaseHolder};
use crate::output::with_causes;

/// Time for an answer, on each way: it is made from memory.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time to find the pods, or to read another object or two.
pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer: that of the largest seeds has a few MB.
const MAX_ANSWER: usize = 64 << 20;
/// Default of --health-bind-addr.
const HEALTH_PORT: u16 = 9644;
/// Selects pods that are not evicted, and have not ended.
const RUNNING: &str = "status.phase!=Failed,status.phase!=Succeeded";

/// Answer of a replica.
pub(crate) type ProberAnswer = WholeStatus<ProberStatus>;

/// The replicas that were asked, and what is missing.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    /// Pod or address of the replica; `None` if none answers, so that only the seed is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Replicas that do not answer, and why.
    pub problems: Vec<String>,
    /// Shoots whose probe by that replica is overdue, each with the replica that shows it instead.
    pub shown_by: BTreeMap<String, String>,
    /// Leader of the prober, if it was read on the way.
    #[serde(skip)]
    pub leader: Option<LeaseHolder>,
}

/// A replica of the prober, and the way to it.
enum Replica<'a> {
    At(&'a Authority),
    Pod(&'a Client, Box<Pod>),
}

/// Asks the replica that leads, or the one at the address, then others for what that one cannot say.
pub(crate) async fn ask(client: Option<&Client>, args: &SeedArgs) -> (Asked, Option<ProberAnswer>) {
    let mut asked = Asked::default();
    let replicas = replicas(client, args, &mut asked).await;
    let replicas = replicas.unwrap_or_else(|error| {
        asked.problems.push(with_causes(error.as_ref()));
        Vec::new()
    });
    let mut answer: Option<ProberAnswer> = None;
    for replica in &replicas {
        let name = replica.name();
        match (replica.ask().await, &mut answer) {
            (Ok(other), Some(first)) => asked.fill_in(first, other, &name),
            (Ok(first), None) => {
                asked.answered_by = Some(name);
                answer = Some(first);
            }
            (Err(error), _) => {
                let error = with_causes(error.as_ref());
                asked
                    .problems
                    .push(format!("{name} does not answer: {error}"));
            }
        }
        let is_late =
            |answer: &ProberAnswer| answer.status.shoots.iter().any(ShootEntry::is_overdue);
        if !answer.as_ref().is_none_or(is_late) {
            break;
        }
    }
    (asked, answer)
}

impl Asked {
    /// Takes the shoots from another replica whose probes are overdue here, and not there.
    fn fill_in(&mut self, answer: &mut ProberAnswer, other: ProberAnswer, pod: &str) {
        let others = other.status.shoots.into_iter();
        let mut others: BTreeMap<_, _> = others
            .filter(|shoot| shoot.probe.is_some() && !shoot.is_overdue())
            .map(|shoot| (shoot.namespace.clone(), shoot))
            .collect();
        for shoot in &mut answer.status.shoots {
            if shoot.is_overdue()
                && let Some(other) = others.remove(&shoot.namespace)
            {
                self.shown_by
                    .insert(shoot.namespace.clone(), pod.to_owned());
                *shoot = other;
            }
        }
    }
}

/// The replica at the address, or the prober's pods, the leader's first.
async fn replicas<'a>(
    client: Option<&'a Client>,
    args: &'a SeedArgs,
    asked: &mut Asked,
) -> anyhow::Result<Vec<Replica<'a>>> {
    if let Some(address) = &args.address {
        return Ok(vec![Replica::At(address)]);
    }
    let client = client.context("no kubeconfig")?;
    let namespace = &args.garden_namespace;
    let listed = async {
        let leader = leader::read(client, namespace, leader::PROBER).await;
        let deployment = config::deployment(client, namespace).await?;
        let selector: Selector = deployment.spec.selector.try_into()?;
        let running = ListParams::default().labels_from(&selector).fields(RUNNING);
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let pods = pods.list(&running).await;
        let pods = pods.with_context(|| format!("the pods in {namespace} cannot be listed"))?;
        Ok((leader, pods.items))
    };
    let (leader, mut pods) = within(LIST_TIMEOUT, listed).await?;
    let leader = asked.leader.insert(leader).holder.as_deref();
    ensure!(
        !pods.is_empty(),
        "the Deployment {DEPLOYMENT} in {namespace} has no pods"
    );
    // A replica's name in the election begins with that of its pod.
    pods.sort_by_key(|pod| {
        let rest = leader.and_then(|leader| leader.strip_prefix(&pod.name_any()));
        !rest.is_some_and(|rest| rest.starts_with('_'))
    });
    Ok(pods
        .into_iter()
        .map(|pod| Replica::Pod(client, Box::new(pod)))
        .collect())
}

impl Replica<'_> {
    fn name(&self) -> String {
        match self {
            Self::At(address) => address.to_string(),
            Self::Pod(_, pod) => pod.name_any(),
        }
    }

    /// Asks at the address; or a pod by the API server's proxy, which needs a connection from there
    /// that a NetworkPolicy may forbid, or else by a port-forward, which goes through the kubelet.
    async fn ask(&self) -> anyhow::Result<ProberAnswer> {
        let text = match self {
            Self::At(address) => within(ANSWER_TIMEOUT, dialled(address)).await?,
            Self::Pod(client, pod) => match within(ANSWER_TIMEOUT, proxied(client, pod)).await {
                Ok(text) => text,
                Err(proxied) => {
                    let forwarded = within(ANSWER_TIMEOUT, forwarded(client, pod)).await;
                    forwarded.map_err(|forwarded| {
                        let [one, other] =
                            [proxied, forwarded].map(|error| with_causes(error.as_ref()));
                        anyhow!("by pods/proxy: {one}; by pods/portforward: {other}")
                    })?
                }
            },
        };
        read(&text)
    }
}

pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let answer = timeout(limit, answer).await;
    answer.unwrap_or_else(|_| Err(anyhow!("no answer in {} s", limit.as_secs())))
}

async fn dialled(address: &Authority) -> anyhow::Result<String> {
    let port = address.port_u16().unwrap_or(HEALTH_PORT);
    // Brackets are for an address of IPv6 in a URL.
    let host = address.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, port)).await?;
    get(stream, address.as_str()).await
}

async fn proxied(client: &Client, pod: &Pod) -> anyhow::Result<String> {
    let name = format!("{}:{}", pod.name_any(), health_port(pod));
    let pods = Request::new(Pod::url_path(&(), pod.namespace().as_deref()));
    let request = pods.get_subresource("proxy/statusz.json", &name)?;
    Ok(client.request_text(request).await?)
}

async fn forwarded(client: &Client, pod: &Pod) -> anyhow::Result<String> {
    let (port, namespace) = (health_port(pod), pod.namespace().unwrap_or_default());
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let mut forwarder = pods.portforward(&pod.name_any(), &[port]).await?;
    let stream = forwarder.take_stream(port).context("no stream")?;
    let failed = forwarder.take_error(port);
    let answer = get(stream, "localhost").await;
    forwarder.abort();
    match failed.and_then(|failed| failed.now_or_never().flatten()) {
        Some(failed) if answer.is_err() => bail!("{failed}"),
        _ => answer,
    }
}

/// Gets the status over a connection.
async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
) -> anyhow::Result<String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = http::Request::get("/statusz.json")
        .header(http::header::HOST, host)
        .body(Empty::<Bytes>::new())?;
    let answer = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        ensure!(status.is_success(), "it answers {status} to /statusz.json");
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(anyhow::Error::from_boxed)?;
        Ok(String::from_utf8(body.to_bytes().into())?)
    };
    // The connection ends once the answer is there, and the sender is gone.
    let (answer, _) = futures::join!(answer, connection);
    answer
}

/// Reads what a replica answers. One of another version may say other things.
fn read(text: &str) -> anyhow::Result<ProberAnswer> {
    serde_json::from_str(text).map_err(|error| {
        let answer: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let theirs = answer["process"]["version"].as_str().unwrap_or("unknown");
        let ours = env!("CARGO_PKG_VERSION");
        let told = format!("its status (version {theirs}) cannot be read by this one ({ours})");
        anyhow::Error::from(error).context(told)
    })
}

/// The port at which a replica serves its status: the one that is named so.
fn health_port(pod: &Pod) -> u16 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some("health"));
    let port = port.map(|port| u16::try_from(port.container_port));
    port.and_then(Result::ok).unwrap_or(HEALTH_PORT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_replica_is_asked_at_the_port_that_is_named_health() {
        for (ports, asked) in [
            (json!(null), HEALTH_PORT),
            (json!([{ "containerPort": 8080 }]), HEALTH_PORT),
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
        let error = read(r#"{"process": {"version": "9.9.9"}}"#).expect_err("most is missing");
        let said = with_causes(error.as_ref());
        assert!(
            said.starts_with("its status (version 9.9.9) cannot be read"),
            "{said}"
        );
    }
}
