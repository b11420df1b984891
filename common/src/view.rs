//! A view: all objects of one kind that a selector matches, pruned and kept up to date by a watch.
//!
//! ```text
//! API server --list, watch--> follow --changes--> objects by namespace and name --> get, all_in
//!                                |                               '--> changed keys, for whoever must act on them
//!                                '--> known? live?
//! ```
//!
//! A view says how far it can be trusted. It is *known* once it was filled and until nothing was
//! observed for [`MAX_BLIND`] (D-27), whether its watch is broken, being opened again or waits for
//! a list; it is *live* while the watch works, its ordinary ends included. A re-list can be
//! requested.

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

/// How long a view stays known while nothing is observed (D-27).
pub const MAX_BLIND: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct View<V> {
    what: &'static str,
    may_be_absent: bool,
    objects: RwLock<Objects<V>>,
    state: watch::Sender<State>,
}

/// By name.
pub type Namespaced<V> = HashMap<String, Arc<V>>;

/// Whoever was handed a namespace keeps it as it was: it is copied before it changes.
type Objects<V> = HashMap<String, Arc<Namespaced<V>>>;

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Since when the watch has worked without interruption; none since it broke.
    live: Option<Instant>,
    /// Since when nothing has been observed; none while a watch is open.
    unobserved: Option<Instant>,
    /// When all was listed last.
    read: Option<Instant>,
    /// How often a re-list was requested, and how many of these requests the last list answers:
    /// those made before it began.
    rereads: u64,
    answered: u64,
}

impl State {
    fn is_known(&self) -> bool {
        self.read.is_some()
            && self
                .unobserved
                .is_none_or(|since| since.elapsed() < MAX_BLIND)
    }

    fn live_since(&self) -> Option<Instant> {
        self.live.filter(|_| self.is_known())
    }

    /// When everything was read last; none while a re-list is to come, or the watch went on after
    /// an interruption without one.
    fn read_at(&self) -> Option<Instant> {
        let interrupted = |read: &Instant| self.live.is_some_and(|since| since > *read);
        self.read
            .filter(|read| self.answered == self.rereads && !interrupted(read))
    }
}

impl<V> View<V> {
    /// `what` names it in logs.
    pub fn new(what: &'static str) -> Arc<Self> {
        Arc::new(Self {
            what,
            may_be_absent: false,
            objects: RwLock::default(),
            state: watch::Sender::default(),
        })
    }

    /// The same of a kind that the API server may not know: it is known that there are none.
    pub fn of_optional_kind(what: &'static str) -> Arc<Self> {
        Arc::new(Self {
            what,
            may_be_absent: true,
            objects: RwLock::default(),
            state: watch::Sender::default(),
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

    /// Whether what is not here can be taken not to exist.
    pub fn is_known(&self) -> bool {
        self.state.borrow().is_known()
    }

    pub async fn live(&self) {
        // The sender is a field of self, so the channel cannot close while we wait.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| state.live_since().is_some())
            .await;
    }

    /// Since when the watch has worked without interruption. None while it does not.
    pub fn live_since(&self) -> Option<Instant> {
        self.state.borrow().live_since()
    }

    /// When everything was read last; none while a re-list is to come, or the watch went on after
    /// an interruption without one.
    pub fn read_at(&self) -> Option<Instant> {
        self.state.borrow().read_at()
    }

    /// Requests a re-list each time that the watch goes on after an interruption without one, for
    /// as long as it is polled.
    pub async fn reread_after_interruptions(&self) {
        let wanted = |state: &State| {
            state.rereads == state.answered
                && state.live_since().is_some()
                && state.read_at().is_none()
        };
        let mut states = self.state.subscribe();
        while states.wait_for(wanted).await.is_ok() {
            self.reread();
        }
    }

    /// Does something each time that the watch has begun to work or a re-list was requested or is
    /// done, for as long as it is polled.
    pub async fn each_time_live(&self, act: impl Fn()) {
        let mut states = self.state.subscribe();
        states.mark_changed();
        while states.changed().await.is_ok() {
            if states.borrow_and_update().live_since().is_some() {
                act();
            }
        }
    }

    /// Requests a re-list. A list that is under way is not interrupted, nor does it count: however
    /// often this is asked, one list follows another. The view stays live meanwhile.
    pub fn reread(&self) {
        self.state.send_modify(|state| state.rereads += 1);
    }

    fn remove(&self, key: &Key) {
        let mut objects = self.objects.write();
        let Some(inner) = objects
            .get_mut(&key.namespace)
            .filter(|inner| inner.contains_key(&key.name))
        else {
            return;
        };
        let inner = Arc::make_mut(inner);
        inner.remove(&key.name);
        if inner.is_empty() {
            objects.remove(&key.namespace);
        }
    }

    fn watched(&self) {
        self.state.send_if_modified(|state| {
            let live_since = state.live_since();
            state.unobserved = None;
            state.live = live_since.or_else(|| Some(Instant::now()));
            live_since.is_none()
        });
    }

    fn ended(&self) {
        self.state.send_if_modified(|state| {
            state.unobserved.get_or_insert_with(Instant::now);
            false
        });
    }

    fn broke(&self) {
        self.ended();
        self.state.send_modify(|state| state.live = None);
    }
}

impl<V: Send + Sync + 'static> View<V> {
    /// Keeps the view up to date until cancelled. The keys of objects that may have changed go to
    /// `changes`. An object that cannot be decoded is never stored: what was known of it stays, and
    /// it is logged.
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

    /// Applies a complete list, which answers the first `rereads` requests; the keys of what it may
    /// have changed.
    fn replace(
        &self,
        listed: HashMap<Key, V>,
        unreadable: &HashSet<Key>,
        rereads: u64,
    ) -> Vec<Key> {
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
            state.live = state.live_since().or(Some(now));
            (state.read, state.unobserved, state.answered) = (Some(now), Some(now), rereads);
        });
        entries(&before)
            .chain(entries(&self.objects.read()))
            .map(|(key, _)| key)
            .collect()
    }
}

struct Filler<'a, V> {
    view: &'a View<V>,
    /// The [`State::rereads`] when the list began that is under way, or is to begin; none while the
    /// watch works.
    listing: Option<u64>,
    changes: Option<mpsc::Sender<Key>>,
}

impl<'a, V> Filler<'a, V> {
    fn new(view: &'a View<V>, changes: Option<mpsc::Sender<Key>>) -> Self {
        Self {
            view,
            listing: Some(0),
            changes,
        }
    }
}

impl<V: Send + Sync + 'static> Follower<V> for Filler<'_, V> {
    fn what(&self) -> &'static str {
        self.view.what
    }

    fn may_be_absent(&self) -> bool {
        self.view.may_be_absent
    }

    async fn begin(&mut self) {
        // Nothing has been sent yet.
        self.listing = Some(self.view.state.borrow().rereads);
    }

    async fn take(&mut self, change: Change<V>) {
        let view = self.view;
        let changed = match change {
            Change::Listed {
                objects,
                unreadable,
            } => view.replace(
                objects,
                &unreadable,
                self.listing.take().unwrap_or_default(),
            ),
            Change::Applied(key, value) => {
                insert(&mut view.objects.write(), key.clone(), Arc::new(value));
                vec![key]
            }
            Change::Gone(key) => {
                view.remove(&key);
                vec![key]
            }
            Change::Watched => {
                self.listing = None;
                view.watched();
                vec![]
            }
            Change::Ended => {
                view.ended();
                vec![]
            }
            Change::Lost => {
                self.listing = Some(0);
                view.broke();
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
        tracing::warn!(
            what = self.view.what,
            namespace,
            name,
            error,
            "object cannot be understood, what was known of it stays"
        );
    }

    async fn relist(&mut self) {
        if self.listing.is_some() {
            std::future::pending::<()>().await;
        }
        // The sender is a field of the view, so the channel cannot close while we wait.
        let _ = self
            .view
            .state
            .subscribe()
            .wait_for(|state| state.rereads != state.answered)
            .await;
        self.listing = Some(0);
    }
}

fn insert<V>(objects: &mut Objects<V>, key: Key, value: Arc<V>) {
    Arc::make_mut(objects.entry(key.namespace).or_default()).insert(key.name, value);
}

fn entries<V>(objects: &Objects<V>) -> impl Iterator<Item = (Key, &Arc<V>)> {
    let key = |namespace: &String, name: &String| Key {
        namespace: namespace.clone(),
        name: name.clone(),
    };
    objects.iter().flat_map(move |(namespace, inner)| {
        inner
            .iter()
            .map(move |(name, object)| (key(namespace, name), object))
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::sleep;

    use super::*;

    async fn lists(filler: &mut Filler<'_, ()>) {
        filler.begin().await;
        filler
            .take(Change::Listed {
                objects: HashMap::new(),
                unreadable: HashSet::new(),
            })
            .await;
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
        filler
            .take(Change::Listed {
                objects: HashMap::new(),
                unreadable: HashSet::new(),
            })
            .await;
        assert!(
            !is_read(&view) && view.live_since().is_some(),
            "older, but all there is"
        );
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
        filler.take(Change::Lost).await;
        assert!(!restarts(&mut filler), "the next one is to begin anyway");
        lists(&mut filler).await;
        assert!(is_read(&view) && !restarts(&mut filler));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_observed_for_a_minute_is_unknown_also_while_it_is_listed_again() {
        let view = View::<()>::new("secrets");
        let mut filler = Filler::new(&view, None);
        lists(&mut filler).await;
        filler.take(Change::Watched).await;
        let live_since = view.live_since();
        sleep(10 * MAX_BLIND).await;
        assert!(view.is_known() && live_since.is_some());
        filler.take(Change::Ended).await;
        filler.begin().await;
        sleep(MAX_BLIND - Duration::from_secs(1)).await;
        assert!(view.is_known() && view.live_since() == live_since);
        sleep(Duration::from_secs(1)).await;
        assert!(!view.is_known() && view.live_since().is_none());
        // The time before the break was noticed counts.
        filler.take(Change::Lost).await;
        assert!(!view.is_known());
        lists(&mut filler).await;
        assert!(
            view.is_known() && view.live_since() > live_since,
            "it was interrupted"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_ordinary_end_of_a_watch_is_no_interruption_and_a_break_is_one_also_without_a_list()
    {
        let view = View::<()>::new("secrets");
        let mut filler = Filler::new(&view, None);
        lists(&mut filler).await;
        filler.take(Change::Watched).await;
        let live_since = view.live_since();
        for (change, interrupts) in [(Change::Ended, false), (Change::Lost, true)] {
            filler.take(change).await;
            sleep(Duration::from_secs(1)).await;
            filler.take(Change::Watched).await;
            assert_eq!(
                (view.live_since() > live_since, is_read(&view)),
                (interrupts, !interrupts)
            );
        }
        assert!(!restarts(&mut filler), "nobody needs it read again");
        assert!(view.reread_after_interruptions().now_or_never().is_none());
        assert!(restarts(&mut filler));
        lists(&mut filler).await;
        assert!(is_read(&view));
        assert!(
            view.reread_after_interruptions().now_or_never().is_none() && !restarts(&mut filler),
            "once"
        );
    }
}
