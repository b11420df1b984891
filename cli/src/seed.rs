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
use prober::seed::watch_scope::WatchScope;

use crate::commands::Access;
use crate::config;
use crate::output::Progress;

/// How long the seed's objects may take to be read: a large seed has tens of thousands of Machines.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Seed {
    pub(crate) client: Client,
    pub(crate) config: prober_core::config::Config,
    pub(crate) config_from: String,
    pub(crate) prober: ReadOnlyProber,
}

impl Seed {
    pub(crate) fn cluster(&self, namespace: &str) -> anyhow::Result<Arc<ClusterState>> {
        self.prober.cluster(namespace).with_context(|| {
            format!("there is no Cluster {namespace:?} on this seed; `dependency-watchdog status` lists all there are")
        })
    }
}

pub(crate) async fn read(access: &Access, watch_scope: WatchScope) -> anyhow::Result<Seed> {
    // An error says that a provider is installed already, and there is only this one.
    let client = common::seed_client::connect(
        access.kubeconfig.as_deref(),
        &RequestCounter::register(&mut registry()),
    )
    .await?;
    let progress = Progress::saying("reading the seed ...");
    may_be_read(&client, &watch_scope).await?;
    drop(progress);
    let (config, config_from) = config::find(&client, access).await?;
    let progress = Progress::saying("reading the seed ...");
    let prober = ReadOnlyProber::start(client.clone(), config.clone(), watch_scope, PATIENCE).await;
    drop(progress);
    if let Some(what) = prober.unknown() {
        // Without the Clusters nothing can be said of any shoot, not even that there is none.
        anyhow::ensure!(
            what != "Clusters",
            "the seed's Clusters could not be read in {} s",
            PATIENCE.as_secs()
        );
        anstream::eprintln!(
            "warning: the seed's {what} could not be read in {} s; may they be listed and watched?",
            PATIENCE.as_secs()
        );
    }
    Ok(Seed {
        client,
        config,
        config_from,
        prober,
    })
}

/// Says at once why nothing can be read, which a watch would only retry for ever.
async fn may_be_read(client: &Client, watch_scope: &WatchScope) -> anyhow::Result<()> {
    let clusters: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::erase::<Cluster>(&()));
    let all = ListParams::default().limit(1);
    let params = match watch_scope {
        WatchScope::Seed | WatchScope::Unprobed => all,
        WatchScope::Shoot(name) => all.fields(&format!("metadata.name={name}")),
    };
    let answer = tokio::time::timeout(PATIENCE, clusters.list(&params))
        .await
        .context("no answer in time");
    match answer.and_then(|answer| Ok(answer?)) {
        Err(error) if matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404) => {
            Err(error.context(
                "there are no Clusters on this API server; is it that of a Gardener seed?",
            ))
        }
        answer => answer
            .map(drop)
            .context("the seed's Clusters cannot be listed"),
    }
}
