//! Carries out what the core decides about dependents: waits for permits, reads, writes. At most one thing is under way for each of them.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use crate::config::ResourceRef;
use crate::core::plan::Direction;
use crate::core::replicas::{DependentState, Observed};
use crate::core::shoot::Order;
use crate::seed::Seed;
use crate::seed::dependent::{DependentView, Unavailable};
use crate::write::{WriteError, Writer};

pub struct Executor {
    namespace: String,
    seed: Arc<Seed>,
    writer: Arc<Writer>,
    slots: Vec<Slot>,
}

#[derive(Debug)]
pub enum Done {
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
    pub fn new(namespace: String, seed: Arc<Seed>, writer: Arc<Writer>) -> Self {
        Self { namespace, seed, writer, slots: Vec::new() }
    }

    pub fn acquire_permit(&mut self, at: usize, direction: Direction) {
        let writer = Arc::clone(&self.writer);
        self.begin(at, async move { (Done::Permitted, Slot::Permitted(writer.permit(direction).await)) });
    }

    pub fn read(&mut self, at: usize, resource: &ResourceRef, limit: Duration) {
        let (namespace, writer, view) = (self.namespace.clone(), Arc::clone(&self.writer), self.view(resource));
        self.begin(at, async move {
            let read = within(limit, async { writer.read(&*view?, &namespace).await }).await;
            let present = |observed| DependentState::Present(Arc::new(observed));
            (Done::Read(read.map(|read| read.map_or(DependentState::Absent, present))), Slot::Idle)
        });
    }

    pub fn write(&mut self, resource: &ResourceRef, order: Order) {
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

    pub fn cancel(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot::Idle;
        }
    }

    /// Waits until something is done; for ever while nothing is under way.
    pub async fn next(&mut self) -> (usize, Done) {
        poll_fn(|context| {
            for (at, slot) in self.slots.iter_mut().enumerate() {
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

/// Bounds a request in time; one that is over before it began sends nothing.
async fn within<T>(limit: Duration, request: impl Future<Output = Result<T, WriteError>>) -> Result<T, WriteError> {
    let deadline = Instant::now() + limit;
    if Instant::now() >= deadline {
        return Err(WriteError::Timeout);
    }
    timeout_at(deadline, request).await.map_err(|_| WriteError::Timeout)?
}
