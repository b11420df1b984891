//! We install all that Gardener deploys, as its own code renders it, and say what differs.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::gardenlet::Gardenlet;
use testbed::objects::{Manifests, get};
use testbed::scenario;

use crate::tools::overlay;

/// Places at which Gardener differs from us, by kind. Its ConfigMaps are immutable and named by
/// their content, which annotations repeat for its garbage collector; its webhook turns one replica
/// into two; the image is what an installation is about; its autoscaler knows modes that older ones
/// refuse.
const OTHERWISE: &str = "
ConfigMap /immutable
ConfigMap /metadata/labels/resources.gardener.cloud~garbage-collectable-reference
ConfigMap /metadata/name
Deployment /metadata/annotations
Deployment /spec/replicas
Deployment /spec/template/metadata/annotations
Deployment /spec/template/spec/containers/0/image
Deployment /spec/template/spec/volumes/0/configMap/name
VerticalPodAutoscaler /spec/updatePolicy/updateMode
";

/// The places at which `theirs` says something that `ours` does not. What is named by a hash is
/// known by its parent.
fn unsaid(theirs: &Value, ours: &Value) -> BTreeSet<String> {
    match theirs {
        Value::Object(fields) => {
            let below = fields.iter().flat_map(|(name, value)| {
                let below = unsaid(value, &ours[name]);
                let is_hash = name.starts_with("reference.resources.gardener.cloud/");
                let name = name.replace('/', "~");
                let place = move |below: String| match is_hash {
                    true => String::new(),
                    false => format!("/{name}{below}"),
                };
                below.into_iter().map(place)
            });
            below.collect()
        }
        Value::Array(items) => {
            let below = items.iter().enumerate().flat_map(|(index, item)| {
                let below = unsaid(item, &ours[index]).into_iter();
                below.map(move |below| format!("/{index}{below}"))
            });
            below.collect()
        }
        _ if theirs.is_null() || theirs == ours => BTreeSet::new(),
        _ => BTreeSet::from([String::new()]),
    }
}

#[test]
fn all_of_gardeners_is_installed() -> Result<()> {
    scenario(async |_| {
        let (gardeners, ours) = (Gardenlet::built()?.seed().await?, overlay("everything")?);
        for (key, theirs) in &gardeners {
            let kind = key.split(' ').next().unwrap_or_default();
            let own = match kind {
                // Theirs is named by its content.
                "ConfigMap" => key.rsplit_once('-').context("a name without a hash")?.0,
                _ => key,
            };
            let own = get(&ours, own)?;
            let mut theirs = theirs.clone();
            // Nobody installs a status.
            theirs["status"].take();
            let otherwise = OTHERWISE.lines().filter_map(|line| line.split_once(' '));
            let expected = otherwise
                .filter(|(of, _)| *of == kind)
                .map(|(_, place)| place.to_owned());
            assert_eq!(unsaid(&theirs, own), expected.collect(), "{key}");
            // Here more would be something else.
            for place in [
                "/rules",
                "/subjects",
                "/spec/template/spec/containers/0/command",
                "/spec/resourcePolicy",
            ] {
                assert_eq!(theirs.pointer(place), own.pointer(place), "{key}: {place}");
            }
        }
        let grants =
            |objects: &Manifests| objects.keys().filter(|key| key.contains("Role")).count();
        assert_eq!((grants(&ours), gardeners.len()), (grants(&gardeners), 18));
        Ok(())
    })
}
