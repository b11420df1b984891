//! Carries out what the machine of one shoot asks for: probes, and for its dependents permits, reads and writes. At most one probe is under
//! way, and one thing for each dependent.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::config::{Config, ResourceRef};
use crate::core::plan::Direction;
use crate::core::replicas::{DependentState, Observed};
use crate::core::retry::Refusal;
use crate::core::shoot::{Action, Input, Order};
use crate::probe::{Listed, Probe};
use crate::seed::Seed;
use crate::seed::dependent::{DependentView, Unavailable};
use crate::shoot_client::error::ProbeError;
use crate::write::{WriteError, Writer};

type Probing = Pin<Box<dyn Future<Output = (Probe, Result<Listed, ProbeError>)> + Send>>;

pub struct Executor {
    namespace: String,
    seed: Arc<Seed>,
    writer: Arc<Writer>,
    /// None while a probe is under way.
    probe: Option<Probe>,
    probing: Option<Probing>,
    slots: Vec<Slot>,
    /// Per dependent how its last request failed, for who reports it.
    errors: Vec<Option<WriteError>>,
}

/// What has come of an action.
pub enum Answer {
    Listed(Result<Listed, ProbeError>),
    OfDependent(Input<'static>),
}

#[derive(Debug)]
enum Done {
    Permitted,
    Read(Result<DependentState, WriteError>),
    Written(Result<Arc<Observed>, WriteError>),
}

#[derive(Default)]
enum Slot {
    #[default]
    Idle,
    /// The permit for a write that is still to be decided on.
    Permitted(Option<OwnedSemaphorePermit>),
    /// What is under way, with what the slot then holds.
    Busy(Pin<Box<dyn Future<Output = (Done, Slot)> + Send>>),
}

impl Executor {
    pub fn new(namespace: String, clock: Clock, seed: Arc<Seed>, writer: Arc<Writer>) -> Self {
        let probe = Some(Probe::new(namespace.clone(), clock, Arc::clone(&seed)));
        Self { namespace, seed, writer, probe, probing: None, slots: Vec::new(), errors: Vec::new() }
    }

    /// Begins what is asked for. To verify and to report is for others.
    pub fn carry_out(&mut self, action: Action, config: &Config) {
        match action {
            Action::ListLeases => {
                let timeout = config.probe_timeout;
                self.list(|mut probe| async move {
                    let listed = probe.leases(timeout).await;
                    (probe, listed)
                });
            }
            Action::ListNodes => self.list(|mut probe| async move {
                let listed = probe.nodes().await;
                (probe, listed)
            }),
            Action::AcquirePermit(at, direction) => self.acquire_permit(at, direction),
            Action::Read(at, limit) => self.read(at, &config.dependents[at].resource, limit),
            Action::Write(order) => self.write(&config.dependents[order.dependent].resource, order),
            Action::Cancel(at) => self.cancel(at),
            Action::Verify | Action::Report(_) => {}
        }
    }

    fn list<F: Future<Output = (Probe, Result<Listed, ProbeError>)> + Send + 'static>(
        &mut self,
        request: impl FnOnce(Probe) -> F,
    ) {
        self.probing = self.probe.take().map(|probe| -> Probing { Box::pin(request(probe)) });
    }

    fn acquire_permit(&mut self, at: usize, direction: Direction) {
        let writer = Arc::clone(&self.writer);
        self.begin(at, async move { (Done::Permitted, Slot::Permitted(writer.permit(direction).await)) });
    }

    fn read(&mut self, at: usize, resource: &ResourceRef, limit: Duration) {
        let (namespace, writer, view) = (self.namespace.clone(), Arc::clone(&self.writer), self.view(resource));
        self.begin(at, async move {
            let read = within(limit, async { writer.read(&*view?, &namespace).await }).await;
            let present = |observed| DependentState::Present(Arc::new(observed));
            (Done::Read(read.map(|read| read.map_or(DependentState::Absent, present))), Slot::Idle)
        });
    }

    fn write(&mut self, resource: &ResourceRef, order: Order) {
        let (namespace, writer, view) = (self.namespace.clone(), Arc::clone(&self.writer), self.view(resource));
        let at = order.dependent;
        let permit = match self.slots.get_mut(at).map(std::mem::take) {
            Some(Slot::Permitted(permit)) => permit,
            _ => None,
        };
        self.begin(at, async move {
            let written = within(order.limit, async { writer.write(&*view?, &namespace, &order).await }).await;
            drop(permit);
            (Done::Written(written.map(Arc::new)), Slot::Idle)
        });
    }

    fn cancel(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot::Idle;
        }
    }

    /// Waits until something is done; for ever while nothing is under way.
    pub async fn next(&mut self, config: &Config) -> Answer {
        let (at, done) = tokio::select! {
            biased;
            done = done(&mut self.slots) => done,
            (probe, result) = poll(&mut self.probing) => {
                self.probe = Some(probe);
                return Answer::Listed(result);
            }
        };
        let mut failed = |error| self.failed(at, &config.dependents[at].resource, error);
        Answer::OfDependent(match done {
            Done::Permitted => Input::Permitted(at),
            Done::Read(result) => Input::Read(at, result.map_err(&mut failed)),
            Done::Written(result) => Input::Written(at, result.map_err(&mut failed)),
        })
    }

    fn failed(&mut self, at: usize, resource: &ResourceRef, error: WriteError) -> Refusal {
        let refusal = error.refusal();
        tracing::debug!(%resource, category = error.category(), error = %error, "request for a resource failed");
        if self.errors.len() <= at {
            self.errors.resize_with(at + 1, || None);
        }
        self.errors[at] = Some(error);
        refusal
    }

    /// How the last request for a dependent failed, unless that was taken already.
    pub fn take_error(&mut self, at: usize) -> Option<WriteError> {
        self.errors.get_mut(at).and_then(Option::take)
    }

    fn begin(&mut self, at: usize, work: impl Future<Output = (Done, Slot)> + Send + 'static) {
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        self.slots[at] = Slot::Busy(Box::pin(work));
    }

    fn view(&self, resource: &ResourceRef) -> Result<Arc<DependentView>, Unavailable> {
        self.seed.dependent(resource).ok_or(Unavailable::Unknown)
    }
}

/// Waits until one of the slots is done, the first one first; for ever while none is busy.
async fn done(slots: &mut [Slot]) -> (usize, Done) {
    poll_fn(|context| {
        for (at, slot) in slots.iter_mut().enumerate() {
            if let Slot::Busy(work) = slot
                && let Poll::Ready((done, then)) = work.as_mut().poll(context)
            {
                *slot = then;
                return Poll::Ready((at, done));
            }
        }
        Poll::Pending
    })
    .await
}

/// Completes with what is under way, never without it.
pub async fn poll<T>(work: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match work {
        Some(running) => {
            let result = running.await;
            *work = None;
            result
        }
        None => std::future::pending().await,
    }
}

/// Bounds a request in time; one that is over before it began sends nothing.
async fn within<T>(limit: Duration, request: impl Future<Output = Result<T, WriteError>>) -> Result<T, WriteError> {
    let deadline = Instant::now() + limit;
    if Instant::now() >= deadline {
        return Err(WriteError::Timeout);
    }
    timeout_at(deadline, request).await.map_err(|_| WriteError::Timeout)?
}
