//! Carries out the actions of one shoot, and answers with its next inputs: probes, the seed's
//! objects that a replica reads again before it writes without the lead, and for the dependents
//! permits, reads and writes. At most one probe is under way, and one request for each dependent.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Fuse, FusedFuture};
use prober_core::config::{Config, DependentId};
use prober_core::shoot::{Action, Input, ProbeFailure, Verified};
use prober_core::verdict::Verdict;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::seed::Seed;
use crate::shared::Shared;
use crate::shoot_client::error::{ProbeError, ProbeStep};
use crate::shoot_client::{Budget, Listing, ShootClient};
use crate::write::Writer;

/// Leases that take longer are not waited for before the nodes are listed too: where answers are
/// slow, one after the other may be too late. Where they are not, a second connection would cost
/// more than it saves: a quarter of what memory grows by when all shoots fail at once.
const NODES_BESIDE: Duration = Duration::from_millis(100);

/// Request under way, if any: never done while there is none.
type Work<T> = Fuse<BoxFuture<'static, T>>;

pub(crate) struct Executor {
    namespace: String,
    uid: String,
    /// In place of what probes would say.
    decree: Option<Verdict>,
    seed: Arc<Seed>,
    writer: Arc<Writer>,
    /// `None` while a probe is under way.
    client: Option<ShootClient>,
    probing: Work<(ShootClient, Result<Input, ProbeError>)>,
    /// Time that is left for the probe under way.
    budget: Budget,
    /// The nodes, where they are listed beside the leases, and when that begins.
    nodes: Option<(Instant, AbortOnDropHandle<Result<Input, ProbeError>>)>,
    verifying: Work<Option<Verified>>,
    dependents: Vec<DependentWork>,
    /// True if nothing more is begun.
    is_closed: bool,
}

/// Request under way for one dependent.
struct DependentWork {
    request: Work<Done>,
    is_write: bool,
    /// For a write that is still to be decided on.
    permit: Option<OwnedSemaphorePermit>,
}

/// Outcome of a request for a dependent, and its permit if it was requested.
type Done = (Input, Option<OwnedSemaphorePermit>);

impl Executor {
    pub(crate) fn new(shared: &Shared, namespace: &str, uid: &str) -> Self {
        let Shared {
            clock,
            resources,
            seed,
            writer,
            ..
        } = shared;
        Self {
            namespace: namespace.to_owned(),
            uid: uid.to_owned(),
            decree: None,
            seed: Arc::clone(seed),
            writer: Arc::clone(writer),
            client: Some(ShootClient::new(*clock, Arc::clone(resources))),
            probing: Fuse::terminated(),
            budget: Budget::starting_now(Duration::ZERO),
            nodes: None,
            verifying: Fuse::terminated(),
            dependents: Vec::new(),
            is_closed: false,
        }
    }

    /// Answers each probe with this verdict from now on.
    pub(crate) fn decree(&mut self, verdict: Verdict) {
        self.decree = Some(verdict);
    }

    /// Starts an action. The driver handles reports.
    pub(crate) fn carry_out(&mut self, action: Action, config: &Arc<Config>) {
        match action {
            _ if self.is_closed => {}
            Action::ListLeases { with_nodes } => {
                self.budget = Budget::starting_now(config.probe_timeout);
                self.list_leases(with_nodes);
            }
            Action::ListNodes => self.list_nodes(),
            Action::Verify => {
                let (seed, config) = (Arc::clone(&self.seed), Arc::clone(config));
                let (namespace, uid) = (self.namespace.clone(), self.uid.clone());
                self.verifying = async move { seed.verify(&config, &namespace, &uid).await }
                    .boxed()
                    .fuse();
            }
            Action::AcquirePermit(at, direction) => {
                let writer = Arc::clone(&self.writer);
                self.begin(at, async move {
                    let permit = writer.permit(direction).await;
                    (Input::Permitted(at), permit)
                });
            }
            Action::Read(at, limit) => {
                let (writer, namespace) = (Arc::clone(&self.writer), self.namespace.clone());
                let resource = config.dependent(at).resource.clone();
                self.begin(at, async move {
                    let read = writer.read(&resource, &namespace, limit).await;
                    (Input::Read(at, read), None)
                });
            }
            Action::Write(order) => {
                let at = order.dependent;
                let (writer, namespace) = (Arc::clone(&self.writer), self.namespace.clone());
                let resource = config.dependent(at).resource.clone();
                let permit = self.work(at).permit.take();
                self.begin(at, async move {
                    let written = writer.write(&resource, &namespace, &order).await;
                    drop(permit);
                    (Input::Written(at, written), None)
                });
                self.work(at).is_write = true;
            }
            Action::Cancel(at) => {
                let work = self.work(at);
                (work.request, work.permit) = (Fuse::terminated(), None);
            }
            Action::Report(_) => {}
        }
    }

    fn list_leases(&mut self, with_nodes: bool) {
        let (budget, Some(mut client)) = (self.budget, self.client.take()) else {
            return;
        };
        if let Some(verdict) = self.decree {
            self.probing = ready((client, Ok(decreed(verdict)))).boxed().fuse();
            return;
        }
        self.nodes = with_nodes.then(|| {
            let (begin, mut client) = (Instant::now() + NODES_BESIDE, client.beside());
            let listing = tokio::spawn(async move {
                sleep_until(begin).await;
                nodes(&mut client, budget).await
            });
            (begin, AbortOnDropHandle::new(listing))
        });
        let secret = self.seed.kubeconfig(&self.namespace);
        let probing = async move {
            let stage = ProbeStep::Kubeconfig;
            let listed = match secret {
                Ok(secret) => client.leases(&secret, budget).await,
                Err(cause) => Err(ProbeError { stage, cause }),
            };
            (
                client,
                listed.map(|Listing { times, items }| Input::Leases(times, items)),
            )
        };
        self.probing = probing.boxed().fuse();
    }

    fn list_nodes(&mut self) {
        let (budget, Some(mut client)) = (self.budget, self.client.take()) else {
            return;
        };
        let beside = self.nodes.take();
        let begun = beside.filter(|(begin, _)| *begin <= Instant::now());
        let probing = async move {
            let listed = match begun {
                Some((_, listing)) => listing.await.ok(),
                None => None,
            };
            let listed = match listed {
                Some(Ok(listed)) => Ok(listed),
                Some(Err(error)) if matches!(error.failure(), ProbeFailure::Throttled(_)) => {
                    Err(error)
                }
                _ => nodes(&mut client, budget).await,
            };
            (client, listed)
        };
        self.probing = probing.boxed().fuse();
    }

    /// Waits for the next answer; for ever while nothing is under way. A probe without a complete,
    /// most-recent answer is an error, which is never evidence of anything.
    pub(crate) async fn next(&mut self) -> Result<Input, ProbeError> {
        if self.client.is_some() {
            // The probe is over, and so is the need for the nodes listed beside it.
            self.nodes = None;
        }
        tokio::select! {
            biased;
            (work, (input, permit)) = done(&mut self.dependents) => {
                work.permit = permit;
                Ok(input)
            }
            (client, listed) = &mut self.probing => {
                self.client = Some(client);
                listed
            }
            verified = &mut self.verifying => Ok(Input::Verified(verified)),
        }
    }

    /// Drops what is under way, apart from writes, and begins nothing more.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.probing = Fuse::terminated();
        self.verifying = Fuse::terminated();
        self.nodes = None;
        for work in self.dependents.iter_mut().filter(|work| !work.is_write) {
            work.request = Fuse::terminated();
        }
    }

    /// Answer to a write that was under way at the end; `None` once there is none any more.
    pub(crate) async fn last_answer(&mut self) -> Option<Input> {
        let is_over = |work: &DependentWork| work.request.is_terminated();
        if self.dependents.iter().all(is_over) {
            return None;
        }
        let (_, (input, _)) = done(&mut self.dependents).await;
        Some(input)
    }

    fn begin(&mut self, at: DependentId, request: impl Future<Output = Done> + Send + 'static) {
        *self.work(at) = DependentWork {
            request: request.boxed().fuse(),
            is_write: false,
            permit: None,
        };
    }

    fn work(&mut self, at: DependentId) -> &mut DependentWork {
        if self.dependents.len() <= at.0 {
            self.dependents.resize_with(at.0 + 1, || DependentWork {
                request: Fuse::terminated(),
                is_write: false,
                permit: None,
            });
        }
        &mut self.dependents[at.0]
    }
}

/// Answer to a probe in whose place there is a verdict. To become `Input::Decreed(verdict)`: the core
/// knows no other yet, and such a probe stays without an answer.
fn decreed(verdict: Verdict) -> Input {
    match verdict {
        Verdict::ScaleUpHeldDown => Input::NodesConfirmed,
        _ => Input::Woken,
    }
}

async fn nodes(client: &mut ShootClient, budget: Budget) -> Result<Input, ProbeError> {
    Ok(Input::Nodes(client.nodes(budget).await?.items))
}

/// Waits until a request is done, that of the first dependent first; for ever while none is under
/// way.
async fn done(dependents: &mut [DependentWork]) -> (&mut DependentWork, Done) {
    let (at, done) = poll_fn(|context| {
        let polled = dependents
            .iter_mut()
            .map(|work| work.request.poll_unpin(context));
        let done = polled.enumerate().find(|(_, done)| done.is_ready());
        done.map_or(Poll::Pending, |(at, done)| done.map(|done| (at, done)))
    })
    .await;
    (&mut dependents[at], done)
}
