//! The seed and its prober, as an operator's own kubeconfig reaches them.

use std::time::Duration;

use anyhow::Context;
use common::metrics::RequestCounter;
use common::seed_client::{self, KubeconfigChoice};
use common::status::ProcessStatus;
use common::transport::Dialer;
use kube::api::{DynamicObject, ListParams};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use prober::gardener::Cluster;
use prober::seed_reader::SeedReader;
use prober::{Outage, ProberStatus, ShootEntry};
use serde::Serialize;

use crate::commands::SeedArgs;
use crate::config;
use crate::leader::{self, LeaseHolder};
use crate::replicas::{Asked, ask};

/// Time for the seed's objects to be read: a large seed has thousands of Clusters.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// All that can be said of a seed: by its prober, or where none answers by its objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SeedView {
    #[serde(flatten)]
    pub asked: Asked,
    /// Leaders of the prober and the weeder; empty if an address was asked.
    pub leaders: Vec<LeaseHolder>,
    /// Source of the config by which the objects were read; `None` where the prober answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessStatus>,
    #[serde(flatten)]
    pub status: ProberStatus,
}

/// The objects of a seed.
pub(crate) struct SeedObjects {
    pub reader: SeedReader,
    pub config_from: String,
}

/// Connects by the kubeconfig. Sends nothing yet.
pub(crate) async fn connect(args: &SeedArgs) -> anyhow::Result<Client> {
    let choice = KubeconfigChoice {
        path: args.kubeconfig.clone(),
        context: args.context.clone().filter(|name| !name.is_empty()),
    };
    seed_client::connect(Dialer::default(), choice, &RequestCounter::default()).await
}

impl SeedView {
    /// Asks the prober; reads the objects of the seed, or of one shoot, if none answers.
    pub(crate) async fn read(args: &SeedArgs, shoot: Option<&str>) -> anyhow::Result<Self> {
        let client = match &args.address {
            Some(_) => None,
            None => Some(connect(args).await?),
        };
        let (mut asked, answer) = ask(client.as_ref(), args).await;
        let mut leaders = Vec::new();
        if let Some(client) = &client {
            let read = |lease| leader::read(client, &args.garden_namespace, lease);
            let prober = async {
                match asked.leader.take() {
                    Some(leader) => leader,
                    None => read(leader::PROBER).await,
                }
            };
            leaders.extend(<[_; 2]>::from(futures::join!(prober, read(leader::WEEDER))));
        }
        let (process, config_from, status) = match (answer, client) {
            (Some(answer), _) => (Some(answer.process), None, answer.status),
            (None, client) => {
                let problems = asked.problems.join("; ");
                let nobody = || format!("no prober answers ({problems})");
                let client = client.with_context(nobody)?;
                let objects = SeedObjects::read(client, args, shoot).await;
                let objects = objects.with_context(nobody)?;
                let status = objects.reader.status();
                objects.reader.end().await;
                (None, Some(objects.config_from), status)
            }
        };
        Ok(Self {
            asked,
            leaders,
            config_from,
            process,
            status,
        })
    }

    /// Keeps one shoot, and what concerns it.
    pub(crate) fn into_shoot(self, namespace: &str) -> anyhow::Result<(Self, ShootEntry)> {
        let Self { mut status, .. } = self;
        let of = |shoot: &ShootEntry| shoot.namespace == namespace;
        let at = status.shoots.iter().position(of);
        let at = at.with_context(|| match status.unknown.as_deref() {
            Some("Clusters") => format!(
                "the seed's Clusters are not known at present: {namespace:?} may be a shoot or not"
            ),
            _ => unknown(namespace),
        })?;
        let shoot = status.shoots.swap_remove(at);
        status.shoots.clear();
        status
            .outages
            .retain(|outage: &Outage| outage.namespace == namespace);
        Ok((Self { status, ..self }, shoot))
    }
}

/// Says that there is no such shoot.
pub(crate) fn unknown(namespace: &str) -> String {
    format!(
        "there is no Cluster {namespace:?} on this seed; `dependency-watchdog status` lists all there are"
    )
}

impl SeedObjects {
    /// Reads the objects of the seed, or of one shoot.
    pub(crate) async fn read(
        client: Client,
        args: &SeedArgs,
        shoot: Option<&str>,
    ) -> anyhow::Result<Self> {
        check_access(&client, shoot).await?;
        let (config, config_from) = config::find(&client, args).await?;
        let shoot = shoot.map(str::to_owned);
        let reader = SeedReader::start(client, config, shoot, READ_TIMEOUT).await;
        anyhow::ensure!(
            reader.knows_clusters(),
            "the seed's Clusters could not be read in {} s",
            READ_TIMEOUT.as_secs()
        );
        Ok(Self {
            reader,
            config_from,
        })
    }
}

/// Fails at once, with the reason, where a watch would only be retried for ever.
async fn check_access(client: &Client, shoot: Option<&str>) -> anyhow::Result<()> {
    let clusters: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::erase::<Cluster>(&()));
    let mut params = ListParams::default().limit(1);
    if let Some(name) = shoot {
        params = params.fields(&format!("metadata.name={name}"));
    }
    let listed = tokio::time::timeout(READ_TIMEOUT, clusters.list(&params)).await;
    let problem = match &listed {
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
            "there are no Clusters on this API server; is it that of a Gardener seed?"
        }
        _ => "the seed's Clusters cannot be listed",
    };
    listed
        .context("no answer in time")
        .and_then(|listed| Ok(listed.map(drop)?))
        .context(problem)
}
