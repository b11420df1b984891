//! What the server tells about itself: version and resources.

use std::sync::Arc;

use serde_json::json;

use crate::reply::{self, JSON, Reply};
use crate::resource::Resource;

const VERSION: &str = r#"{"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64"}"#;

/// Answers a request that is not for a resource.
pub(crate) fn serve(all: &[Arc<Resource>], path: &str) -> Reply {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", "version"] => reply::whole(200, JSON, VERSION),
        ["", "api", version] => resources(all, version),
        ["", "apis", group, version] => resources(all, &format!("{group}/{version}")),
        _ => reply::no_page(),
    }
}

fn resources(all: &[Arc<Resource>], api_version: &str) -> Reply {
    let mut found = Vec::new();
    for resource in all.iter().filter(|one| one.api_version() == api_version) {
        let Resource {
            plural,
            kind,
            namespaced,
            ..
        } = &**resource;
        let verbs = [
            "create", "delete", "get", "list", "patch", "update", "watch",
        ];
        found.push(json!({"name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": verbs}));
        if resource.scale {
            found.push(json!({"name": format!("{plural}/scale"), "singularName": "", "namespaced": namespaced, "kind": "Scale",
                "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"]}));
        }
    }
    if found.is_empty() {
        return reply::no_page();
    }
    reply::json(
        200,
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": found}),
    )
}
