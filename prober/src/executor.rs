//! Carries out what the machine of one shoot asks for: probes, and for its dependents permits, reads and writes. At most one probe is under
//! way, and one thing for each dependent.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::config::{Config, ResourceRef};
use crate::core::lease::LeaseList;
use crate::core::moment::RequestTimes;
use crate::core::replicas::{DependentState, Observed};
use crate::core::retry::Refusal;
use crate::core::shoot::{Action, Input, Order};
use crate::core::verdict::NodeRecord;
use crate::seed::Seed;
use crate::seed::dependent::{DependentView, Unavailable};
use crate::seed::secret::ShootSecret;
use crate::shoot_client::error::ProbeError;
use crate::shoot_client::{Budget, Listing, ShootClient};
use crate::write::{WriteError, Writer};

type Client = ShootClient<ShootSecret>;

pub struct Executor {
    namespace: String,
    seed: Arc<Seed>,
    writer: Arc<Writer>,
    /// None while a probe is under way.
    client: Option<Client>,
    probing: Option<BoxFuture<'static, (Client, Result<Listed, ProbeError>)>>,
    /// What is left for the probe that is under way.
    budget: Budget,
    slots: Vec<Slot>,
}

/// What has come of an action.
pub enum Answer {
    Listed(Result<Listed, ProbeError>),
    OfDependent(Input<'static>),
}

/// What a request of a probe has listed. Without a complete, most-recent answer there is an error, which is never evidence of anything.
#[derive(Debug)]
pub enum Listed {
    Leases(RequestTimes, LeaseList),
    Nodes(Vec<NodeRecord>),
}

#[derive(Debug)]
enum Done {
    Permitted(Option<OwnedSemaphorePermit>),
    Read(Result<DependentState, WriteError>),
    Written(Result<Arc<Observed>, WriteError>),
}

/// Of one dependent.
#[derive(Default)]
struct Slot {
    /// What is under way.
    work: Option<BoxFuture<'static, Done>>,
    /// For a write that is still to be decided on.
    permit: Option<OwnedSemaphorePermit>,
    /// How the last request failed, for who reports it.
    error: Option<WriteError>,
}

impl Executor {
    pub fn new(namespace: String, clock: Clock, seed: Arc<Seed>, writer: Arc<Writer>) -> Self {
        let client = ShootClient::new(clock, ShootSecret { seed: Arc::clone(&seed), namespace: namespace.clone() });
        let budget = Budget::starting_now(Duration::ZERO);
        Self { namespace, seed, writer, client: Some(client), probing: None, budget, slots: Vec::new() }
    }

    /// Begins what is asked for. To verify and to report is for others.
    pub fn carry_out(&mut self, action: Action, config: &Config) {
        match action {
            Action::ListLeases => {
                let budget = Budget::starting_now(config.probe_timeout);
                let listed = |Listing { times, items }| Listed::Leases(times, items);
                self.budget = budget;
                self.list(move |client| client.leases(budget).map_ok(listed).boxed());
            }
            Action::ListNodes => {
                let budget = self.budget;
                self.list(move |client| client.nodes(budget).map_ok(|nodes| Listed::Nodes(nodes.items)).boxed());
            }
            Action::AcquirePermit(at, direction) => {
                let writer = Arc::clone(&self.writer);
                self.begin(at, async move { Done::Permitted(writer.permit(direction).await) });
            }
            Action::Read(at, limit) => self.read(at, &config.dependents[at].resource, limit),
            Action::Write(order) => self.write(&config.dependents[order.dependent].resource, order),
            Action::Cancel(at) => (self.slot(at).work, self.slot(at).permit) = (None, None),
            Action::Verify | Action::Report(_) => {}
        }
    }

    fn list<F>(&mut self, request: F)
    where
        F: FnOnce(&mut Client) -> BoxFuture<'_, Result<Listed, ProbeError>> + Send + 'static,
    {
        let Some(mut client) = self.client.take() else { return };
        let probing = async move {
            let listed = request(&mut client).await;
            (client, listed)
        };
        self.probing = Some(probing.boxed());
    }

    fn read(&mut self, at: usize, resource: &ResourceRef, limit: Duration) {
        let (namespace, writer, view) = (self.namespace.clone(), Arc::clone(&self.writer), self.view(resource));
        self.begin(at, async move {
            let read = within(limit, async { writer.read(&*view?, &namespace).await }).await;
            let present = |observed| DependentState::Present(Arc::new(observed));
            Done::Read(read.map(|read| read.map_or(DependentState::Absent, present)))
        });
    }

    fn write(&mut self, resource: &ResourceRef, order: Order) {
        let (namespace, writer, view) = (self.namespace.clone(), Arc::clone(&self.writer), self.view(resource));
        let (at, permit) = (order.dependent, self.slot(order.dependent).permit.take());
        self.begin(at, async move {
            let written = within(order.limit, async { writer.write(&*view?, &namespace, &order).await }).await;
            drop(permit);
            Done::Written(written.map(Arc::new))
        });
    }

    /// Waits until something is done; for ever while nothing is under way.
    pub async fn next(&mut self, config: &Config) -> Answer {
        let (at, done) = tokio::select! {
            biased;
            done = done(&mut self.slots) => done,
            (client, listed) = poll(&mut self.probing) => {
                self.client = Some(client);
                return Answer::Listed(listed);
            }
        };
        let failed = |error| self.failed(at, &config.dependents[at].resource, error);
        Answer::OfDependent(match done {
            Done::Permitted(permit) => {
                self.slots[at].permit = permit;
                Input::Permitted(at)
            }
            Done::Read(result) => Input::Read(at, result.map_err(failed)),
            Done::Written(result) => Input::Written(at, result.map_err(failed)),
        })
    }

    fn failed(&mut self, at: usize, resource: &ResourceRef, error: WriteError) -> Refusal {
        let refusal = error.refusal();
        tracing::debug!(%resource, category = error.category(), error = %error, "request for a resource failed");
        self.slot(at).error = Some(error);
        refusal
    }

    /// How the last request for a dependent failed, unless that was taken already.
    pub fn take_error(&mut self, at: usize) -> Option<WriteError> {
        self.slot(at).error.take()
    }

    fn begin(&mut self, at: usize, work: impl Future<Output = Done> + Send + 'static) {
        (self.slot(at).work, self.slot(at).permit) = (Some(work.boxed()), None);
    }

    fn slot(&mut self, at: usize) -> &mut Slot {
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        &mut self.slots[at]
    }

    fn view(&self, resource: &ResourceRef) -> Result<Arc<DependentView>, Unavailable> {
        self.seed.dependent(resource).ok_or(Unavailable::Unknown)
    }
}

/// Waits until one of the slots is done, the first one first; for ever while none is busy.
async fn done(slots: &mut [Slot]) -> (usize, Done) {
    poll_fn(|context| {
        for (at, slot) in slots.iter_mut().enumerate() {
            if let Some(work) = &mut slot.work
                && let Poll::Ready(done) = work.as_mut().poll(context)
            {
                slot.work = None;
                return Poll::Ready((at, done));
            }
        }
        Poll::Pending
    })
    .await
}

/// Completes with what is under way, never without it.
pub async fn poll<T>(work: &mut Option<BoxFuture<'static, T>>) -> T {
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
