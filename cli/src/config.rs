//! Config that the prober of the seed works by.

use anyhow::{Context, bail};
use common::document::{ConfigError, load};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use prober::config;
use prober_core::config::Config;

use crate::ask::{REQUEST_TIMEOUT, within};
use crate::commands::RestoreArgs;

/// The prober's Deployment, by Gardener's name (rule 85).
pub(crate) const DEPLOYMENT: &str = "dependency-watchdog-prober";

/// The config of the file, or of the ConfigMap that the prober has mounted.
pub(crate) async fn find(client: &Client, args: &RestoreArgs) -> anyhow::Result<Config> {
    if let Some(path) = &args.config_file {
        return Ok(load(path, config::parse)?.config);
    }
    let namespace = &args.seed.garden_namespace;
    let pod = deployment(client, namespace).await?.spec.template.spec;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let volumes = pod.into_iter().flat_map(|pod| pod.volumes).flatten();
    for source in volumes.filter_map(|volume| volume.config_map) {
        let file = format!("ConfigMap {namespace}/{}", source.name);
        let map = within(REQUEST_TIMEOUT, maps.get(&source.name)).await;
        let map = map.with_context(|| format!("{file} cannot be read"))?;
        // The one that holds a prober's config: other volumes hold certificates and the like.
        let mut texts = map.data.into_iter().flatten().map(|(_, text)| text);
        if let Some(text) = texts.find(|text| text.contains("dependentResourceInfos")) {
            let loaded = config::parse(&text);
            return Ok(loaded
                .map_err(|problems| ConfigError { file, problems })?
                .config);
        }
    }
    bail!(
        "the Deployment {DEPLOYMENT} in {namespace} has no ConfigMap with a prober's config mounted"
    )
}

/// Reads the prober's Deployment.
pub(crate) async fn deployment(client: &Client, namespace: &str) -> anyhow::Result<Deployment> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let read = within(REQUEST_TIMEOUT, deployments.get(DEPLOYMENT)).await;
    read.with_context(|| format!("the Deployment {DEPLOYMENT} in {namespace} cannot be read"))
}
