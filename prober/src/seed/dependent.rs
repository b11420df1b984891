//! The dependents: watched by name in all namespaces, written one by one.
//!
//! The replicas of Deployments, StatefulSets and ReplicaSets live at `spec.replicas`, so that one
//! merge patch changes them together with the annotations (D-29). Any other kind is scaled by its
//! scale subresource, which the API server's discovery must know.

mod scale;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use common::access_review::Right;
use common::api_failure::ApiFailure;
use common::backoff::Backoff;
use common::logging::with_causes;
use common::metrics::UnreadableObjects;
use common::objects::{if_readable, metadata};
use common::view::{Key, View};
use kube::api::ListParams;
use kube::core::{DynamicResourceScope, GroupVersionKind, ObjectMeta};
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Api, Client, Resource, ResourceExt};
use prober_core::config::ResourceRef;
use prober_core::replicas::{DependentState, Marks, Observed};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::scale::{ScaleReader, ScaleReading};
use crate::seed::PER_PAGE;
use crate::seed::watch_scope::WatchScope;

/// Longest wait between searches for a missing kind: a CRD may be installed at any time.
const MAX_KIND_WAIT: Duration = Duration::from_secs(60);

pub struct DependentView {
    pub resource: ResourceRef,
    kind: OnceLock<ScalableKind>,
    /// True if discovery has answered that there is no such kind, or none that can be scaled.
    no_such_kind: AtomicBool,
    view: Arc<View<Replicas>>,
    /// Cancelled when the config does not name the dependent any more.
    pub ended: CancellationToken,
}

/// Source of a dependent's replicas.
enum Replicas {
    InSpec(Arc<Observed>),
    InScale(ScaleReading),
}

impl Replicas {
    /// The dependent with them; `None` while they cannot be read.
    fn observed(&self) -> Option<Arc<Observed>> {
        match self {
            Self::InSpec(observed) => Some(Arc::clone(observed)),
            Self::InScale(reading) => reading.observed(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ScalableKind {
    api: ApiResource,
    /// True if the replicas are written at `spec.replicas`, not by the scale subresource.
    pub replicas_in_spec: bool,
}

impl ScalableKind {
    pub fn api(&self, client: &Client, namespace: &str) -> Api<ScalableObject> {
        Api::namespaced_with(client.clone(), namespace, &self.api)
    }

    /// Reads an object of this kind, with `replicas` if they are not in its spec.
    pub fn observe(&self, object: &ScalableObject, replicas: Option<i32>) -> Observed {
        Observed {
            uid: object.uid().unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            // An absent spec.replicas is 1, as the API server's default.
            replicas: replicas.or(object.spec.replicas).unwrap_or(1),
            ready: object.status.ready_replicas.unwrap_or(0),
            marks: Marks::of(object.metadata.annotations.as_ref()),
        }
    }
}

/// An object of any kind that can be scaled, pruned to what is read of it. Custom resources may
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

impl DependentView {
    pub fn new(
        resource: ResourceRef,
        unreadable: &UnreadableObjects,
        ended: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            resource,
            kind: OnceLock::new(),
            no_such_kind: AtomicBool::new(false),
            view: View::new("dependents", unreadable),
            ended,
        })
    }

    /// `None` while it is not known.
    pub fn kind(&self) -> Option<&ScalableKind> {
        self.kind.get()
    }

    /// Rights that writes to it need; empty while its kind is not known.
    pub fn rights(&self) -> Vec<Right> {
        let right = |kind: &ScalableKind, subresource| Right {
            verb: "patch",
            group: kind.api.group.clone(),
            resource: kind.api.plural.clone(),
            subresource,
            name: Some(self.resource.name.clone()),
        };
        match self.kind() {
            Some(kind) if kind.replicas_in_spec => vec![right(kind, None)],
            Some(kind) => vec![right(kind, None), right(kind, Some("scale"))],
            None => Vec::new(),
        }
    }

    pub fn state(&self, namespace: &str) -> DependentState {
        if self.no_such_kind.load(Ordering::Relaxed) {
            return DependentState::NoSuchKind;
        }
        match self.view.get(namespace, &self.resource.name) {
            _ if !self.view.is_known() => DependentState::Unknown,
            Some(replicas) => replicas
                .observed()
                .map_or(DependentState::Unknown, DependentState::Present),
            None => DependentState::Absent,
        }
    }

    /// True if its state is unknown although its kind may exist.
    pub fn is_unknown(&self) -> bool {
        !self.view.is_known() && !self.no_such_kind.load(Ordering::Relaxed)
    }

    /// The namespaces in which it is held down.
    pub fn held_down(&self) -> Vec<String> {
        let is_marked = |replicas: &Replicas| {
            replicas
                .observed()
                .is_some_and(|observed| observed.marks.held_down)
        };
        let all = self.view.all().into_iter();
        all.filter(|(_, replicas)| is_marked(replicas))
            .map(|(key, _)| key.namespace)
            .collect()
    }

    /// Waits until the view was filled once, and each scale was asked for once.
    pub async fn filled(&self) {
        self.view.live().await;
        for (_, replicas) in self.view.all() {
            if let Replicas::InScale(reading) = &*replicas {
                reading.tried().await;
            }
        }
    }

    /// Keeps the view up to date until it is ended. What may have changed goes to `changes`.
    pub async fn run(
        self: Arc<Self>,
        client: Client,
        watch_scope: WatchScope,
        changes: mpsc::Sender<Key>,
    ) {
        let Some(kind) = self.ended.run_until_cancelled(self.resolve(&client)).await else {
            return;
        };
        let kind = self.kind.get_or_init(|| kind).clone();
        self.no_such_kind.store(false, Ordering::Relaxed);
        let api = watch_scope.dynamic(client.clone(), &kind.api);
        let named = ListParams::default()
            .fields(&format!("metadata.name={}", self.resource.name))
            .limit(PER_PAGE);
        let (view, ended) = (Arc::clone(&self.view), self.ended.clone());
        if kind.replicas_in_spec {
            let prune = move |object: ScalableObject| {
                Some(Replicas::InSpec(Arc::new(kind.observe(&object, None))))
            };
            view.run(api, named, prune, Some(changes), ended).await;
        } else {
            let scales = ScaleReader::new(client, kind, changes.clone());
            let known = Arc::clone(&view);
            let prune = move |object: ScalableObject| {
                let before = known.get(&object.namespace().unwrap_or_default(), &object.name_any());
                let before = before.and_then(|before| before.observed());
                Some(Replicas::InScale(scales.begin(object, before)))
            };
            view.run(api, named, prune, Some(changes), ended).await;
        }
    }

    /// Finds out how the kind is addressed; tries until it is known.
    async fn resolve(&self, client: &Client) -> ScalableKind {
        let ResourceRef {
            api_version, kind, ..
        } = &self.resource;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        if (group, version) == ("apps", "v1")
            && ["Deployment", "StatefulSet", "ReplicaSet"].contains(&kind.as_str())
        {
            return ScalableKind {
                api: ApiResource::from_gvk(&gvk),
                replicas_in_spec: true,
            };
        }
        let mut backoff = Backoff::new(Duration::from_secs(1), MAX_KIND_WAIT);
        loop {
            match pinned_kind(client, &gvk).await {
                Ok((api, capabilities)) => {
                    let scalable = capabilities
                        .subresources
                        .iter()
                        .any(|(subresource, _)| subresource.plural == "scale");
                    if scalable && capabilities.scope == Scope::Namespaced {
                        return ScalableKind {
                            api,
                            replicas_in_spec: false,
                        };
                    }
                    self.no_such_kind.store(true, Ordering::Relaxed);
                    tracing::error!(resource = %self.resource, "kind cannot be scaled: it is not namespaced or has no scale subresource");
                }
                Err(error) => {
                    let answered = ApiFailure::from(&error) == ApiFailure::NotFound
                        || matches!(error, kube::Error::Discovery(_));
                    self.no_such_kind.store(answered, Ordering::Relaxed);
                    tracing::error!(resource = %self.resource, error = with_causes(&error), "kind cannot be found");
                }
            }
            tokio::time::sleep(backoff.wait()).await;
        }
    }
}
