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
    pulses: Vec<watch::Sender<RenewerState>>,
    /// Whoever renews holds it for reading.
    renewals: Arc<RwLock<()>>,
}

#[derive(Clone, Copy, Debug)]
struct RenewerState {
    cut: bool,
    /// From when on it beats.
    begin: Instant,
}

impl<L: LeaseWriter> LeaseRenewers<L> {
    /// None yet; each will renew once in a beat.
    pub fn new(leases: L, beat: Duration) -> Self {
        let beat = beat.max(Duration::from_millis(1));
        Self {
            leases,
            beat,
            names: Vec::new(),
            pulses: Vec::new(),
            renewals: Arc::default(),
        }
    }

    /// A node renews from now on, first after `phase`, on the current runtime.
    pub fn join(&mut self, name: &str, phase: Duration) {
        let (pulse, pulses) = watch::channel(RenewerState {
            cut: false,
            begin: Instant::now() + phase,
        });
        tokio::spawn(renewer(
            self.leases.clone(),
            name.to_owned(),
            self.beat,
            pulses,
            self.renewals.clone(),
        ));
        self.names.push(name.to_owned());
        self.pulses.push(pulse);
    }

    /// A node renews no longer.
    pub fn leave(&mut self, name: &str) {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            self.names.remove(at);
            self.pulses.remove(at);
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
        self.change(nodes, |pulse| pulse.cut = true);
    }

    /// Cuts the way of all.
    pub fn cut_all(&self) {
        self.cut(0..self.names.len());
    }

    /// Opens the way of some again. Each renews at its next beat, as its phase wants it.
    pub fn heal(&self, nodes: impl IntoIterator<Item = usize>) {
        self.change(nodes, |pulse| pulse.cut = false);
    }

    /// Opens the way of all again.
    pub fn heal_all(&self) {
        self.heal(0..self.names.len());
    }

    /// Opens the way of all again; each beats from now on at a new phase.
    pub fn heal_at(&self, phases: &[Duration]) {
        let now = Instant::now();
        for (pulse, &phase) in self.pulses.iter().zip(phases) {
            pulse.send_modify(|pulse| (pulse.cut, pulse.begin) = (false, now + phase));
        }
    }

    /// Waits until every renewal that was under way has ended.
    pub async fn settled(&self) {
        drop(self.renewals.write().await);
    }

    fn change(&self, nodes: impl IntoIterator<Item = usize>, change: impl Fn(&mut RenewerState)) {
        for pulse in nodes.into_iter().filter_map(|at| self.pulses.get(at)) {
            pulse.send_modify(&change);
        }
    }
}

/// One node's renewer, which ends when the sender of its pulse is dropped.
async fn renewer<L: LeaseWriter>(
    leases: L,
    name: String,
    beat: Duration,
    mut pulse: watch::Receiver<RenewerState>,
    renewals: Arc<RwLock<()>>,
) {
    let mut begin = pulse.borrow_and_update().begin;
    let (mut next, mut retry) = (begin, FIRST_RETRY);
    loop {
        tokio::select! {
            biased;
            () = sleep_until(next) => {
                let renewal = renewals.read().await;
                let cut = pulse.borrow().cut;
                let done = cut || timeout(PATIENCE, leases.renew(&name)).await.unwrap_or(false);
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
            changed = pulse.changed() => {
                if changed.is_err() {
                    return;
                }
                let newly = pulse.borrow_and_update().begin;
                if newly != begin {
                    (begin, next) = (newly, newly);
                }
            }
        }
    }
}

/// The time of a clock that is ahead of ours, as a lease has it.
pub fn stamp(ahead: TimeDelta) -> String {
    (wall::now() + ahead).to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use parking_lot::Mutex;

    /// Notes when renewals come, in milliseconds, and refuses them while it is away.
    #[derive(Clone)]
    struct Notes {
        start: Instant,
        renewals: Arc<Mutex<Vec<(String, u128)>>>,
        away: Arc<AtomicBool>,
    }

    impl LeaseWriter for Notes {
        async fn renew(&self, node: &str) -> bool {
            let renewal = (node.to_owned(), self.start.elapsed().as_millis());
            self.renewals.lock().push(renewal);
            !self.away.load(Ordering::Relaxed)
        }
    }

    impl Notes {
        /// Lets time go on; when node a renewed meanwhile.
        async fn after(&self, seconds: u64) -> Vec<u128> {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let renewals = std::mem::take(&mut *self.renewals.lock());
            let of_a = renewals.into_iter().filter(|(name, _)| name == "a");
            of_a.map(|(_, at)| at).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_renew_as_kubelets_do() {
        let notes = Notes {
            start: Instant::now(),
            renewals: Arc::default(),
            away: Arc::default(),
        };
        let seconds = Duration::from_secs;
        let mut renewers = LeaseRenewers::new(notes.clone(), seconds(10));
        renewers.join("a", seconds(1));
        renewers.join("b", seconds(6));
        assert_eq!(notes.after(20).await, [1000, 11_000]);
        renewers.cut([0]);
        assert_eq!(notes.after(25).await, [0; 0]);
        renewers.heal_all();
        assert_eq!(notes.after(10).await, [51_000], "at the old phase");
        renewers.cut_all();
        renewers.settled().await;
        assert_eq!(notes.after(10).await, [0; 0]);
        renewers.heal_at(&[seconds(4), seconds(2)]);
        assert_eq!(notes.after(20).await, [69_000, 79_000], "at a new phase");

        notes.away.store(true, Ordering::Relaxed);
        let tries = [
            89_000, 89_100, 89_300, 89_700, 90_500, 92_100, 95_300, 101_700, 108_700,
        ];
        assert_eq!(notes.after(27).await, tries, "soon and then less often");
        notes.away.store(false, Ordering::Relaxed);
        assert_eq!(notes.after(20).await, [115_700, 125_700]);
        renewers.leave("a");
        assert_eq!(renewers.names(), ["b"]);
        assert_eq!(notes.after(20).await, [0; 0]);
        drop(renewers);
        tokio::time::sleep(seconds(20)).await;
        assert!(notes.renewals.lock().is_empty());
    }
}
