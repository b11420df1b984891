//! A view: all objects of one kind that a selector matches, pruned and kept up to date by a watch.
//!
//! ```text
//! API server --list, watch--> kube's watcher --prune--> objects by namespace and name --> get, all_in
//!                                    |                                  '--> changed keys, for whoever must act on them
//!                                    '--> known? live?
//! ```
//!
//! A view says how far it can be trusted. It is *known* once it was filled and until its watch has been broken for
//! [`MAX_BLIND`] (D-27); it is *live* while the watch works. After any error the watch starts anew with a list, so that
//! being live again means that everything has been read anew.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::follow::{Follower, follow};

/// How long a view stays known after its watch broke (D-27).
pub const MAX_BLIND: Duration = Duration::from_secs(60);

/// Names an object: its namespace ("" when it has none) and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// All objects of one kind, as one watch shows them.
#[derive(Debug)]
pub struct View<V> {
    what: &'static str,
    objects: RwLock<Objects<V>>,
    state: watch::Sender<State>,
    reread: Notify,
}

/// The objects of one namespace, by name.
pub type Namespaced<V> = HashMap<String, Arc<V>>;

/// Whoever was handed a namespace keeps it as it was: it is copied before it changes.
type Objects<V> = HashMap<String, Arc<Namespaced<V>>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Empty,
    /// The watch works, since then without interruption.
    Live(Instant),
    BrokenSince(Instant),
}

impl<V> View<V> {
    /// An empty view; `what` names it in logs.
    pub fn new(what: &'static str) -> Arc<Self> {
        Arc::new(Self { what, objects: RwLock::default(), state: watch::Sender::new(State::Empty), reread: Notify::new() })
    }

    /// One object, as last seen.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<V>> {
        self.read().get(namespace)?.get(name).cloned()
    }

    /// All objects of a namespace, as last seen: the very same while nothing has changed there.
    pub fn all_in(&self, namespace: &str) -> Arc<Namespaced<V>> {
        self.read().get(namespace).cloned().unwrap_or_default()
    }

    /// All objects with their keys, as last seen.
    pub fn all(&self) -> Vec<(Key, Arc<V>)> {
        let key = |namespace: &String, name: &String| Key { namespace: namespace.clone(), name: name.clone() };
        let objects = self.read();
        let inside = objects
            .iter()
            .flat_map(|(namespace, inner)| inner.iter().map(move |(name, object)| (key(namespace, name), Arc::clone(object))));
        inside.collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().values().map(|inner| inner.len()).sum()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether what is not here can be taken not to exist.
    pub fn is_known(&self) -> bool {
        match *self.state.borrow() {
            State::Empty => false,
            State::Live(_) => true,
            State::BrokenSince(since) => since.elapsed() < MAX_BLIND,
        }
    }

    /// Waits until the watch works.
    pub async fn live(&self) {
        // The sender is a field of self, so the channel cannot close while we wait.
        let _ = self.state.subscribe().wait_for(|state| matches!(state, State::Live(_))).await;
    }

    /// Since when the watch has worked without interruption: everything was read then. None while it does not.
    pub fn live_since(&self) -> Option<Instant> {
        match *self.state.borrow() {
            State::Live(since) => Some(since),
            State::Empty | State::BrokenSince(_) => None,
        }
    }

    /// Does something each time that the watch has begun to work, for as long as it is polled.
    pub async fn each_time_live(&self, act: impl Fn()) {
        let mut states = self.state.subscribe();
        states.mark_changed();
        while states.changed().await.is_ok() {
            if matches!(*states.borrow_and_update(), State::Live(_)) {
                act();
            }
        }
    }

    /// Reads everything anew; the view is live again when that is done.
    pub fn reread(&self) {
        self.state.send_if_modified(|state| {
            let live = matches!(state, State::Live(_));
            if live {
                *state = State::BrokenSince(Instant::now());
            }
            live
        });
        self.reread.notify_one();
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Objects<V>> {
        self.objects.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Objects<V>> {
        self.objects.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn remove(&self, key: &Key) {
        let mut objects = self.write();
        let Some(inner) = objects.get_mut(&key.namespace).filter(|inner| inner.contains_key(&key.name)) else { return };
        let inner = Arc::make_mut(inner);
        inner.remove(&key.name);
        if inner.is_empty() {
            objects.remove(&key.namespace);
        }
    }

    fn broke(&self, error: &str) {
        let since = match *self.state.borrow() {
            State::BrokenSince(since) => Some(since),
            State::Live(_) => Some(Instant::now()),
            State::Empty => None,
        };
        match since {
            Some(since) => {
                self.state.send_replace(State::BrokenSince(since));
                tracing::warn!(
                    what = self.what,
                    broken_for_s = since.elapsed().as_secs_f64(),
                    error,
                    "watch broke, it starts anew"
                );
            }
            None => tracing::warn!(what = self.what, error, "cannot be listed yet, trying again"),
        }
    }
}

/// Turns an object into what the view keeps of it; none keeps nothing.
/// An object that cannot be decoded is never stored: what was known of it stays, and it is logged.
pub trait Prune<K, V>: Send {
    /// Prunes.
    fn prune(&mut self, object: K) -> impl Future<Output = Option<V>> + Send;
}

impl<K: Send, V: Send, F: FnMut(K) -> Option<V> + Send> Prune<K, V> for F {
    fn prune(&mut self, object: K) -> impl Future<Output = Option<V>> + Send {
        std::future::ready(self(object))
    }
}

impl<V: Send + Sync + 'static> View<V> {
    /// Keeps the view up to date until cancelled. The keys of objects that may have changed go to `changes`.
    pub async fn run<K>(
        self: Arc<Self>,
        api: Api<DeserializeGuard<K>>,
        config: watcher::Config,
        prune: impl Prune<K, V>,
        changes: Option<mpsc::Sender<Key>>,
        cancelled: CancellationToken,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let filler = Filler { view: &self, filling: None, prune, changes };
        follow(api, config, filler, cancelled).await;
    }

    /// Takes in one event; true when the view is complete with it.
    async fn take<K>(
        &self,
        event: Event<DeserializeGuard<K>>,
        filling: &mut Option<Objects<V>>,
        prune: &mut impl Prune<K, V>,
        changes: Option<&mpsc::Sender<Key>>,
    ) -> bool
    where
        K: Resource,
    {
        let mut changed = Vec::new();
        let mut complete = false;
        match event {
            Event::Init => *filling = Some(Objects::new()),
            Event::InitApply(object) => {
                let (key, value) = self.pruned(object, prune).await;
                if let (Some(value), Some(objects)) = (value, filling.as_mut()) {
                    insert(objects, &key, value);
                }
            }
            Event::InitDone => {
                let filled = filling.take().unwrap_or_default();
                let before = std::mem::replace(&mut *self.write(), filled);
                self.state.send_replace(State::Live(Instant::now()));
                complete = true;
                changed = keys(&before).chain(keys(&self.read())).collect();
            }
            Event::Apply(object) => {
                let (key, value) = self.pruned(object, prune).await;
                match value {
                    Some(value) => insert(&mut self.write(), &key, value),
                    None => self.remove(&key),
                }
                changed.push(key);
            }
            Event::Delete(object) => {
                let key = key_of(&object);
                self.remove(&key);
                changed.push(key);
            }
        }
        if let Some(changes) = changes {
            for key in changed {
                // Fails only when whoever acts on changes has ended, and then nothing is left to tell.
                let _ = changes.send(key).await;
            }
        }
        complete
    }

    async fn pruned<K: Resource>(&self, object: DeserializeGuard<K>, prune: &mut impl Prune<K, V>) -> (Key, Option<Arc<V>>) {
        let key = key_of(&object);
        match object.0 {
            Ok(object) => {
                let value = prune.prune(object).await.map(Arc::new);
                (key, value)
            }
            Err(error) => {
                tracing::warn!(what = self.what, namespace = key.namespace, name = key.name, error = %error, "object cannot be understood, what was known of it stays");
                let known = self.get(&key.namespace, &key.name);
                (key, known)
            }
        }
    }
}

/// Fills a view from a watch.
struct Filler<'a, V, P> {
    view: &'a View<V>,
    filling: Option<Objects<V>>,
    prune: P,
    changes: Option<mpsc::Sender<Key>>,
}

impl<K, V, P> Follower<K> for Filler<'_, V, P>
where
    K: Resource + Send,
    V: Send + Sync + 'static,
    P: Prune<K, V>,
{
    async fn take(&mut self, event: Event<DeserializeGuard<K>>) -> bool {
        self.view.take(event, &mut self.filling, &mut self.prune, self.changes.as_ref()).await
    }

    fn broke(&mut self, error: &str) {
        self.view.broke(error);
    }

    fn anew(&self) -> impl Future<Output = ()> + Send {
        self.view.reread.notified()
    }
}

/// The key of an object.
pub fn key_of(object: &impl Resource) -> Key {
    Key { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

fn insert<V>(objects: &mut Objects<V>, key: &Key, value: Arc<V>) {
    Arc::make_mut(objects.entry(key.namespace.clone()).or_default()).insert(key.name.clone(), value);
}

fn keys<V>(objects: &Objects<V>) -> impl Iterator<Item = Key> {
    objects
        .iter()
        .flat_map(|(namespace, inner)| inner.keys().map(|name| Key { namespace: namespace.clone(), name: name.clone() }))
}
