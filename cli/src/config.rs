//! Which config the prober of the seed works by.

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use prober::config;
use prober_core::config::Config;

use crate::commands::Access;
use crate::output::with_causes;

/// The prober's Deployment, by Gardener's name (rule 85).
pub(crate) const DEPLOYMENT: &str = "dependency-watchdog-prober";
/// What Gardener renders: what a prober that cannot be asked most likely works by.
const GARDENERS: &str = include_str!("../../config/prober.yaml");

/// The config, and where it is from.
pub(crate) async fn find(client: &Client, access: &Access) -> anyhow::Result<(Config, String)> {
    if let Some(path) = &access.config_file {
        return Ok((config::load(path)?.config, path.display().to_string()));
    }
    let namespace = &access.garden_namespace;
    let reason = match mounted(client, namespace).await {
        Ok(Some((text, from))) => {
            return Ok((
                config::parse(&text).with_context(|| from.clone())?.config,
                from,
            ));
        }
        Ok(None) => format!("there is no Deployment {DEPLOYMENT} in {namespace}"),
        Err(error) => {
            format!(
                "the Deployment {DEPLOYMENT} in {namespace} cannot be read: {}",
                with_causes(error.as_ref())
            )
        }
    };
    anstream::eprintln!("note: {reason}; taking Gardener's config");
    Ok((
        config::parse(GARDENERS)?.config,
        "Gardener's config".to_owned(),
    ))
}

/// The text of the ConfigMap that the prober has mounted.
async fn mounted(client: &Client, namespace: &str) -> anyhow::Result<Option<(String, String)>> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let Some(deployment) = deployments.get_opt(DEPLOYMENT).await? else {
        return Ok(None);
    };
    let pod = deployment.spec.template.spec;
    let volumes = pod.and_then(|pod| pod.volumes).unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    for name in volumes
        .into_iter()
        .filter_map(|volume| Some(volume.config_map?.name))
    {
        let map = maps
            .get(&name)
            .await
            .with_context(|| format!("ConfigMap {name}"))?;
        // The one that holds a prober's config: other volumes hold certificates and the like.
        let text = map
            .data
            .into_iter()
            .flatten()
            .find(|(_, text)| text.contains("dependentResourceInfos"));
        if let Some((key, text)) = text {
            return Ok(Some((
                text,
                format!("ConfigMap {namespace}/{name}, key {key}"),
            )));
        }
    }
    anyhow::bail!("it has no ConfigMap with a prober's config mounted")
}
