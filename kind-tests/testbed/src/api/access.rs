//! Who asks, and whether they may: bearer tokens and rules in the manner of RBAC.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::api::status::ApiError;

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

/// What a request wants, as the rules see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Full name, with a subresource behind a slash.
    pub resource: String,
    /// Empty at cluster scope and for all namespaces.
    pub namespace: String,
    /// Empty when no single object is meant.
    pub name: String,
}

/// The tokens of a server; can be changed while it runs.
#[derive(Debug, Default)]
pub struct Access {
    users: Mutex<HashMap<String, Arc<User>>>,
}

impl User {
    /// Someone who may do everything.
    pub fn admin(name: &str) -> Self {
        Self { name: name.to_owned(), rules: None }
    }

    /// Someone who may do what the rules say, and what every authenticated user may: versions, health, discovery, self reviews.
    pub fn limited(name: &str, rules: Vec<Rule>) -> Self {
        Self { name: name.to_owned(), rules: Some(rules) }
    }

    /// Whether the rules allow it.
    pub fn may(&self, wanted: &Attributes) -> bool {
        self.rules.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.allows(wanted)))
    }

    pub(crate) fn check(&self, wanted: &Attributes) -> Result<(), ApiError> {
        if self.may(wanted) {
            return Ok(());
        }
        let (full, subresource) = wanted.resource.split_once('/').unwrap_or((&wanted.resource, ""));
        let (plural, group) = full.split_once('.').unwrap_or((full, ""));
        let slash = if subresource.is_empty() { "" } else { "/" };
        let place = match wanted.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let named = if wanted.name.is_empty() { String::new() } else { format!(" \"{}\"", wanted.name) };
        let message = format!(
            "{full}{named} is forbidden: User \"{}\" cannot {} resource \"{plural}{slash}{subresource}\" in API group \"{group}\" {place}",
            self.name, wanted.verb
        );
        let mut error = ApiError::of_code(403, message);
        error.details.name.clone_from(&wanted.name);
        error.details.group = group.to_owned();
        error.details.kind = plural.to_owned();
        Err(error)
    }
}

impl Rule {
    /// Verbs (comma-separated) on resources (full names, comma-separated) in every namespace.
    pub fn new(verbs: &str, resources: &str) -> Self {
        let split = |text: &str| text.split(',').map(|part| part.trim().to_owned()).collect();
        Self { verbs: split(verbs), resources: split(resources), namespace: None, names: Vec::new() }
    }

    /// The rules of a Role in this namespace, or of a ClusterRole.
    pub fn of_role(rules: &Value, namespace: Option<&str>) -> Vec<Self> {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let full_name = |group: &str, resource: &str| match resource.split_once('/') {
            _ if group.is_empty() => resource.to_owned(),
            Some((plural, subresource)) => format!("{plural}.{group}/{subresource}"),
            None => format!("{resource}.{group}"),
        };
        let rule = |rule: &Value| {
            let resources = texts(&rule["resources"]);
            let named = |group: String| resources.iter().map(move |resource| full_name(&group, resource)).collect::<Vec<_>>();
            Self {
                verbs: texts(&rule["verbs"]),
                resources: texts(&rule["apiGroups"]).into_iter().flat_map(named).collect(),
                namespace: namespace.map(str::to_owned),
                names: texts(&rule["resourceNames"]),
            }
        };
        rules.as_array().into_iter().flatten().map(rule).collect()
    }

    /// The same, in one namespace only.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// The same, for one object name only.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    fn allows(&self, wanted: &Attributes) -> bool {
        self.verbs.iter().any(|verb| verb == "*" || *verb == wanted.verb)
            && self.resources.iter().any(|resource| resource == "*" || *resource == wanted.resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == wanted.namespace)
            && (self.names.is_empty() || self.names.contains(&wanted.name))
    }
}

impl Access {
    /// Lets a token stand for a user, from the next request on.
    pub fn grant(&self, token: &str, user: User) {
        self.users.lock().expect("no panic while locked").insert(token.to_owned(), Arc::new(user));
    }

    /// Makes a token worthless, from the next request on.
    pub fn revoke(&self, token: &str) {
        self.users.lock().expect("no panic while locked").remove(token);
    }

    /// Who stands behind an Authorization header.
    pub(crate) fn user(&self, header: Option<&str>) -> Option<Arc<User>> {
        let token = header?.strip_prefix("Bearer ")?.trim();
        self.users.lock().expect("no panic while locked").get(token).cloned()
    }
}

/// Answers a SelfSubjectAccessReview.
pub(crate) fn review(user: &User, mut review: Value) -> Value {
    let wanted = &review["spec"]["resourceAttributes"];
    let text = |key: &str| wanted[key].as_str().unwrap_or_default();
    let mut resource = text("resource").to_owned();
    if !text("group").is_empty() {
        resource = format!("{resource}.{}", text("group"));
    }
    if !text("subresource").is_empty() {
        resource = format!("{resource}/{}", text("subresource"));
    }
    let attributes = Attributes {
        verb: text("verb").to_owned(),
        resource,
        namespace: text("namespace").to_owned(),
        name: text("name").to_owned(),
    };
    let allowed = user.may(&attributes);
    review["kind"] = json!("SelfSubjectAccessReview");
    review["apiVersion"] = json!("authorization.k8s.io/v1");
    review["status"] = json!({"allowed": allowed});
    review
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(verb: &str, resource: &str, namespace: &str, name: &str) -> Attributes {
        let [verb, resource, namespace, name] = [verb, resource, namespace, name].map(str::to_owned);
        Attributes { verb, resource, namespace, name }
    }

    #[test]
    fn rules_bind_verb_resource_namespace_and_name() {
        let rule = Rule::new("get,update", "leases.coordination.k8s.io").in_namespace("garden").named("lock");
        let user = User::limited("prober", vec![rule]);
        assert!(user.may(&wanted("get", "leases.coordination.k8s.io", "garden", "lock")));
        for no in [
            wanted("patch", "leases.coordination.k8s.io", "garden", "lock"),
            wanted("get", "leases.coordination.k8s.io", "garden", "other"),
            wanted("get", "leases.coordination.k8s.io", "default", "lock"),
            wanted("get", "leases.coordination.k8s.io/status", "garden", "lock"),
        ] {
            assert!(!user.may(&no), "{no:?}");
        }
    }

    #[test]
    fn a_role_gives_what_its_rules_say_and_no_more() {
        let prober = crate::api::gardener::seed_prober();
        let may = |verb, resource, namespace, name| prober.may(&wanted(verb, resource, namespace, name));
        assert!(may("patch", "deployments.apps/scale", "shoot", "kcm") && may("watch", "secrets", "", ""));
        assert!(may("list", "machines.machine.sapcloud.io", "", "") && may("create", "leases.coordination.k8s.io", "garden", ""));
        assert!(may("update", "leases.coordination.k8s.io", "garden", "dwd-prober-leader-election"));
        assert!(!may("update", "leases.coordination.k8s.io", "garden", "another"));
        assert!(!may("create", "events", "shoot", "") && !may("delete", "deployments.apps", "shoot", "kcm"));
        assert!(!may("get", "deployments", "shoot", "kcm"));
    }

    #[test]
    fn a_refusal_reads_like_the_real_one() {
        let error = User::limited("u", vec![]).check(&wanted("list", "deployments.apps/scale", "", "")).unwrap_err();
        let expected = "deployments.apps is forbidden: User \"u\" cannot list resource \"deployments/scale\" in API group \"apps\" at the cluster scope";
        assert_eq!((error.code, error.message.as_str()), (403, expected));
    }
}
