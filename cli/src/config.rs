//! Config that the prober of the seed works by.

use anyhow::{Context, bail};
use common::document::{ConfigError, load};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use prober::config;
use prober_core::config::Config;

use crate::ask::{DEPLOYMENT, REQUEST_TIMEOUT, deployment, within};
use crate::commands::RestoreArgs;

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
