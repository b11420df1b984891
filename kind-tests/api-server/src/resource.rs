//! What kinds of objects a server holds: the paths they are served under and the rules that differ
//! from kind to kind.

/// One resource of the API, for example `deployments` in `apps/v1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Version inside the group.
    pub version: String,
    /// Lower-case plural, as it stands in paths.
    pub plural: String,
    /// The kind of one object.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether clients write `status` through a path of its own, which is not offered here: only
    /// the test sets it.
    pub status: bool,
    /// Whether there is a scale subresource. Replicas live at `spec.replicas` and
    /// `status.replicas`, and those of a built-in kind that says none are 1.
    pub scale: bool,
    /// Whether it is a custom resource: no protobuf, stricter updates.
    pub custom: bool,
}

/// The name by which a [`crate::Store`] and rules know a resource: `nodes`,
/// `deployments.apps`, `deployments.apps/scale`.
pub(crate) fn full_name(group: &str, plural: &str, subresource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{plural}{dot}{group}{slash}{subresource}")
}

impl Resource {
    /// A namespaced built-in resource without subresources. `api_version` is `v1` or
    /// `GROUP/VERSION`.
    pub fn new(api_version: &str, plural: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced: true,
            status: false,
            scale: false,
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

    /// With a status subresource.
    #[must_use]
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// With a scale subresource.
    #[must_use]
    pub fn with_scale(mut self) -> Self {
        self.scale = true;
        self
    }

    /// Whether `metadata.generation` counts changes.
    pub(crate) fn has_generation(&self) -> bool {
        self.custom || self.scale
    }

    /// Whether an update must name a resourceVersion. Of the built-in kinds here only leases refuse
    /// one that does not.
    pub(crate) fn needs_version(&self) -> bool {
        self.custom || self.kind == "Lease"
    }

    /// Whether an update of what is not there creates it.
    pub(crate) fn creates_on_update(&self) -> bool {
        self.kind == "Lease"
    }

    /// `v1` or `GROUP/VERSION`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether it is of the same group and version.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (&self.group, &self.version) == (&other.group, &other.version)
    }

    /// The name under which a [`crate::Store`] finds it: `nodes`, `deployments.apps`.
    pub fn full_name(&self) -> String {
        full_name(&self.group, &self.plural, "")
    }

    /// The resources every server knows by itself, all of Kubernetes.
    pub fn built_in() -> Vec<Self> {
        let core = |plural, kind| Self::new("v1", plural, kind);
        let workload = |plural, kind| {
            let resource = Self::new("apps/v1", plural, kind);
            resource.with_status().with_scale()
        };
        vec![
            core("nodes", "Node").cluster_wide().with_status(),
            core("namespaces", "Namespace").cluster_wide().with_status(),
            core("pods", "Pod").with_status(),
            core("services", "Service").with_status(),
            core("secrets", "Secret"),
            core("configmaps", "ConfigMap"),
            core("serviceaccounts", "ServiceAccount"),
            core("events", "Event"),
            Self::new("events.k8s.io/v1", "events", "Event"),
            Self::new("coordination.k8s.io/v1", "leases", "Lease"),
            Self::new("discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
            workload("deployments", "Deployment"),
            workload("statefulsets", "StatefulSet"),
            workload("replicasets", "ReplicaSet"),
        ]
    }
}
