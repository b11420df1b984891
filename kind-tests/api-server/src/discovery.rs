//! What the server tells about itself: version and resources.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::resource::Resource;

const VERBS: [&str; 7] = [
    "create", "delete", "get", "list", "patch", "update", "watch",
];

pub(crate) fn version() -> Value {
    json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64"})
}

/// `None` if the group has no such version here.
pub(crate) fn resources(all: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let served = all
        .iter()
        .filter(|one| one.group == group && one.version == version);
    let mut found = Vec::new();
    for resource in served.clone() {
        let (plural, kind, namespaced) = (&resource.plural, &resource.kind, resource.namespaced);
        found.push(
            json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": VERBS}),
        );
        if resource.scale {
            found.push(json!({"name": format!("{plural}/scale"), "singularName": "", "namespaced": namespaced, "kind": "Scale",
                "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"]}));
        }
    }
    let api_version = served.clone().next()?.api_version();
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": found}),
    )
}
