//! The seed, read with the operator's own kubeconfig.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use common::metrics::{RequestCounter, registry};
use kube::api::{DynamicObject, ListParams};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use prober::gardener::Cluster;
use prober::read_only::ReadOnlyProber;
use prober::seed::ClusterState;
use prober::{OwnerStatus, ShootState, WatchScope};
use prober_core::config::Config;
use serde::Serialize;

use crate::commands::SeedArgs;
use crate::config;
use crate::output::Progress;

/// How long the seed's objects may take to be read: a large seed has tens of thousands of Machines.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What is known of a shoot that is not probed from here.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShootSummary {
    pub namespace: String,
    pub state: ShootState,
    /// Nodes that usable Machines back; none when the Machines cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<usize>,
    /// None when the namespaces cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// What its owner record says, asked for from here; none where the config has no ownerCheck.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerStatus>,
}

pub(crate) struct SeedReader {
    pub client: Client,
    pub config: Config,
    pub config_from: String,
    pub prober: ReadOnlyProber,
}

impl SeedReader {
    pub(crate) async fn open(args: &SeedArgs, scope: WatchScope) -> anyhow::Result<Self> {
        let requests = RequestCounter::register(&mut registry());
        let client = common::seed_client::connect(args.kubeconfig.as_deref(), &requests).await?;
        let progress = Progress::start("reading the seed ...");
        check_access(&client, &scope).await?;
        drop(progress);
        let (config, config_from) = config::find(&client, args).await?;
        let progress = Progress::start("reading the seed ...");
        let prober =
            ReadOnlyProber::start(client.clone(), config.clone(), scope, READ_TIMEOUT).await;
        drop(progress);
        if let Some(what) = prober.unknown() {
            let problem = format!(
                "the seed's {what} could not be read in {} s",
                READ_TIMEOUT.as_secs()
            );
            // Without the Clusters nothing can be said of any shoot, not even that there is none.
            anyhow::ensure!(what != "Clusters", problem);
            anstream::eprintln!("warning: {problem}; may they be listed and watched?");
        }
        Ok(Self {
            client,
            config,
            config_from,
            prober,
        })
    }

    pub(crate) fn cluster(&self, namespace: &str) -> anyhow::Result<Arc<ClusterState>> {
        self.prober.cluster(namespace).with_context(|| {
            format!("there is no Cluster {namespace:?} on this seed; `dependency-watchdog status` lists all there are")
        })
    }

    pub(crate) fn summary(
        &self,
        namespace: String,
        cluster: &ClusterState,
        owner: Option<OwnerStatus>,
    ) -> ShootSummary {
        ShootSummary {
            state: cluster.into(),
            machines: self.prober.machines(&namespace),
            paused: self.prober.paused(&namespace),
            owner,
            namespace,
        }
    }

    /// The annotations of some namespaces whose values are refused, in words.
    pub(crate) fn refused(&self, of: impl Fn(&str) -> bool) -> Vec<String> {
        let refused = self.prober.refused().into_iter();
        refused
            .filter(|(namespace, _)| of(namespace))
            .map(|(namespace, refused)| format!("namespace {namespace}: {refused}"))
            .collect()
    }
}

/// Fails at once, with the reason, where a watch would only be retried for ever.
async fn check_access(client: &Client, scope: &WatchScope) -> anyhow::Result<()> {
    let clusters: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::erase::<Cluster>(&()));
    let mut params = ListParams::default().limit(1);
    if let WatchScope::Shoot(name) = scope {
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
