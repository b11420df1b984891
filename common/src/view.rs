//! A view: all objects of one kind that a selector matches, pruned and kept up to date by a watch.
//!
//! ```text
//! API server --list, watch--> follow --changes--> objects by namespace and name --> get, all_in
//!                                |                               '--> changed keys, for whoever must act on them
//!                                '--> known? live?
//! ```
//!
//! A view says how far it can be trusted. It is *known* once it was filled and until its watch has been broken for
//! [`MAX_BLIND`] (D-27); it is *live* while the watch works. After any error the watch restarts with a list, so that
//! being live again means that everything has been re-listed. A re-list can also be requested.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Resource};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::change::Change;
pub use crate::change::{Key, key_of};
use crate::follow::{Follower, follow};

/// How long a view stays known after its watch broke (D-27).
pub const MAX_BLIND: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct View<V> {
    what: &'static str,
    objects: RwLock<Objects<V>>,
    state: watch::Sender<State>,
}

/// By name.
pub type Namespaced<V> = HashMap<String, Arc<V>>;

/// Whoever was handed a namespace keeps it as it was: it is copied before it changes.
type Objects<V> = HashMap<String, Arc<Namespaced<V>>>;

#[derive(Clone, Copy, Debug, Default)]
struct State {
    health: Health,
    /// When all was listed last.
    read: Option<Instant>,
    /// How often a re-list was requested, and how many of these requests the last list answers: those made before it began.
    rereads: u64,
    answered: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Health {
    #[default]
    Empty,
    /// The watch works, since then without interruption.
    Live(Instant),
    BrokenSince(Instant),
}

impl State {
    fn is_live(&self) -> bool {
        matches!(self.health, Health::Live(_))
    }
}

impl<V> View<V> {
    /// `what` names it in logs.
    pub fn new(what: &'static str) -> Arc<Self> {
        Arc::new(Self { what, objects: RwLock::default(), state: watch::Sender::default() })
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<V>> {
        self.objects.read().get(namespace)?.get(name).cloned()
    }

    /// All objects of a namespace, as last seen: the very same while nothing has changed there.
    pub fn all_in(&self, namespace: &str) -> Arc<Namespaced<V>> {
        self.objects.read().get(namespace).cloned().unwrap_or_default()
    }

    pub fn all(&self) -> Vec<(Key, Arc<V>)> {
        entries(&self.objects.read()).map(|(key, object)| (key, Arc::clone(object))).collect()
    }

    /// Whether what is not here can be taken not to exist.
    pub fn is_known(&self) -> bool {
        match self.state.borrow().health {
            Health::Empty => false,
            Health::Live(_) => true,
            Health::BrokenSince(since) => since.elapsed() < MAX_BLIND,
        }
    }

    pub async fn live(&self) {
        // The sender is a field of self, so the channel cannot close while we wait.
        let _ = self.state.subscribe().wait_for(|state| state.is_live()).await;
    }

    /// Since when the watch has worked without interruption: everything was read then. None while it does not.
    pub fn live_since(&self) -> Option<Instant> {
        match self.state.borrow().health {
            Health::Live(since) => Some(since),
            Health::Empty | Health::BrokenSince(_) => None,
        }
    }

    /// When everything was read last; none while a re-list is to come.
    pub fn read_at(&self) -> Option<Instant> {
        let state = self.state.borrow();
        state.read.filter(|_| state.answered == state.rereads)
    }

    /// Does something each time that the watch has begun to work or a re-list was requested or is done, for as long as it is polled.
    pub async fn each_time_live(&self, act: impl Fn()) {
        let mut states = self.state.subscribe();
        states.mark_changed();
        while states.changed().await.is_ok() {
            if states.borrow_and_update().is_live() {
                act();
            }
        }
    }

    /// Requests a re-list. A list that is under way is not interrupted, nor does it count: however often this is asked, one list follows
    /// another. The view stays live meanwhile.
    pub fn reread(&self) {
        self.state.send_modify(|state| state.rereads += 1);
    }

    fn remove(&self, key: &Key) {
        let mut objects = self.objects.write();
        let Some(inner) = objects.get_mut(&key.namespace).filter(|inner| inner.contains_key(&key.name)) else { return };
        let inner = Arc::make_mut(inner);
        inner.remove(&key.name);
        if inner.is_empty() {
            objects.remove(&key.namespace);
        }
    }

    fn broke(&self, error: &str) {
        let since = match self.state.borrow().health {
            Health::BrokenSince(since) => since,
            Health::Live(_) => Instant::now(),
            Health::Empty => return tracing::warn!(what = self.what, error, "cannot be listed yet, trying again"),
        };
        self.state.send_modify(|state| state.health = Health::BrokenSince(since));
        let broken_for_s = since.elapsed().as_secs_f64();
        tracing::warn!(what = self.what, broken_for_s, error, "watch broke, it is restarted");
    }
}

impl<V: Send + Sync + 'static> View<V> {
    /// Keeps the view up to date until cancelled. The keys of objects that may have changed go to `changes`. An object that cannot be
    /// decoded is never stored: what was known of it stays, and it is logged.
    pub async fn run<K>(
        self: Arc<Self>,
        api: Api<DeserializeGuard<K>>,
        config: watcher::Config,
        prune: impl FnMut(K) -> Option<V>,
        changes: Option<mpsc::Sender<Key>>,
        cancelled: CancellationToken,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        follow(api, config, prune, Filler::new(&self, changes), cancelled).await;
    }

    /// Applies a complete list, which answers the first `rereads` requests; the keys of what it may have changed.
    fn replace(&self, listed: HashMap<Key, V>, unreadable: &HashSet<Key>, rereads: u64) -> Vec<Key> {
        let mut objects = Objects::new();
        for (key, value) in listed {
            insert(&mut objects, key, Arc::new(value));
        }
        for key in unreadable {
            if let Some(known) = self.get(&key.namespace, &key.name) {
                insert(&mut objects, key.clone(), known);
            }
        }
        let before = std::mem::replace(&mut *self.objects.write(), objects);
        self.state.send_modify(|state| {
            let now = Instant::now();
            if !state.is_live() {
                state.health = Health::Live(now);
            }
            (state.read, state.answered) = (Some(now), rereads);
        });
        entries(&before).chain(entries(&self.objects.read())).map(|(key, _)| key).collect()
    }
}

struct Filler<'a, V> {
    view: &'a View<V>,
    /// The [`State::rereads`] when the list began that is under way, or is to begin; none while the watch works.
    listing: Option<u64>,
    changes: Option<mpsc::Sender<Key>>,
}

impl<'a, V> Filler<'a, V> {
    fn new(view: &'a View<V>, changes: Option<mpsc::Sender<Key>>) -> Self {
        Self { view, listing: Some(0), changes }
    }
}

impl<V: Send + Sync + 'static> Follower<V> for Filler<'_, V> {
    async fn begin(&mut self) {
        // Nothing has been sent yet.
        self.listing = Some(self.view.state.borrow().rereads);
    }

    async fn take(&mut self, change: Change<V>) {
        let view = self.view;
        let changed = match change {
            Change::Listed { objects, unreadable } => view.replace(objects, &unreadable, self.listing.take().unwrap_or_default()),
            Change::Applied(key, value) => {
                insert(&mut view.objects.write(), key.clone(), Arc::new(value));
                vec![key]
            }
            Change::Gone(key) => {
                view.remove(&key);
                vec![key]
            }
            Change::Lost(error) => {
                self.listing = Some(0);
                view.broke(&error);
                vec![]
            }
        };
        if let Some(changes) = &self.changes {
            for key in changed {
                // Fails only when whoever acts on changes has ended.
                let _ = changes.send(key).await;
            }
        }
    }

    fn unreadable(&mut self, key: &Key, error: &str) {
        let Key { namespace, name } = key;
        tracing::warn!(what = self.view.what, namespace, name, error, "object cannot be understood, what was known of it stays");
    }

    async fn relist(&mut self) {
        if self.listing.is_some() {
            std::future::pending::<()>().await;
        }
        // The sender is a field of the view, so the channel cannot close while we wait.
        let _ = self.view.state.subscribe().wait_for(|state| state.rereads != state.answered).await;
        self.listing = Some(0);
    }
}

fn insert<V>(objects: &mut Objects<V>, key: Key, value: Arc<V>) {
    Arc::make_mut(objects.entry(key.namespace).or_default()).insert(key.name, value);
}

fn entries<V>(objects: &Objects<V>) -> impl Iterator<Item = (Key, &Arc<V>)> {
    let key = |namespace: &String, name: &String| Key { namespace: namespace.clone(), name: name.clone() };
    objects.iter().flat_map(move |(namespace, inner)| inner.iter().map(move |(name, object)| (key(namespace, name), object)))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    async fn lists(filler: &mut Filler<'_, ()>) {
        filler.begin().await;
        filler.take(Change::Listed { objects: HashMap::new(), unreadable: HashSet::new() }).await;
    }

    fn is_read(view: &View<()>) -> bool {
        view.read_at().is_some()
    }

    fn restarts(filler: &mut Filler<'_, ()>) -> bool {
        filler.relist().now_or_never().is_some()
    }

    #[tokio::test]
    async fn only_a_list_that_began_later_answers_a_request_for_one() {
        let view = View::<()>::new("secrets");
        let mut filler = Filler::new(&view, None);
        filler.begin().await;
        view.reread();
        assert!(!restarts(&mut filler), "the list that is under way goes on");
        filler.take(Change::Listed { objects: HashMap::new(), unreadable: HashSet::new() }).await;
        assert!(!is_read(&view) && view.live_since().is_some(), "older, but all there is");
        assert!(restarts(&mut filler));
        lists(&mut filler).await;
        assert!(is_read(&view) && !restarts(&mut filler));
    }

    #[tokio::test]
    async fn requests_for_a_list_are_answered_together() {
        let view = View::<()>::new("secrets");
        let mut filler = Filler::new(&view, None);
        lists(&mut filler).await;
        let live_since = view.live_since();
        (0..3).for_each(|_| view.reread());
        assert!(!is_read(&view) && restarts(&mut filler));
        lists(&mut filler).await;
        assert!(is_read(&view) && !restarts(&mut filler));
        assert_eq!(view.live_since(), live_since, "nothing was missed");
    }

    #[tokio::test]
    async fn a_list_that_broke_off_answers_nothing() {
        let view = View::<()>::new("secrets");
        let mut filler = Filler::new(&view, None);
        filler.begin().await;
        view.reread();
        filler.take(Change::Lost("cut".to_owned())).await;
        assert!(!restarts(&mut filler), "the next one is to begin anyway");
        lists(&mut filler).await;
        assert!(is_read(&view) && !restarts(&mut filler));
    }
}
