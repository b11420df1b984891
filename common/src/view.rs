//! A view: all objects of one kind that a selector matches, pruned and kept up to date by a watch.
//!
//! ```text
//! API server --list, watch--> reflector --changes--> objects by namespace and name --> get, all_in
//!                                   |                               '--> changed keys, for whoever must act on them
//!                                   '--> known? live?
//! ```
//!
//! A view says how far it can be trusted. It is *known* once it was filled and until nothing was
//! observed for [`MAX_BLIND`] (D-27), whether its watch is broken, being opened again or waits for
//! a list; it is *live* while the watch works, its ordinary ends included. A re-list can be
//! requested.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::watcher;
use kube::{Api, Resource};
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::change::{Change, Listed};
pub use crate::change::{Key, key_of};
use crate::followed::Followed;
use crate::metrics::UnreadableObjects;
use crate::reflector::{ChangeHandler, reflect};

/// Time that a view stays known while nothing is observed (D-27).
pub const MAX_BLIND: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct View<V> {
    /// Names the objects in logs.
    resource: &'static str,
    may_be_absent: bool,
    objects: RwLock<ByNamespace<V>>,
    state: Followed<ViewState>,
    unreadable: Counter,
}

/// Objects by name.
pub type Namespaced<V> = BTreeMap<String, Arc<V>>;

/// A namespace is copied before it changes: whoever was handed it keeps it as it was.
type ByNamespace<V> = BTreeMap<String, Arc<Namespaced<V>>>;

#[derive(Clone, Copy, Debug, Default)]
struct ViewState {
    /// Start of the watch's uninterrupted work; `None` since it broke.
    live: Option<Instant>,
    /// Start of the time without observation; `None` while a watch is open.
    unobserved: Option<Instant>,
    /// Time of the last complete list.
    listed: Option<Instant>,
    /// Number of re-list requests, and of those that the last list answers: made before it began.
    requested: u64,
    answered: u64,
}

impl ViewState {
    fn is_known(&self) -> bool {
        let blind = |since: Instant| since.elapsed() >= MAX_BLIND;
        self.listed.is_some() && !self.unobserved.is_some_and(blind)
    }

    fn live_since(&self) -> Option<Instant> {
        self.live.filter(|_| self.is_known())
    }

    fn listed_at(&self) -> Option<Instant> {
        let interrupted = self.live > self.listed;
        self.listed
            .filter(|_| self.answered == self.requested && !interrupted)
    }
}

impl<V> View<V> {
    pub fn new(resource: &'static str, unreadable: &UnreadableObjects) -> Arc<Self> {
        Arc::new(Self::empty(resource, unreadable, false))
    }

    /// A view of a kind that the API server may not know: then there are none.
    pub fn of_optional_kind(resource: &'static str, unreadable: &UnreadableObjects) -> Arc<Self> {
        Arc::new(Self::empty(resource, unreadable, true))
    }

    fn empty(resource: &'static str, unreadable: &UnreadableObjects, may_be_absent: bool) -> Self {
        Self {
            resource,
            may_be_absent,
            objects: RwLock::default(),
            state: Followed::default(),
            unreadable: unreadable.of(resource),
        }
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<V>> {
        self.objects.read().get(namespace)?.get(name).cloned()
    }

    /// All objects of a namespace, as last seen: the very same while nothing has changed there.
    pub fn all_in(&self, namespace: &str) -> Arc<Namespaced<V>> {
        self.objects
            .read()
            .get(namespace)
            .cloned()
            .unwrap_or_default()
    }

    pub fn all(&self) -> Vec<(Key, Arc<V>)> {
        entries(&self.objects.read())
            .map(|(key, object)| (key, Arc::clone(object)))
            .collect()
    }

    /// True if what is not here can be taken not to exist.
    pub fn is_known(&self) -> bool {
        self.state.lock().is_known()
    }

    pub async fn live(&self) {
        self.state
            .reaches(|state| state.live_since().is_some())
            .await;
    }

    /// Start of the watch's uninterrupted work; `None` while it does not work.
    pub fn live_since(&self) -> Option<Instant> {
        self.state.lock().live_since()
    }

    /// Time of the last complete list; `None` while a re-list is to come, or the watch went on
    /// after an interruption without one.
    pub fn listed_at(&self) -> Option<Instant> {
        self.state.lock().listed_at()
    }

    /// Requests a re-list each time that the watch goes on after an interruption without one, for
    /// as long as it is polled.
    pub async fn relist_after_interruptions(&self) {
        let wanted = |state: &ViewState| {
            state.requested == state.answered
                && state.live_since().is_some()
                && state.listed_at().is_none()
        };
        loop {
            self.state.reaches(wanted).await;
            self.relist();
        }
    }

    /// Does something each time that the watch has begun to work or a re-list was requested or is
    /// done, for as long as it is polled.
    pub async fn each_time_live(&self, act: impl Fn()) {
        loop {
            let changed = self.state.changed();
            if self.live_since().is_some() {
                act();
            }
            changed.await;
        }
    }

    /// Requests a re-list. A list that is under way is not interrupted, nor does it count: however
    /// often this is asked, one list follows another. The view stays live meanwhile.
    pub fn relist(&self) {
        self.state.change(|state| state.requested += 1);
    }

    fn insert(&self, key: Key, value: V) {
        let mut objects = self.objects.write();
        let names = objects.entry(key.namespace).or_default();
        Arc::make_mut(names).insert(key.name, Arc::new(value));
    }

    fn remove(&self, key: &Key) {
        let mut objects = self.objects.write();
        let names = objects.get_mut(&key.namespace);
        let Some(names) = names.filter(|names| names.contains_key(&key.name)) else {
            return;
        };
        let names = Arc::make_mut(names);
        names.remove(&key.name);
        if names.is_empty() {
            objects.remove(&key.namespace);
        }
    }

    /// Applies a complete list; what was there before.
    fn replace(&self, listed: Listed<V>) -> ByNamespace<V> {
        let objects: ByNamespace<V> = listed
            .into_iter()
            .map(|(namespace, names)| {
                let known = self.all_in(&namespace);
                let names = names.into_iter().filter_map(|(name, object)| {
                    let object = object.map(Arc::new).or_else(|| known.get(&name).cloned());
                    Some((name, object?))
                });
                (namespace, Arc::new(names.collect()))
            })
            .collect();
        std::mem::replace(&mut *self.objects.write(), objects)
    }

    /// The keys of all objects, those `before` included.
    fn keys(&self, before: &ByNamespace<V>) -> BTreeSet<Key> {
        let objects = self.objects.read();
        let all = entries(before).chain(entries(&objects));
        all.map(|(key, _)| key).collect()
    }
}

impl<V: Send + Sync + 'static> View<V> {
    /// Keeps the view up to date until cancelled. The keys of objects that may have changed go to
    /// `changes`. An object that cannot be read is never stored: what was known of it stays, and
    /// it is logged and counted.
    pub async fn run<K>(
        self: Arc<Self>,
        api: Api<K>,
        config: watcher::Config,
        prune: impl FnMut(K) -> Option<V>,
        changes: Option<mpsc::Sender<Key>>,
        cancelled: CancellationToken,
    ) where
        K: Resource + Clone + DeserializeOwned,
    {
        let writer = ViewWriter {
            view: &self,
            list_began_at: 0,
            changes,
        };
        let reflect = reflect(api, config, prune, writer);
        cancelled.run_until_cancelled(reflect).await;
    }
}

struct ViewWriter<'a, V> {
    view: &'a View<V>,
    /// The [`ViewState::requested`] when the last list began.
    list_began_at: u64,
    changes: Option<mpsc::Sender<Key>>,
}

impl<V: Send + Sync> ChangeHandler<V> for ViewWriter<'_, V> {
    fn resource(&self) -> &'static str {
        self.view.resource
    }

    fn may_be_absent(&self) -> bool {
        self.view.may_be_absent
    }

    fn list_begins(&mut self) {
        self.list_began_at = self.view.state.lock().requested;
    }

    async fn handle(&mut self, change: Change<V>) {
        let (view, state, now) = (self.view, &self.view.state, Instant::now());
        let mut changed = Vec::new();
        match change {
            Change::Listed(listed) => {
                let before = view.replace(listed);
                // Of 30,000 Machines the keys would take as much as the Machines.
                if self.changes.is_some() {
                    changed.extend(view.keys(&before));
                }
                state.change(|state| {
                    state.live = state.live_since().or(Some(now));
                    state.listed = Some(now);
                    state.unobserved = Some(now);
                    state.answered = self.list_began_at;
                });
            }
            Change::Applied(key, value) => {
                view.insert(key.clone(), value);
                changed.push(key);
            }
            Change::Gone(key) => {
                view.remove(&key);
                changed.push(key);
            }
            Change::Watched => {
                state.change_if(|state| {
                    let live_since = state.live_since();
                    state.unobserved = None;
                    state.live = live_since.or(Some(now));
                    live_since.is_none()
                });
            }
            Change::Ended => {
                state.lock().unobserved.get_or_insert(now);
            }
            Change::Lost => state.change(|state| {
                state.unobserved.get_or_insert(now);
                state.live = None;
            }),
        }
        if let Some(changes) = &self.changes {
            for key in changed {
                // Fails only when whoever acts on changes has ended.
                let _ = changes.send(key).await;
            }
        }
    }

    fn unreadable(&mut self) {
        self.view.unreadable.inc();
    }

    async fn relist_requested(&mut self) {
        let state = &self.view.state;
        state
            .reaches(|state| state.requested != state.answered)
            .await;
    }
}

fn entries<V>(objects: &ByNamespace<V>) -> impl Iterator<Item = (Key, &Arc<V>)> {
    objects.iter().flat_map(|(namespace, names)| {
        names.iter().map(|(name, object)| {
            let key = Key {
                namespace: namespace.clone(),
                name: name.clone(),
            };
            (key, object)
        })
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::sleep;

    use super::*;

    /// A view whose watch is in the hands of a test.
    struct Watched<'v> {
        view: &'v View<()>,
        writer: ViewWriter<'v, ()>,
    }

    impl<'v> Watched<'v> {
        fn new(view: &'v View<()>) -> Self {
            let writer = ViewWriter {
                view,
                list_began_at: 0,
                changes: None,
            };
            Self { view, writer }
        }

        async fn lists(&mut self) {
            self.writer.list_begins();
            self.shows(Change::Listed(Listed::new())).await;
        }

        async fn shows(&mut self, change: Change<()>) {
            self.writer.handle(change).await;
        }

        /// Whether all that is asked for is listed, and whether a list is asked for.
        fn is_listed(&mut self) -> (bool, bool) {
            let asked = self.writer.relist_requested().now_or_never().is_some();
            (self.view.listed_at().is_some(), asked)
        }
    }

    fn view() -> Arc<View<()>> {
        View::new("secrets", &UnreadableObjects::default())
    }

    #[tokio::test]
    async fn what_a_view_has_handed_out_stays_as_it_was_and_is_the_same_until_something_changes() {
        let view = view();
        let mut watched = Watched::new(&view);
        let key = |namespace: &str, name: &str| Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        watched.shows(Change::Applied(key("a", "one"), ())).await;
        let before = view.all_in("a");
        watched.shows(Change::Applied(key("b", "other"), ())).await;
        assert!(
            Arc::ptr_eq(&before, &view.all_in("a")),
            "nothing has changed there"
        );
        watched.shows(Change::Applied(key("a", "two"), ())).await;
        watched.shows(Change::Gone(key("a", "one"))).await;
        watched.shows(Change::Gone(key("a", "unknown"))).await;
        assert!(before.keys().eq(["one"]) && view.all_in("a").keys().eq(["two"]));
        watched.shows(Change::Gone(key("b", "other"))).await;
        let unreadable = Listed::from([(
            "a".to_owned(),
            BTreeMap::from([("two".to_owned(), None), ("three".to_owned(), None)]),
        )]);
        watched.shows(Change::Listed(unreadable)).await;
        assert_eq!(
            view.all()
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>(),
            [key("a", "two")]
        );
    }

    #[tokio::test]
    async fn only_a_list_that_began_later_answers_a_request_for_one() {
        let view = view();
        let mut watched = Watched::new(&view);
        watched.writer.list_begins();
        view.relist();
        watched.shows(Change::Listed(Listed::new())).await;
        // It is older, but all there is.
        assert_eq!(
            (watched.is_listed(), view.live_since().is_some()),
            ((false, true), true)
        );
        watched.lists().await;
        assert_eq!(watched.is_listed(), (true, false));
        let live_since = view.live_since();
        // Several requests are answered together.
        (0..3).for_each(|_| view.relist());
        assert_eq!(watched.is_listed(), (false, true));
        watched.lists().await;
        assert_eq!(watched.is_listed(), (true, false));
        assert_eq!(view.live_since(), live_since, "nothing was missed");
        // A list that broke off answers nothing.
        watched.writer.list_begins();
        view.relist();
        watched.shows(Change::Lost).await;
        assert_eq!(watched.is_listed(), (false, true));
        watched.lists().await;
        assert_eq!(watched.is_listed(), (true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_observed_for_a_minute_is_unknown_also_while_it_is_listed_again() {
        let view = view();
        let mut watched = Watched::new(&view);
        watched.lists().await;
        watched.shows(Change::Watched).await;
        let live_since = view.live_since();
        sleep(10 * MAX_BLIND).await;
        assert!(view.is_known() && live_since.is_some());
        watched.shows(Change::Ended).await;
        watched.writer.list_begins();
        sleep(MAX_BLIND - Duration::from_secs(1)).await;
        assert!(view.is_known() && view.live_since() == live_since);
        sleep(Duration::from_secs(1)).await;
        assert!(!view.is_known() && view.live_since().is_none());
        // The time before the break was noticed counts.
        watched.shows(Change::Lost).await;
        assert!(!view.is_known());
        watched.lists().await;
        assert!(
            view.is_known() && view.live_since() > live_since,
            "it was interrupted"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_ordinary_end_of_a_watch_is_no_interruption_and_a_break_is_one_also_without_a_list()
    {
        let view = view();
        let mut watched = Watched::new(&view);
        watched.lists().await;
        watched.shows(Change::Watched).await;
        let live_since = view.live_since();
        for (change, interrupts) in [(Change::Ended, false), (Change::Lost, true)] {
            watched.shows(change).await;
            sleep(Duration::from_secs(1)).await;
            watched.shows(Change::Watched).await;
            let is_listed = watched.is_listed();
            assert_eq!(
                (view.live_since() > live_since, is_listed),
                (interrupts, (!interrupts, false))
            );
        }
        assert!(view.relist_after_interruptions().now_or_never().is_none());
        assert_eq!(watched.is_listed(), (false, true));
        watched.lists().await;
        assert!(view.relist_after_interruptions().now_or_never().is_none());
        assert_eq!(watched.is_listed(), (true, false), "once");
    }
}
