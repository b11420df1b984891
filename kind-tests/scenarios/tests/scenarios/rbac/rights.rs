//! Roles that lack something.

use anyhow::Result;
use serde_json::{Value, json};
use testbed::gardener::GARDEN;
use testbed::kube_api::KubeApi;
use testbed::objects::path;

/// The roles of one agent on one cluster.
pub struct Rights<'a> {
    pub api: &'a KubeApi,
    pub granted: Vec<Value>,
}

impl Rights<'_> {
    /// Takes verbs on a resource away; everything else is granted.
    pub async fn without(&self, resource: &str, verbs: &[&str]) -> Result<()> {
        strip(self.api, &self.granted, &[(resource, verbs)]).await
    }

    /// Grants everything again.
    pub async fn all(&self) -> Result<()> {
        strip(self.api, &self.granted, &[]).await
    }

    /// Makes a ServiceAccount of this name that has all these rights but verbs on a resource; a
    /// kubeconfig's token for it.
    pub async fn somebody_without(
        &self,
        name: &str,
        resource: &str,
        verbs: &[&str],
    ) -> Result<String> {
        let mut copies = self.granted.clone();
        copies.retain(|object| object["kind"] != "Namespace");
        for object in &mut copies {
            object["metadata"]["name"] = name.into();
            for pointer in ["/subjects/0/name", "/roleRef/name"] {
                if let Some(named) = object.pointer_mut(pointer) {
                    *named = name.into();
                }
            }
            if object["rules"].is_array() {
                object["rules"] = without(&object["rules"], resource, verbs);
            }
        }
        self.api.create_all(&copies).await?;
        self.api.token(GARDEN, name).await
    }
}

/// Takes these away from the roles of these manifests: by resource, then verbs.
pub async fn strip(api: &KubeApi, granted: &[Value], unneeded: &[(&str, &[&str])]) -> Result<()> {
    for object in granted {
        if object["rules"].is_array() {
            let rules = unneeded
                .iter()
                .fold(object["rules"].clone(), |rules, (resource, verbs)| {
                    without(&rules, resource, verbs)
                });
            api.replace(&path(object)?, "/rules", &rules).await?;
        }
    }
    Ok(())
}

/// These rules without verbs on a resource.
fn without(rules: &Value, resource: &str, verbs: &[&str]) -> Value {
    let mut left = Vec::new();
    for rule in rules.as_array().into_iter().flatten() {
        let texts = |key: &str| -> Vec<String> {
            rule[key]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|text| text.as_str().map(Into::into))
                .collect()
        };
        let (same, others): (Vec<_>, Vec<_>) = texts("resources")
            .into_iter()
            .partition(|name| name == resource);
        let kept: Vec<_> = texts("verbs")
            .into_iter()
            .filter(|verb| !verbs.contains(&verb.as_str()))
            .collect();
        for (resources, verbs) in [(others, texts("verbs")), (same, kept)] {
            if !resources.is_empty() && !verbs.is_empty() {
                let mut rule = rule.clone();
                (rule["resources"], rule["verbs"]) = (json!(resources), json!(verbs));
                left.push(rule);
            }
        }
    }
    left.into()
}

#[test]
fn a_right_is_taken_away_and_no_other() {
    let rules = json!([{"apiGroups": [""], "resources": ["a", "b"], "verbs": ["get", "list"]}]);
    let expected = json!([
        {"apiGroups": [""], "resources": ["b"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["a"], "verbs": ["get"]},
    ]);
    assert_eq!(without(&rules, "a", &["list"]), expected);
    assert_eq!(without(&rules, "c", &["list"]), rules);
}
