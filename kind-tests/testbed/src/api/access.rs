//! Who asks, and whether they may: bearer tokens and rules in the manner of RBAC.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::rbac::v1::PolicyRule;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::api::requests::Record;
use crate::api::resource::full_name;
use crate::api::status::{ApiError, details, of_code};

/// Someone a token stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// As it stands in errors and in the request log.
    pub name: String,
    /// What they may do; `None` means everything.
    pub rules: Option<Vec<Rule>>,
}

/// Verbs on resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    verbs: Vec<String>,
    /// Full names, with a subresource behind a slash: `deployments.apps/scale`.
    resources: Vec<String>,
    namespace: Option<String>,
    names: Vec<String>,
}

/// The tokens of a server; can be changed while it runs.
#[derive(Debug, Default)]
pub struct Access {
    users: Mutex<HashMap<String, Arc<User>>>,
}

impl User {
    /// Someone who may do everything.
    pub fn admin(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rules: None,
        }
    }

    /// Someone who may do what the rules say, and what every authenticated user may: versions,
    /// health, discovery, self reviews.
    pub fn limited(name: &str, rules: Vec<Rule>) -> Self {
        Self {
            name: name.to_owned(),
            rules: Some(rules),
        }
    }

    fn may(&self, wanted: &Record) -> bool {
        self.rules
            .as_ref()
            .is_none_or(|rules| rules.iter().any(|rule| rule.allows(wanted)))
    }

    /// Refuses what the rules do not allow.
    pub(crate) fn check(&self, wanted: &Record) -> Result<(), ApiError> {
        if self.may(wanted) {
            return Ok(());
        }
        let (full, subresource) = wanted
            .resource
            .split_once('/')
            .unwrap_or((&wanted.resource, ""));
        let (plural, group) = full.split_once('.').unwrap_or((full, ""));
        let resource = full_name("", plural, subresource);
        let place = match wanted.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let named = if wanted.name.is_empty() {
            String::new()
        } else {
            format!(" \"{}\"", wanted.name)
        };
        let message = format!(
            "{full}{named} is forbidden: User \"{}\" cannot {} resource \"{resource}\" in API group \"{group}\" {place}",
            self.name, wanted.verb
        );
        Err(of_code(403, message)
            .with_details(details(group, plural, &wanted.name))
            .boxed())
    }
}

impl Rule {
    /// Verbs (comma-separated) on resources (full names, comma-separated) in every namespace.
    pub fn new(verbs: &str, resources: &str) -> Self {
        let split = |text: &str| text.split(',').map(|part| part.trim().to_owned()).collect();
        Self {
            verbs: split(verbs),
            resources: split(resources),
            namespace: None,
            names: Vec::new(),
        }
    }

    /// The rules of a Role in this namespace, or of a ClusterRole.
    pub fn of_role(rules: &Value, namespace: Option<&str>) -> Vec<Self> {
        let full_name = |group: &str, resource: &str| {
            let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            full_name(group, plural, subresource)
        };
        let rule = |rule: PolicyRule| {
            let resources = rule.resources.unwrap_or_default();
            let groups = rule.api_groups.unwrap_or_default();
            let named = |group: &String| {
                resources
                    .iter()
                    .map(|resource| full_name(group, resource))
                    .collect::<Vec<_>>()
            };
            Self {
                verbs: rule.verbs,
                resources: groups.iter().flat_map(named).collect(),
                namespace: namespace.map(str::to_owned),
                names: rule.resource_names.unwrap_or_default(),
            }
        };
        let rules: Vec<PolicyRule> =
            serde_json::from_value(rules.clone()).expect("the rules of a role");
        rules.into_iter().map(rule).collect()
    }

    /// The same, in one namespace only.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// The same, for one object name only.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    fn allows(&self, wanted: &Record) -> bool {
        self.verbs
            .iter()
            .any(|verb| verb == "*" || *verb == wanted.verb)
            && self
                .resources
                .iter()
                .any(|resource| resource == "*" || *resource == wanted.resource)
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == wanted.namespace)
            && (self.names.is_empty() || self.names.contains(&wanted.name))
    }
}

impl Access {
    /// Lets a token stand for a user, from the next request on.
    pub fn grant(&self, token: &str, user: User) {
        self.users.lock().insert(token.to_owned(), Arc::new(user));
    }

    /// Makes a token worthless, from the next request on.
    pub fn revoke(&self, token: &str) {
        self.users.lock().remove(token);
    }

    /// Who stands behind an Authorization header.
    pub(crate) fn user(&self, header: Option<&str>) -> Option<Arc<User>> {
        let token = header?.strip_prefix("Bearer ")?.trim();
        self.users.lock().get(token).cloned()
    }
}

/// Answers a SelfSubjectAccessReview.
pub(crate) fn review(user: &User, mut review: Value) -> Value {
    let text = |key: &str| {
        review["spec"]["resourceAttributes"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let resource = full_name(&text("group"), &text("resource"), &text("subresource"));
    let wanted = Record {
        verb: text("verb"),
        resource,
        namespace: text("namespace"),
        name: text("name"),
        ..Record::default()
    };
    review["status"] = json!({"allowed": user.may(&wanted)});
    review
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(verb: &str, resource: &str, namespace: &str, name: &str) -> Record {
        let [verb, resource, namespace, name] =
            [verb, resource, namespace, name].map(str::to_owned);
        Record {
            verb,
            resource,
            namespace,
            name,
            ..Record::default()
        }
    }

    #[test]
    fn a_role_gives_what_its_rules_say_of_verb_resource_namespace_and_name_and_no_more() {
        let prober = crate::gardener::seed_prober();
        let (leases, lock) = ("leases.coordination.k8s.io", "dwd-prober-leader-election");
        for (may, verb, resource, namespace, name) in [
            (true, "patch", "deployments.apps/scale", "shoot", "kcm"),
            (false, "delete", "deployments.apps", "shoot", "kcm"),
            (false, "get", "deployments.apps/status", "shoot", "kcm"),
            (false, "get", "deployments", "shoot", "kcm"),
            (true, "watch", "secrets", "", ""),
            (true, "list", "machines.machine.sapcloud.io", "", ""),
            (true, "create", leases, "garden", ""),
            (true, "update", leases, "garden", lock),
            (false, "patch", leases, "garden", lock),
            (false, "update", leases, "default", lock),
            (false, "update", leases, "garden", "another"),
            (false, "create", "events", "shoot", ""),
        ] {
            assert_eq!(
                prober.may(&wanted(verb, resource, namespace, name)),
                may,
                "{verb} {resource} {namespace} {name}"
            );
        }
    }

    #[test]
    fn a_refusal_reads_like_the_real_one() {
        let error = User::limited("u", vec![])
            .check(&wanted("list", "deployments.apps/scale", "", ""))
            .unwrap_err();
        let expected = "deployments.apps is forbidden: User \"u\" cannot list resource \"deployments/scale\" in API group \"apps\" at the cluster scope";
        assert_eq!((error.code, error.message.as_str()), (403, expected));
    }
}
