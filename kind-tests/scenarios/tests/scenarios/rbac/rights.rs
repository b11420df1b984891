//! Roles that lack something.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::kube_api::KubeApi;
use testbed::manifests::{GARDEN, Manifest};
use testbed::seed::apply;

/// The roles of one agent on one cluster.
pub struct Rights<'a> {
    pub api: &'a KubeApi,
    pub granted: Vec<Manifest>,
}

impl Rights<'_> {
    /// Takes verbs on a resource away, from the cluster-wide role or from the one in a namespace; everything else is granted.
    pub async fn without(&self, namespaced: bool, resource: &str, verbs: &[&str]) -> Result<()> {
        self.all().await?;
        let (path, rules) = self.role(namespaced)?;
        self.api.replace(&path, "/rules", &without(&rules, resource, verbs)).await
    }

    /// Grants everything again.
    pub async fn all(&self) -> Result<()> {
        for namespaced in [false, true] {
            let (path, rules) = self.role(namespaced)?;
            self.api.replace(&path, "/rules", &rules).await?;
        }
        Ok(())
    }

    fn role(&self, namespaced: bool) -> Result<(String, Value)> {
        let kind = if namespaced { "Role" } else { "ClusterRole" };
        let role = self.granted.iter().find(|(_, object)| object["kind"] == kind).context("no such role")?;
        let name = role.1["metadata"]["name"].as_str().context("no name")?;
        Ok((format!("{}/{name}", role.0), role.1["rules"].clone()))
    }

    /// Makes a ServiceAccount of this name that has all these rights but verbs on a resource; a kubeconfig's token for it.
    pub async fn somebody_without(&self, name: &str, resource: &str, verbs: &[&str]) -> Result<String> {
        let mut copies = self.granted.clone();
        copies.retain(|(_, object)| object["kind"] != "Namespace");
        for (_, object) in &mut copies {
            object["metadata"]["name"] = name.into();
            for pointer in ["/subjects/0/name", "/roleRef/name"] {
                if let Some(named) = object.pointer_mut(pointer) {
                    *named = name.into();
                }
            }
            if object["kind"] == "ClusterRole" {
                object["rules"] = without(&object["rules"], resource, verbs);
            }
        }
        apply(self.api, copies).await?;
        self.api.token(GARDEN, name).await
    }
}

/// Takes these away from the roles of these manifests: by resource, then verbs.
pub async fn strip(api: &KubeApi, granted: Vec<Manifest>, unneeded: &[(&str, &[&str])]) -> Result<()> {
    for (collection, object) in granted {
        if object["rules"].is_array() {
            let rules =
                unneeded.iter().fold(object["rules"].clone(), |rules, (resource, verbs)| without(&rules, resource, verbs));
            let name = object["metadata"]["name"].as_str().context("no name")?;
            api.replace(&format!("{collection}/{name}"), "/rules", &rules).await?;
        }
    }
    Ok(())
}

/// These rules without verbs on a resource.
fn without(rules: &Value, resource: &str, verbs: &[&str]) -> Value {
    let mut left = Vec::new();
    for rule in rules.as_array().into_iter().flatten() {
        let texts = |key: &str| -> Vec<String> {
            rule[key].as_array().into_iter().flatten().filter_map(|text| text.as_str().map(Into::into)).collect()
        };
        let (same, others): (Vec<_>, Vec<_>) = texts("resources").into_iter().partition(|name| name == resource);
        let kept: Vec<_> = texts("verbs").into_iter().filter(|verb| !verbs.contains(&verb.as_str())).collect();
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
