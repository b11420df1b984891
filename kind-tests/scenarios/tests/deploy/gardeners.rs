//! We install all that Gardener deploys, as its own code renders it, and say what differs.

use std::collections::BTreeSet;

use crate::tools::overlay;
use anyhow::{Context, Result};
use serde_json::Value;
use testbed::gardenlet::Gardenlet;
use testbed::objects::{Manifests, get};
use testbed::scenario;

/// Places at which Gardener differs from us. Its ConfigMaps are immutable and named by their
/// content, which annotations repeat for its garbage collector; its webhook turns one replica into
/// two; the image is what an installation is about; its autoscaler knows modes that older ones refuse.
const OTHERWISE: [(&str, &[&str]); 3] = [
    (
        "ConfigMap",
        &[
            "/immutable",
            "/metadata/labels/resources.gardener.cloud~garbage-collectable-reference",
            "/metadata/name",
        ],
    ),
    (
        "Deployment",
        &[
            "/metadata/annotations",
            "/spec/replicas",
            "/spec/template/metadata/annotations",
            "/spec/template/spec/containers/0/image",
            "/spec/template/spec/volumes/0/configMap/name",
        ],
    ),
    ("VerticalPodAutoscaler", &["/spec/updatePolicy/updateMode"]),
];

/// Gathers the places at which `theirs` says something that `ours` does not. What is named by a
/// hash is known by its parent.
fn unsaid(theirs: &Value, ours: &Value, place: &str, found: &mut BTreeSet<String>) {
    match theirs {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name.starts_with("reference.resources.gardener.cloud/") && ours[name].is_null() {
                    found.insert(place.to_owned());
                } else {
                    unsaid(
                        value,
                        &ours[name],
                        &format!("{place}/{}", name.replace('/', "~")),
                        found,
                    );
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                unsaid(item, &ours[index], &format!("{place}/{index}"), found);
            }
        }
        Value::Null => {}
        _ if theirs == ours => {}
        _ => {
            found.insert(place.to_owned());
        }
    }
}

/// Our counterpart of an object of Gardener's: a ConfigMap of ours is not named by its content.
fn counterpart<'a>(ours: &'a Manifests, key: &str) -> Result<&'a Value> {
    match key.starts_with("ConfigMap") {
        true => get(
            ours,
            key.rsplit_once('-').context("a name without a hash")?.0,
        ),
        false => get(ours, key),
    }
}

#[test]
fn all_of_gardeners_is_installed() -> Result<()> {
    scenario(async |_| {
        let (gardeners, ours) = (Gardenlet::built()?.seed().await?, overlay("everything")?);
        for (key, theirs) in &gardeners {
            let mut theirs = theirs.clone();
            // Nobody installs a status.
            theirs
                .as_object_mut()
                .context("no object")?
                .remove("status");
            let (counterpart, mut found) = (counterpart(&ours, key)?, BTreeSet::new());
            unsaid(&theirs, counterpart, "", &mut found);
            let kind = key.split(' ').next().unwrap_or_default();
            let expected = OTHERWISE
                .iter()
                .find(|(other, _)| *other == kind)
                .map_or(&[][..], |(_, places)| places);
            assert_eq!(
                found.iter().map(String::as_str).collect::<Vec<_>>(),
                expected,
                "{key}"
            );
            // Here more would be something else.
            for place in [
                "/rules",
                "/subjects",
                "/spec/template/spec/containers/0/command",
                "/spec/resourcePolicy",
            ] {
                assert_eq!(
                    theirs.pointer(place),
                    counterpart.pointer(place),
                    "{key}: {place}"
                );
            }
        }
        let grants =
            |objects: &Manifests| objects.keys().filter(|key| key.contains("Role")).count();
        assert_eq!((grants(&ours), gardeners.len()), (grants(&gardeners), 18));
        Ok(())
    })
}
