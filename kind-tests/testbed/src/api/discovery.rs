//! What the server tells about itself: version, groups, resources.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::resource::Resource;

pub(crate) fn version(git_version: &str) -> Value {
    let mut numbers = git_version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or("1"), numbers.next().unwrap_or("0"));
    json!({"major": major, "minor": minor, "gitVersion": git_version, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64"})
}

pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

pub(crate) fn groups(resources: &[Arc<Resource>]) -> Value {
    let mut known: Vec<(&str, Vec<&str>)> = vec![("authorization.k8s.io", vec!["v1"])];
    for resource in resources.iter().filter(|resource| !resource.group.is_empty()) {
        match known.iter_mut().find(|(group, _)| *group == resource.group) {
            Some((_, versions)) if !versions.contains(&resource.version.as_str()) => versions.push(&resource.version),
            Some(_) => {}
            None => known.push((&resource.group, vec![&resource.version])),
        }
    }
    let groups: Vec<Value> = known
        .into_iter()
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
                .collect();
            json!({"name": group, "preferredVersion": versions[0], "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `None` if the group has no such version here.
pub(crate) fn resources(all: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let mut found = Vec::new();
    if (group, version) == ("authorization.k8s.io", "v1") {
        found.push(
            json!({"name": "selfsubjectaccessreviews", "singularName": "", "namespaced": false, "kind": "SelfSubjectAccessReview",
            "verbs": ["create"]}),
        );
    }
    for resource in all.iter().filter(|resource| resource.group == group && resource.version == version) {
        let entry = |name: String, kind: &str, verbs: &[&str]| json!({"name": name, "singularName": "", "namespaced": resource.namespaced, "kind": kind, "verbs": verbs});
        let mut whole = entry(
            resource.plural.clone(),
            &resource.kind,
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        );
        whole["singularName"] = json!(resource.kind.to_lowercase());
        found.push(whole);
        if resource.scale.is_some() {
            let mut scale = entry(format!("{}/scale", resource.plural), "Scale", &["get", "patch", "update"]);
            scale["group"] = json!("autoscaling");
            scale["version"] = json!("v1");
            found.push(scale);
        }
        if resource.status {
            found.push(entry(format!("{}/status", resource.plural), &resource.kind, &["get", "patch", "update"]));
        }
    }
    let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!found.is_empty()).then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": found}))
}
