//! What kinds of objects a server holds: the paths they are served under and the rules that differ
//! from kind to kind.

/// One resource of the API, for example `deployments` in `apps/v1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// `v1` or `GROUP/VERSION`.
    pub api_version: String,
    /// Lower-case plural, as it stands in paths.
    pub plural: String,
    /// The kind of one object.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether it is a custom resource, whose objects have their type in lists, too.
    pub custom: bool,
}

/// The name by which a [`crate::Store`] and rules know a resource: `nodes`,
/// `deployments.apps`, `pods/portforward`.
pub(crate) fn full_name(group: &str, plural: &str, subresource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{plural}{dot}{group}{slash}{subresource}")
}

/// The group of `v1`, which is empty, or of `GROUP/VERSION`.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl Resource {
    /// A namespaced built-in resource without subresources. `api_version` is `v1` or
    /// `GROUP/VERSION`.
    pub fn new(api_version: &str, plural: &str, kind: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced: true,
            custom: false,
        }
    }

    /// A namespaced custom resource without subresources.
    pub fn custom(api_version: &str, plural: &str, kind: &str) -> Self {
        Self {
            custom: true,
            ..Self::new(api_version, plural, kind)
        }
    }

    /// At cluster scope.
    #[must_use]
    pub fn cluster_wide(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// The name under which a [`crate::Store`] finds it: `nodes`, `deployments.apps`.
    pub(crate) fn full_name(&self) -> String {
        full_name(group(&self.api_version), &self.plural, "")
    }

    /// The resources every server knows by itself, all of Kubernetes.
    pub fn built_in() -> Vec<Self> {
        let read = |line: &str| {
            let mut words = line.split(' ');
            let mut word = || words.next().expect("a word");
            let resource = Self::new(word(), word(), word());
            match words.next() {
                Some(_) => resource.cluster_wide(),
                None => resource,
            }
        };
        BUILT_IN.trim().lines().map(read).collect()
    }
}

const BUILT_IN: &str = "
v1 nodes Node cluster-wide
v1 namespaces Namespace cluster-wide
v1 pods Pod
v1 services Service
v1 secrets Secret
v1 configmaps ConfigMap
v1 serviceaccounts ServiceAccount
v1 events Event
events.k8s.io/v1 events Event
coordination.k8s.io/v1 leases Lease
discovery.k8s.io/v1 endpointslices EndpointSlice
apps/v1 deployments Deployment
apps/v1 statefulsets StatefulSet
apps/v1 replicasets ReplicaSet
";
