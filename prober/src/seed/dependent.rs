//! The dependents: watched by name in all namespaces, written one by one.
//!
//! A dependent is of any kind with its replicas at `spec.replicas`, so that one merge patch changes
//! them together with the annotations.

use std::borrow::Cow;
use std::sync::Arc;

use common::metrics::LabelledCounters;
use common::objects::{if_readable, metadata};
use common::view::{Key, View};
use kube::core::{DynamicResourceScope, GroupVersionKind, ObjectMeta};
use kube::discovery::ApiResource;
use kube::{Api, Client, Resource, ResourceExt};
use prober_core::config::ResourceRef;
use prober_core::replicas::{DependentState, Marks, Observed, Unscalable};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::named;

pub struct DependentView {
    pub resource: ResourceRef,
    kind: ApiResource,
    pub(super) view: Arc<View<DependentState>>,
}

/// An object of any kind with `spec.replicas`, pruned to what is read of it. Custom resources may
/// hold anything in their spec and status.
#[derive(Clone, Debug, Deserialize)]
pub struct ScalableObject {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "if_readable")]
    spec: ScalableSpec,
    #[serde(default, deserialize_with = "if_readable")]
    status: ScalableStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ScalableSpec {
    #[serde(deserialize_with = "if_readable")]
    replicas: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScalableStatus {
    #[serde(deserialize_with = "if_readable")]
    ready_replicas: Option<i32>,
}

impl Resource for ScalableObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl From<ScalableObject> for DependentState {
    fn from(object: ScalableObject) -> Self {
        let Some(replicas) = object.spec.replicas else {
            return Self::Unscalable(Unscalable::NoReplicas);
        };
        Self::Present(Arc::new(Observed {
            uid: object.uid().unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            replicas,
            ready: object.status.ready_replicas.unwrap_or(0),
            marks: Marks::of(object.metadata.annotations.as_ref()),
        }))
    }
}

/// The kind that a config means.
pub fn kind(resource: &ResourceRef) -> ApiResource {
    let ResourceRef {
        api_version, kind, ..
    } = resource;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

impl DependentView {
    pub fn new(resource: ResourceRef, unreadable: &LabelledCounters) -> Arc<Self> {
        Arc::new(Self {
            kind: kind(&resource),
            resource,
            view: View::new("dependents", unreadable),
        })
    }

    /// The objects of its kind in a namespace.
    pub fn api(&self, client: &Client, namespace: &str) -> Api<ScalableObject> {
        Api::namespaced_with(client.clone(), namespace, &self.kind)
    }

    pub fn state(&self, namespace: &str) -> DependentState {
        if self.view.has_no_kind() {
            return DependentState::Unscalable(Unscalable::NoSuchKind);
        }
        match self.view.get(namespace, &self.resource.name) {
            _ if !self.view.is_known() => DependentState::Unknown,
            Some(state) => DependentState::clone(&state),
            None => DependentState::Absent,
        }
    }

    /// True if its state is unknown although its kind may exist.
    pub fn is_unknown(&self) -> bool {
        !self.view.is_known() && !self.view.has_no_kind()
    }

    /// The namespaces in which it is held down.
    pub fn held_down(&self) -> Vec<String> {
        let all = self.view.all().into_iter();
        let marked = all.filter(|(_, state)| match &**state {
            DependentState::Present(observed) => observed.marks.held_down && observed.replicas <= 0,
            _ => false,
        });
        marked.map(|(key, _)| key.namespace).collect()
    }

    /// Keeps the view up to date. What may have changed goes to `changes`.
    pub fn run(
        &self,
        client: Client,
        changes: mpsc::Sender<Key>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let api: Api<ScalableObject> = Api::all_with(client, &self.kind);
        let named = named(&self.resource.name);
        let prune = |object: ScalableObject| Some(DependentState::from(object));
        Arc::clone(&self.view).run(api, named, prune, Some(changes))
    }
}
