//! What the server tells about itself: version and resources.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::resource::Resource;

pub(crate) fn version() -> Value {
    json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64"})
}

/// `None` if the group has no such version here.
pub(crate) fn resources(all: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let mut found = Vec::new();
    for resource in all
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
    {
        let Resource {
            plural,
            kind,
            namespaced,
            scale,
            ..
        } = &**resource;
        let verbs = [
            "create", "delete", "get", "list", "patch", "update", "watch",
        ];
        found.push(
            json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": verbs}),
        );
        if *scale {
            found.push(json!({"name": format!("{plural}/scale"), "singularName": "", "namespaced": namespaced, "kind": "Scale",
                "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"]}));
        }
    }
    let name = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    (!found.is_empty()).then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": found}))
}
