//! What a watch of a collection has shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinSet;

use crate::kube_api::{KubeApi, ObjectChange};
use crate::objects::{items, name};

/// What has been made of all changes of a collection. Dropping it ends the watch.
pub struct Followed<T> {
    seen: Arc<Mutex<T>>,
    _watch: JoinSet<()>,
}

impl<T: Send + 'static> Followed<T> {
    /// Follows the collection at this path.
    pub fn start(
        api: &KubeApi,
        path: impl Into<String>,
        seen: T,
        observe: impl Fn(&mut T, ObjectChange) + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Mutex::new(seen));
        let (api, path, watched) = (api.clone(), path.into(), seen.clone());
        let watch = async move {
            let observe = |change| observe(&mut watched.lock(), change);
            api.keep_following(&path, observe).await;
        };
        Self {
            seen,
            _watch: JoinSet::from_iter([watch]),
        }
    }

    /// What there is so far.
    pub fn get(&self) -> MutexGuard<'_, T> {
        self.seen.lock()
    }
}

/// The names of a cluster's nodes that were ever Unknown.
pub fn unknown_nodes(api: &KubeApi) -> Followed<BTreeSet<String>> {
    Followed::start(api, "/api/v1/nodes", BTreeSet::new(), |unknown, change| {
        let ObjectChange::Set(node) = change else {
            return;
        };
        let mut conditions = items(&node["status"]["conditions"]);
        if conditions.any(|it| it["type"] == "Ready" && it["status"] == "Unknown") {
            unknown.insert(name(&node).to_owned());
        }
    })
}
