//! The last outages, which only the running prober knows: it is asked through the API server.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{Request, Selector};
use kube::{Api, Client, Resource, ResourceExt};
use prober::{Outage, Tone};
use serde::{Deserialize, Serialize};

use crate::config::DEPLOYMENT;
use crate::output::{paint, plain, table, with_causes};

/// How long a replica may take to answer, from memory and through the API server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// What is shown to people; all of it is in JSON and YAML.
const SHOWN: usize = 20;
/// One that was evicted, or has ended, answers nothing.
const RUNNING: &str = "status.phase!=Failed,status.phase!=Succeeded";

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObservedOutages {
    /// Why no replica could be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The pod that has observed them.
    observed_by: String,
    /// The newest first.
    records: Vec<Outage>,
}

/// What is read of the prober's status page.
#[derive(Deserialize)]
struct StatusPage {
    outages: Vec<Outage>,
}

/// Asks the replica that leads, then the others, for the outages of all shoots, or of one; none
/// when no prober is deployed.
pub(crate) async fn read(
    client: &Client,
    namespace: &str,
    leader: Option<&str>,
    shoot: Option<&str>,
) -> Option<ObservedOutages> {
    let read = try_read(client, namespace, leader).await;
    let mut outages = read.unwrap_or_else(|error| {
        let problem = Some(with_causes(error.as_ref()));
        Some(ObservedOutages {
            problem,
            ..ObservedOutages::default()
        })
    })?;
    if let Some(shoot) = shoot {
        outages.records.retain(|outage| outage.namespace == shoot);
    }
    Some(outages)
}

async fn try_read(
    client: &Client,
    namespace: &str,
    leader: Option<&str>,
) -> anyhow::Result<Option<ObservedOutages>> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let Some(deployment) = deployments.get_opt(DEPLOYMENT).await? else {
        return Ok(None);
    };
    let selector: Selector = deployment.spec.selector.try_into()?;
    let replicas = ListParams::default().labels_from(&selector).fields(RUNNING);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut pods = pods.list(&replicas).await?.items;
    // A replica's name in the election begins with that of its pod.
    pods.sort_by_key(|pod| {
        let rest = leader.and_then(|leader| leader.strip_prefix(&pod.name_any()));
        !rest.is_some_and(|rest| rest.starts_with('_'))
    });
    let mut failure = anyhow::anyhow!("it has no pods");
    for pod in &pods {
        match read_status(client, namespace, pod).await {
            Ok(status) => {
                return Ok(Some(ObservedOutages {
                    problem: None,
                    observed_by: pod.name_any(),
                    records: status.outages,
                }));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn read_status(client: &Client, namespace: &str, pod: &Pod) -> anyhow::Result<StatusPage> {
    let name = format!("{}:{}", pod.name_any(), health_port(pod));
    let pods = Request::new(Pod::url_path(&(), Some(namespace)));
    let request = pods.get_subresource("proxy/statusz.json", &name)?;
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, client.request_text(request))
        .await
        .context("no answer in time")??;
    serde_json::from_str(&answer).context("it tells nothing of outages")
}

/// Where a replica serves its status page, by its command line.
fn health_port(pod: &Pod) -> u16 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let words = containers.flat_map(|container| container.command.iter().chain(&container.args));
    let mut addresses = words.flatten().filter_map(|word| {
        let flag = word.trim_start_matches('-');
        flag.strip_prefix("health-bind-addr")
    });
    let port = addresses
        .next_back()
        .and_then(|address| address.rsplit_once(':')?.1.parse().ok());
    port.unwrap_or(9644)
}

impl ObservedOutages {
    pub(crate) fn text(&self) -> String {
        if let Some(problem) = &self.problem {
            let unknown = format!("unknown, no replica of the prober could be asked: {problem}");
            return format!("Outages: {}\n", paint(Tone::Warn, &unknown));
        }
        if self.records.is_empty() {
            return format!("No outage since {} began.\n", self.observed_by);
        }
        let rows = self.records.iter().take(SHOWN).map(|outage| {
            let began = outage.began.format(common::status::TIMESTAMP).to_string();
            [began, plain(&outage.namespace), plain(&outage.sentence())]
        });
        let table = table(["BEGAN", "NAMESPACE", "WHAT"], rows.collect());
        format!(
            "The last outages, as {} has observed them:\n\n{table}",
            self.observed_by
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_asked_where_its_command_line_says_that_it_serves() {
        let port = |field: &str, words: &[&str]| {
            let container = serde_json::json!({ "name": "prober", field: words });
            let pod = serde_json::json!({ "spec": { "containers": [container] } });
            health_port(&serde_json::from_value(pod).expect("a pod"))
        };
        assert_eq!(
            port("command", &["prober", "--config-file=/etc/config"]),
            9644
        );
        assert_eq!(
            port("command", &["prober", "--health-bind-addr=:8080"]),
            8080
        );
        assert_eq!(
            port(
                "args",
                &[
                    "prober",
                    "-health-bind-address=0.0.0.0:8080",
                    "--health-bind-addr=[::]:8081"
                ]
            ),
            8081
        );
    }
}
