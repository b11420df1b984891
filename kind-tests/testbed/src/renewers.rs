//! Nodes that renew their leases as kubelets do, each at a phase of its own, over any way to write
//! a lease.

use std::sync::Arc;
use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta};
use tokio::sync::{RwLock, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::wall;

/// A kubelet whose renewal failed tries again after this time, which doubles up to the longest (its
/// lease controller's back-off).
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// Of a beat: 7 s for kubelets, which renew every 10 s.
const LONGEST_RETRY: f64 = 0.7;
/// How long a kubelet waits for the answer to a renewal (nodeStatusUpdateFrequency).
const PATIENCE: Duration = Duration::from_secs(10);

/// A way to write leases.
pub trait LeaseWriter: Clone + Send + Sync + 'static {
    /// Renews the lease of a node. Returns true if that need not be tried again before the next
    /// beat.
    fn renew(&self, node: &str) -> impl Future<Output = bool> + Send;
}

/// The renewers of some nodes. Dropping it stops the renewals.
#[derive(Debug)]
pub struct LeaseRenewers<L> {
    leases: L,
    beat: Duration,
    names: Vec<String>,
    /// Whether each is cut off.
    cuts: Vec<watch::Sender<bool>>,
    /// Whoever renews holds it for reading.
    renewals: Arc<RwLock<()>>,
}

impl<L: LeaseWriter> LeaseRenewers<L> {
    /// None yet; each will renew once in a beat.
    pub fn new(leases: L, beat: Duration) -> Self {
        Self {
            leases,
            beat: beat.max(Duration::from_millis(1)),
            names: Vec::new(),
            cuts: Vec::new(),
            renewals: Arc::default(),
        }
    }

    /// A node renews from now on, first after `phase`, on the current runtime, until it leaves.
    pub fn join(&mut self, name: &str, phase: Duration) {
        let (cut, mut is_cut) = watch::channel(false);
        self.names.push(name.to_owned());
        self.cuts.push(cut);
        let (leases, renewals) = (self.leases.clone(), self.renewals.clone());
        let (beat, name) = (self.beat, name.to_owned());
        tokio::spawn(async move {
            let (mut next, mut retry) = (Instant::now() + phase, FIRST_RETRY);
            loop {
                tokio::select! {
                    biased;
                    () = sleep_until(next) => {
                        let renewal = renewals.read().await;
                        let cut = *is_cut.borrow();
                        let renewed = async { cut || leases.renew(&name).await };
                        let done = timeout(PATIENCE, renewed).await.unwrap_or(false);
                        drop(renewal);
                        let now = Instant::now();
                        if done {
                            retry = FIRST_RETRY;
                            while next <= now {
                                next += beat;
                            }
                        } else {
                            next = now + retry;
                            retry = (retry * 2).min(beat.mul_f64(LONGEST_RETRY));
                        }
                    }
                    changed = is_cut.changed() => {
                        // It has left.
                        if changed.is_err() {
                            return;
                        }
                    }
                }
            }
        });
    }

    /// A node renews no longer.
    pub fn leave(&mut self, name: &str) {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            self.names.remove(at);
            self.cuts.remove(at);
        }
    }

    /// All names, in the order in which they joined.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Time between two renewals of a node.
    pub fn beat(&self) -> Duration {
        self.beat
    }

    /// Cuts the way of some nodes to the API server, by number; numbers that do not exist are
    /// ignored.
    pub fn cut(&self, nodes: impl IntoIterator<Item = usize>) {
        for cut in nodes.into_iter().filter_map(|at| self.cuts.get(at)) {
            cut.send_replace(true);
        }
    }

    /// Cuts the way of all.
    pub fn cut_all(&self) {
        self.cut(0..self.names.len());
    }

    /// Opens the way of all again. Each renews at its next beat, as its phase wants it.
    pub fn heal_all(&self) {
        for cut in &self.cuts {
            cut.send_replace(false);
        }
    }

    /// Waits until every renewal that was under way has ended.
    pub async fn settled(&self) {
        drop(self.renewals.write().await);
    }
}

/// The time of a clock that is ahead of ours, as a lease has it.
pub fn stamp(ahead: TimeDelta) -> String {
    (wall::now() + ahead).to_rfc3339_opts(SecondsFormat::Micros, true)
}
