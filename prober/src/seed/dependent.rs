//! The dependents: watched by name in all namespaces, written one by one.
//!
//! The replicas of Deployments, StatefulSets and ReplicaSets live at `spec.replicas`, so that one
//! merge patch changes them together with the annotations (D-29). Any other kind is scaled by its
//! scale subresource, which the API server's discovery must know.

mod scale;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use common::backoff::Backoff;
use common::logging::with_causes;
use common::view::{Key, View};
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use prober_core::config::ResourceRef;
use prober_core::replicas::{DependentState, Marks, Observed};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::scale::{Reading, Scales};
use crate::seed::watch_scope::WatchScope;

/// How often a kind that does not exist is searched for again: a CRD may be installed at any time.
const MAX_KIND_WAIT: Duration = Duration::from_secs(60);

pub struct DependentView {
    pub resource: ResourceRef,
    kind: OnceLock<Kind>,
    /// Whether discovery has answered that there is no such kind, or none that can be scaled.
    no_such_kind: AtomicBool,
    view: Arc<View<State>>,
    /// Cancelled when the config does not name the dependent any more.
    pub ended: CancellationToken,
}

enum State {
    /// All, since its replicas are in its spec.
    Whole(Arc<Observed>),
    ByScale(Reading),
}

impl State {
    /// How it is; none while its replicas cannot be read.
    fn observed(&self) -> Option<Arc<Observed>> {
        match self {
            Self::Whole(observed) => Some(Arc::clone(observed)),
            Self::ByScale(reading) => reading.observed(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Kind {
    api: ApiResource,
    /// Whether the replicas are written at `spec.replicas`; otherwise by the scale subresource.
    pub replicas_in_spec: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error("no matches for kind {:?} in version {:?}", .0.kind, .0.api_version)]
    NoSuchKind(ResourceRef),
    /// The seed's view of it is not filled, or has been broken for too long (D-27).
    #[error("its state on the seed is not known at present")]
    Unknown,
}

impl Kind {
    pub fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.api)
    }

    /// What an object of this kind says; `replicas` where they are not in the object's spec.
    pub fn observe(&self, object: &DynamicObject, replicas: Option<i32>) -> Observed {
        let count = |value: &Value| value.as_i64().and_then(|count| i32::try_from(count).ok());
        Observed {
            uid: object.uid().unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            // An absent spec.replicas is 1, as the API server's default.
            replicas: replicas
                .or_else(|| count(&object.data["spec"]["replicas"]))
                .unwrap_or(1),
            ready: count(&object.data["status"]["readyReplicas"]).unwrap_or(0),
            marks: Marks::of(object.metadata.annotations.as_ref()),
        }
    }
}

impl DependentView {
    pub fn new(resource: ResourceRef, ended: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            resource,
            kind: OnceLock::new(),
            no_such_kind: AtomicBool::new(false),
            view: View::new("dependents"),
            ended,
        })
    }

    /// The state of the dependent in one shoot; none when it does not exist.
    pub fn observed(&self, namespace: &str) -> Result<Option<Arc<Observed>>, Unavailable> {
        self.kind()?;
        if !self.view.is_known() {
            return Err(Unavailable::Unknown);
        }
        let state = self.view.get(namespace, &self.resource.name);
        state
            .map(|state| state.observed().ok_or(Unavailable::Unknown))
            .transpose()
    }

    /// Whether nothing can be said of it although its kind may exist.
    pub fn is_unknown(&self) -> bool {
        !self.view.is_known() && !matches!(self.kind(), Err(Unavailable::NoSuchKind(_)))
    }

    pub fn state(&self, namespace: &str) -> DependentState {
        match self.observed(namespace) {
            Ok(Some(observed)) => DependentState::Present(observed),
            Ok(None) => DependentState::Absent,
            Err(Unavailable::NoSuchKind(_)) => DependentState::NoSuchKind,
            Err(Unavailable::Unknown) => DependentState::Unknown,
        }
    }

    pub fn kind(&self) -> Result<&Kind, Unavailable> {
        self.kind
            .get()
            .ok_or_else(|| match self.no_such_kind.load(Ordering::Relaxed) {
                true => Unavailable::NoSuchKind(self.resource.clone()),
                false => Unavailable::Unknown,
            })
    }

    pub fn held_down(&self) -> Vec<String> {
        let marked = |state: &State| {
            state
                .observed()
                .is_some_and(|observed| observed.marks.held_down)
        };
        self.view
            .all()
            .into_iter()
            .filter(|(_, state)| marked(state))
            .map(|(key, _)| key.namespace)
            .collect()
    }

    /// Waits until the view was filled once, and each scale was asked for once.
    pub async fn filled(&self) {
        self.view.live().await;
        for (_, state) in self.view.all() {
            if let State::ByScale(reading) = &*state {
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
        let api = watch_scope.dynamic(client.clone(), &kind.api);
        let named =
            watcher::Config::default().fields(&format!("metadata.name={}", self.resource.name));
        let (view, ended) = (Arc::clone(&self.view), self.ended.clone());
        if kind.replicas_in_spec {
            let prune = move |object: DynamicObject| {
                Some(State::Whole(Arc::new(kind.observe(&object, None))))
            };
            view.run(api, named, prune, Some(changes), ended).await;
        } else {
            let mut scales = Scales::new(client, kind, changes.clone());
            let before = Arc::clone(&view);
            let prune = move |object: DynamicObject| {
                let before =
                    before.get(&object.namespace().unwrap_or_default(), &object.name_any());
                Some(State::ByScale(
                    scales.read(object, before.and_then(|before| before.observed())),
                ))
            };
            view.run(api, named, prune, Some(changes), ended).await;
        }
    }

    /// Finds out how the kind is addressed; tries until it is known.
    async fn resolve(&self, client: &Client) -> Kind {
        let ResourceRef {
            api_version, kind, ..
        } = &self.resource;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        if (group, version) == ("apps", "v1")
            && ["Deployment", "StatefulSet", "ReplicaSet"].contains(&kind.as_str())
        {
            return Kind {
                api: ApiResource::from_gvk(&gvk),
                replicas_in_spec: true,
            };
        }
        let mut backoff = Backoff::jittered(Duration::from_secs(1), MAX_KIND_WAIT);
        loop {
            match pinned_kind(client, &gvk).await {
                Ok((api, capabilities)) => {
                    let scalable = capabilities
                        .subresources
                        .iter()
                        .any(|(subresource, _)| subresource.plural == "scale");
                    if scalable && capabilities.scope == Scope::Namespaced {
                        return Kind {
                            api,
                            replicas_in_spec: false,
                        };
                    }
                    self.no_such_kind.store(true, Ordering::Relaxed);
                    tracing::error!(resource = %self.resource, "kind cannot be scaled: it is not namespaced or has no scale subresource");
                }
                Err(error) => {
                    let answered = matches!(&error, kube::Error::Api(status) if status.code == 404)
                        || matches!(error, kube::Error::Discovery(_));
                    self.no_such_kind.store(answered, Ordering::Relaxed);
                    tracing::error!(resource = %self.resource, error = with_causes(&error), "kind cannot be found");
                }
            }
            tokio::time::sleep(backoff.wait()).await;
        }
    }
}
