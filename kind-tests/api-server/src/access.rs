//! Who asks, and whether they may: bearer tokens and rules in the manner of RBAC.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, header};
use k8s_openapi::api::rbac::v1::PolicyRule;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::requests::Record;
use crate::resource::full_name;
use crate::status::{ApiError, Named};

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
    /// Full names, with a subresource behind a slash: `pods/portforward`.
    resources: Vec<String>,
    namespace: Option<String>,
    names: Vec<String>,
}

/// The tokens of a server; can be changed while it runs.
#[derive(Debug, Default)]
pub struct Tokens {
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

    /// Someone who may do what the rules say, and ask for the version, as everybody may.
    pub fn limited(name: &str, rules: Vec<Rule>) -> Self {
        Self {
            name: name.to_owned(),
            rules: Some(rules),
        }
    }

    /// Refuses what the rules do not allow.
    pub(crate) fn check(&self, wanted: &Record) -> Result<(), ApiError> {
        let allowed = |rules: &Vec<Rule>| rules.iter().any(|rule| rule.allows(wanted));
        if self.rules.as_ref().is_none_or(allowed) {
            return Ok(());
        }
        let (full, subresource) = split(&wanted.resource, '/');
        let (kind, group) = split(full, '.');
        let resource = full_name("", kind, subresource);
        let place = match wanted.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let (user, verb, name) = (&self.name, &wanted.verb, &wanted.name);
        Err(Named { group, kind, name }.error(403, |object| {
            format!(
                "{object} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}"
            )
        }))
    }
}

fn split(text: &str, separator: char) -> (&str, &str) {
    text.split_once(separator).unwrap_or((text, ""))
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
        let rules = Vec::<PolicyRule>::deserialize(rules).expect("the rules of a role");
        let read = |rule: PolicyRule| {
            let mut resources = Vec::new();
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let (plural, subresource) = split(resource, '/');
                    resources.push(full_name(group, plural, subresource));
                }
            }
            Self {
                verbs: rule.verbs,
                resources,
                namespace: namespace.map(str::to_owned),
                names: rule.resource_names.unwrap_or_default(),
            }
        };
        rules.into_iter().map(read).collect()
    }

    /// In one namespace only.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// For one object name only.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    fn allows(&self, wanted: &Record) -> bool {
        let has = |allowed: &[String], wanted: &String| {
            allowed.iter().any(|one| one == "*" || one == wanted)
        };
        let namespace = self.namespace.as_ref();
        has(&self.verbs, &wanted.verb)
            && has(&self.resources, &wanted.resource)
            && namespace.is_none_or(|namespace| *namespace == wanted.namespace)
            && (self.names.is_empty() || self.names.contains(&wanted.name))
    }
}

impl Tokens {
    /// Lets a token stand for a user, from the next request on.
    pub fn grant(&self, token: &str, user: User) {
        self.users.lock().insert(token.to_owned(), Arc::new(user));
    }

    /// Makes a token worthless, from the next request on.
    pub fn revoke(&self, token: &str) {
        self.users.lock().remove(token);
    }

    /// Who sends a request with these headers.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<Arc<User>> {
        let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let token = header.strip_prefix("Bearer ")?.trim();
        self.users.lock().get(token).cloned()
    }
}
