//! The last outages, which nobody knows but the running prober: it is asked through the API server.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{Request, Selector};
use kube::{Api, Client, Resource, ResourceExt};
use prober_core::outage::Outage;
use serde::{Deserialize, Serialize};

use crate::config::DEPLOYMENT;
use crate::output::{plain, table, warn, with_causes};

/// How long a replica may take to answer, from memory and through the API server.
const ANSWER: Duration = Duration::from_secs(5);
/// What is said to people; all of it is in JSON and YAML.
const SHOWN: usize = 20;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outages {
    /// Why no replica could be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The pod that has observed them.
    observed_by: String,
    /// The newest first.
    records: Vec<Outage>,
}

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
) -> Option<Outages> {
    let problem = |error: anyhow::Error| {
        Some(Outages {
            problem: Some(with_causes(error.as_ref())),
            ..Outages::default()
        })
    };
    let mut outages = try_read(client, namespace, leader)
        .await
        .unwrap_or_else(problem)?;
    outages
        .records
        .retain(|outage| shoot.is_none_or(|shoot| outage.namespace == shoot));
    Some(outages)
}

async fn try_read(
    client: &Client,
    namespace: &str,
    leader: Option<&str>,
) -> anyhow::Result<Option<Outages>> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let Some(deployment) = deployments.get_opt(DEPLOYMENT).await? else {
        return Ok(None);
    };
    let selector: Selector = deployment.spec.selector.try_into()?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods
        .list(&ListParams::default().labels_from(&selector))
        .await?;
    // One that was evicted, or has ended, answers nothing.
    let phase = |pod: &Pod| {
        pod.status
            .as_ref()
            .and_then(|status| status.phase.clone())
            .unwrap_or_default()
    };
    let pods = pods
        .iter()
        .filter(|pod| !["Failed", "Succeeded"].contains(&phase(pod).as_str()));
    let mut pods: Vec<(String, u16)> = pods.map(|pod| (pod.name_any(), health_port(pod))).collect();
    // A replica's name in the election begins with that of its pod.
    let leads = |pod: &str| {
        leader
            .and_then(|leader| leader.strip_prefix(pod))
            .is_some_and(|rest| rest.starts_with('_'))
    };
    pods.sort_by_key(|(pod, _)| !leads(pod));
    let mut result = Err(anyhow::anyhow!("it has no pods"));
    for (pod, port) in pods {
        let answer = ask(client, namespace, &pod, port).await;
        result = answer.map(|records| {
            Some(Outages {
                problem: None,
                observed_by: pod,
                records,
            })
        });
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Where a replica serves its status page, by its command line.
fn health_port(pod: &Pod) -> u16 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let words =
        containers.flat_map(|container| container.command.iter().chain(&container.args).flatten());
    let address = words
        .filter_map(|word| {
            word.trim_start_matches('-')
                .strip_prefix("health-bind-addr")
        })
        .next_back();
    let port = address.and_then(|address| address.rsplit_once(':')?.1.parse().ok());
    port.unwrap_or(9644)
}

async fn ask(
    client: &Client,
    namespace: &str,
    pod: &str,
    port: u16,
) -> anyhow::Result<Vec<Outage>> {
    let pods = Request::new(Pod::url_path(&(), Some(namespace)));
    let request = pods.get_subresource("proxy/statusz.json", &format!("{pod}:{port}"))?;
    let answer = tokio::time::timeout(ANSWER, client.request_text(request))
        .await
        .context("no answer in time")??;
    let page: StatusPage = serde_json::from_str(&answer).context("it tells nothing of outages")?;
    Ok(page.outages)
}

impl Outages {
    pub(crate) fn text(&self) -> String {
        if let Some(problem) = &self.problem {
            let unknown = warn(&format!(
                "unknown, no replica of the prober could be asked: {problem}"
            ));
            return format!("Outages: {unknown}\n");
        }
        if self.records.is_empty() {
            return format!("No outage since {} began.\n", self.observed_by);
        }
        let rows: Vec<_> = self.records.iter().take(SHOWN).map(row).collect();
        format!(
            "The last outages, as {} has observed them:\n\n{}",
            self.observed_by,
            table(&["BEGAN", "NAMESPACE", "WHAT"], &rows)
        )
    }
}

fn row(outage: &Outage) -> Vec<String> {
    vec![
        outage.began.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        plain(&outage.namespace),
        plain(&outage.sentence()),
    ]
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
