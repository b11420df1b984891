//! A view: all objects of one kind that a selector matches, pruned and kept up to date by a watch.
//!
//! ```text
//! API server --list, watch--> reflector --changes--> objects by namespace and name --> get, all_in
//!                                   |                               '--> changed keys, for whoever must act on them
//!                                   '--> WatchState: known? live? listed?
//! ```
//!
//! A view says how far it can be trusted. It is *known* once it was filled and until nothing was
//! observed for [`MAX_BLIND`] (D-27), whether its watch is broken, being opened again or waits for
//! a list; it is *live* while the watch works, its ordinary ends included. A re-list can be
//! requested.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Resource};
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::state::WatchState;
pub use crate::change::Key;
use crate::change::{Change, Listed};
use crate::followed::Followed;
use crate::metrics::LabelledCounters;
use crate::reflector::{ChangeHandler, reflect};

/// Time that a view stays known while nothing is observed (D-27).
pub const MAX_BLIND: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct View<V> {
    /// Names the objects in logs.
    resource: &'static str,
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
    watch: WatchState,
    relist: Relist,
}

/// A re-list that is requested counts only if it begins after the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Relist {
    #[default]
    Done,
    Requested,
    Begun,
}

impl ViewState {
    fn live_since(&self) -> Option<Instant> {
        self.watch.live_since(Instant::now())
    }

    fn listed_at(&self) -> Option<Instant> {
        self.watch.listed().filter(|_| self.relist == Relist::Done)
    }
}

impl<V> View<V> {
    pub fn new(resource: &'static str, unreadable: &LabelledCounters) -> Arc<Self> {
        Arc::new(Self {
            resource,
            objects: RwLock::default(),
            state: Followed::default(),
            unreadable: unreadable.get_or_create(&[("resource", resource)]).clone(),
        })
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
        self.state.lock().watch.is_known(Instant::now())
    }

    /// True if nothing was ever listed, since the API server does not serve the kind.
    pub fn has_no_kind(&self) -> bool {
        self.state.lock().watch == WatchState::NoSuchKind
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

    /// Requests a re-list if the watch has gone on after an interruption without one.
    pub fn relist_if_missed(&self) {
        let state = *self.state.lock();
        let is_missed = state.live_since().is_some() && state.watch.listed().is_none();
        if is_missed && state.relist == Relist::Done {
            self.relist();
        }
    }

    /// Does something each time that the watch is in another state and works, or a re-list was
    /// requested or is done, for as long as it is polled.
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
        self.state.change(|state| state.relist = Relist::Requested);
    }

    fn insert(&self, key: Key, value: V) {
        let mut objects = self.objects.write();
        let names = objects.entry(key.namespace).or_default();
        Arc::make_mut(names).insert(key.name, Arc::new(value));
    }

    fn remove(&self, key: &Key) {
        let mut objects = self.objects.write();
        let names = objects.get_mut(&key.namespace);
        let Some(names) = names.map(Arc::make_mut) else {
            return;
        };
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
    /// Keeps the view up to date for as long as it is polled. The keys of objects that may have changed go to
    /// `changes`. An object that cannot be read is never stored: what was known of it stays, and
    /// it is logged and counted.
    pub async fn run<K>(
        self: Arc<Self>,
        api: Api<K>,
        selected: ListParams,
        prune: impl FnMut(K) -> Option<V>,
        changes: Option<mpsc::Sender<Key>>,
    ) where
        K: Resource + Clone + DeserializeOwned,
    {
        let writer = ViewWriter {
            view: &self,
            changes,
        };
        reflect(api, selected, prune, writer).await;
    }
}

struct ViewWriter<'a, V> {
    view: &'a View<V>,
    changes: Option<mpsc::Sender<Key>>,
}

impl<V: Send + Sync> ChangeHandler<V> for ViewWriter<'_, V> {
    fn resource(&self) -> &'static str {
        self.view.resource
    }

    fn list_begins(&mut self) {
        let relist = &mut self.view.state.lock().relist;
        if *relist == Relist::Requested {
            *relist = Relist::Begun;
        }
    }

    fn no_such_kind(&mut self) {
        let watch = &mut self.view.state.lock().watch;
        if *watch == WatchState::Unlisted {
            *watch = WatchState::NoSuchKind;
        }
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
                    state.watch = state.watch.after_list(now);
                    if state.relist == Relist::Begun {
                        state.relist = Relist::Done;
                    }
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
            Change::Watched => state.change(|state| state.watch = state.watch.working(now)),
            Change::Ended => state.change(|state| state.watch = state.watch.after_end(now)),
            Change::Lost => state.change(|state| state.watch = state.watch.after_failure(now)),
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
        state.reaches(|state| state.relist != Relist::Done).await;
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
    use tokio::time::advance;

    use super::*;

    fn view() -> Arc<View<()>> {
        View::new("secrets", &LabelledCounters::default())
    }

    fn writer(view: &View<()>) -> ViewWriter<'_, ()> {
        ViewWriter {
            view,
            changes: None,
        }
    }

    /// What happens, and how the view then is; `begin` and `listed` are of a list, `heal` asks for
    /// one after an interruption.
    async fn check(story: &str) {
        let (view, start) = (view(), Instant::now());
        let mut writer = writer(&view);
        for line in story.trim().lines() {
            let (steps, expected) = line.split_once("->").expect(line);
            for step in steps.split_whitespace() {
                match step {
                    "begin" => writer.list_begins(),
                    "listed" => writer.handle(Change::Listed(Listed::new())).await,
                    "watched" => writer.handle(Change::Watched).await,
                    "ended" => writer.handle(Change::Ended).await,
                    "404" => writer.no_such_kind(),
                    "lost" => writer.handle(Change::Lost).await,
                    "relist" => view.relist(),
                    "heal" => view.relist_if_missed(),
                    time => {
                        let seconds = time.trim_end_matches('s').parse().expect(line);
                        advance(Duration::from_secs(seconds)).await;
                    }
                }
            }
            let live = view.live_since().map(|since| (since - start).as_secs());
            let wanted = writer.relist_requested().now_or_never();
            let state = [
                view.has_no_kind().then(|| "no kind".to_owned()),
                view.is_known().then(|| "known".to_owned()),
                live.map(|seconds| format!("live since {seconds}s")),
                view.listed_at().map(|_| "listed".to_owned()),
                wanted.map(|()| "list wanted".to_owned()),
            ];
            let state: Vec<_> = state.into_iter().flatten().collect();
            assert_eq!(state.join(", "), expected.trim(), "{line}");
        }
    }

    #[tokio::test]
    async fn what_a_view_has_handed_out_stays_as_it_was_and_is_the_same_until_something_changes() {
        let view = view();
        let mut writer = writer(&view);
        let key = |namespace: &str, name: &str| Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        writer.handle(Change::Applied(key("a", "one"), ())).await;
        let before = view.all_in("a");
        writer.handle(Change::Applied(key("b", "other"), ())).await;
        assert!(Arc::ptr_eq(&before, &view.all_in("a")));
        writer.handle(Change::Applied(key("a", "two"), ())).await;
        writer.handle(Change::Gone(key("a", "one"))).await;
        assert!(before.keys().eq(["one"]) && view.all_in("a").keys().eq(["two"]));
        // Neither of these can be read.
        let names = ["two", "three"].map(|name| (name.to_owned(), None));
        let listed = Listed::from([("a".to_owned(), BTreeMap::from(names))]);
        writer.handle(Change::Listed(listed)).await;
        assert_eq!(view.all(), [(key("a", "two"), Arc::new(()))]);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_list_that_began_later_answers_a_request_for_one() {
        // The first is older, but all there is; several requests are answered together, and a list
        // that broke off answers none.
        let story = "
            begin relist listed  -> known, live since 0s, list wanted
            begin 5s listed      -> known, live since 0s, listed
            relist relist relist -> known, live since 0s, list wanted
            begin listed         -> known, live since 0s, listed
            begin relist lost    -> known, list wanted
            begin listed         -> known, live since 5s, listed";
        check(story).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_missing_only_before_the_first_list() {
        let story = "
            begin 404 lost       -> no kind
            begin lost           -> no kind
            begin listed         -> known, live since 0s, listed
            watched begin 404 1s -> known, live since 0s, listed";
        check(story).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_observed_for_a_minute_is_unknown_also_while_it_is_listed_again() {
        // The time before the break was noticed counts.
        let story = "
            begin listed watched 600s -> known, live since 0s, listed
            ended begin 59s           -> known, live since 0s, listed
            1s                        -> listed
            lost 1s                   -> listed
            begin listed              -> known, live since 661s, listed";
        check(story).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_ordinary_end_of_a_watch_is_no_interruption_and_a_break_is_one_also_without_a_list()
    {
        let story = "
            begin listed 1s watched -> known, live since 0s, listed
            ended 1s watched        -> known, live since 0s, listed
            lost 1s watched         -> known, live since 3s
            heal                    -> known, live since 3s, list wanted
            begin listed heal       -> known, live since 3s, listed";
        check(story).await;
    }
}
