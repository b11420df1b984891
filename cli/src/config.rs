//! Config that the prober of the seed works by.

use anyhow::Context;
use common::document::{ConfigError, load};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use prober::config;
use prober_core::config::Config;

use crate::commands::SeedArgs;
use crate::output::with_causes;
use crate::replicas::{LIST_TIMEOUT, within};

/// The prober's Deployment, by Gardener's name (rule 85).
pub(crate) const DEPLOYMENT: &str = "dependency-watchdog-prober";
/// Gardener's own, which a prober whose config cannot be read most likely works by.
const GARDENERS: &str = include_str!("../../config/prober.yaml");

/// The config, and where it is from.
pub(crate) async fn find(client: &Client, args: &SeedArgs) -> anyhow::Result<(Config, String)> {
    if let Some(path) = &args.config_file {
        return Ok((
            load(path, config::parse)?.config,
            path.display().to_string(),
        ));
    }
    let mounted = within(LIST_TIMEOUT, mounted(client, &args.garden_namespace)).await;
    let (text, file) = mounted.unwrap_or_else(|error| {
        let reason = with_causes(error.as_ref());
        eprintln!("note: {reason}; taking Gardener's config");
        (GARDENERS.to_owned(), "Gardener's config".to_owned())
    });
    match config::parse(&text) {
        Ok(loaded) => Ok((loaded.config, file)),
        Err(problems) => Err(ConfigError { file, problems }.into()),
    }
}

/// Reads the prober's Deployment.
pub(crate) async fn deployment(client: &Client, namespace: &str) -> anyhow::Result<Deployment> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get_opt(DEPLOYMENT).await;
    deployment
        .with_context(|| format!("the Deployment {DEPLOYMENT} in {namespace} cannot be read"))?
        .with_context(|| format!("there is no Deployment {DEPLOYMENT} in {namespace}"))
}

/// The text of the ConfigMap that the prober has mounted, and where it is from.
async fn mounted(client: &Client, namespace: &str) -> anyhow::Result<(String, String)> {
    let deployment = deployment(client, namespace).await?;
    let pod = deployment.spec.template.spec.unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    for volume in pod.volumes.unwrap_or_default() {
        let Some(source) = volume.config_map else {
            continue;
        };
        let name = source.name;
        let map = maps
            .get(&name)
            .await
            .with_context(|| format!("the ConfigMap {name} in {namespace} cannot be read"))?;
        // The one that holds a prober's config: other volumes hold certificates and the like.
        let mut data = map.data.into_iter().flatten();
        if let Some((key, text)) = data.find(|(_, text)| text.contains("dependentResourceInfos")) {
            return Ok((text, format!("ConfigMap {namespace}/{name}, key {key}")));
        }
    }
    anyhow::bail!(
        "the Deployment {DEPLOYMENT} in {namespace} has no ConfigMap with a prober's config mounted"
    )
}
