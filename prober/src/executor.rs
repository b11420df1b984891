//! Carries out what the machine of one shoot asks for, and answers with its next inputs: probes,
//! what a replica that does not lead reads again, and for the dependents permits, reads and writes.
//! At most one probe is under way, and one thing for each dependent.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Fuse};
use prober_core::config::{Config, DependentId};
use prober_core::retry::Refusal;
use prober_core::shoot::{Action, Input, ProbeFailure, Verified};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::AbortOnDropHandle;

use crate::seed::Seed;
use crate::seed::secret::ShootSecret;
use crate::shared::Shared;
use crate::shoot_client::error::ProbeError;
use crate::shoot_client::{Budget, Listing, ShootClient};
use crate::write::{WriteError, Writer};

type Client = ShootClient<ShootSecret>;
/// What is under way, if anything: never done while nothing is.
type Work<T> = Fuse<BoxFuture<'static, T>>;

pub(crate) struct Executor {
    namespace: String,
    uid: String,
    /// Whether a person has said that the nodes are healthy, so that nothing is probed.
    pub skip_probes: bool,
    seed: Arc<Seed>,
    writer: Arc<Writer>,
    /// None while a probe is under way.
    client: Option<Client>,
    probing: Work<(Client, Result<Input, ProbeError>)>,
    /// What is left for the probe that is under way.
    budget: Budget,
    /// The nodes, where they are listed beside the leases.
    nodes: Option<AbortOnDropHandle<Result<Input, ProbeError>>>,
    verifying: Work<Option<Verified>>,
    dependents: Vec<DependentWork>,
}

/// What is under way for one dependent.
struct DependentWork {
    request: Work<Done>,
    /// For a write that is still to be decided on.
    permit: Option<OwnedSemaphorePermit>,
    /// How the last request failed, for who reports it.
    error: Option<WriteError>,
}

/// What a request for a dependent comes to.
struct Done {
    input: Input,
    permit: Option<OwnedSemaphorePermit>,
    error: Option<WriteError>,
}

impl Done {
    fn of<T>(
        result: Result<T, WriteError>,
        input: impl FnOnce(Result<T, Refusal>) -> Input,
    ) -> Self {
        let (result, error) = match result {
            Ok(answer) => (Ok(answer), None),
            Err(error) => (Err(error.refusal()), Some(error)),
        };
        Self {
            input: input(result),
            permit: None,
            error,
        }
    }
}

impl Executor {
    pub fn new(shared: &Shared, namespace: &str, uid: &str) -> Self {
        let Shared {
            clock,
            resources,
            seed,
            writer,
            ..
        } = shared;
        let secret = ShootSecret {
            seed: Arc::clone(seed),
            namespace: namespace.to_owned(),
        };
        Self {
            namespace: namespace.to_owned(),
            uid: uid.to_owned(),
            skip_probes: false,
            seed: Arc::clone(seed),
            writer: Arc::clone(writer),
            client: Some(ShootClient::new(*clock, Arc::clone(resources), secret)),
            probing: Fuse::terminated(),
            budget: Budget::starting_now(Duration::ZERO),
            nodes: None,
            verifying: Fuse::terminated(),
            dependents: Vec::new(),
        }
    }

    /// Begins what is asked for. To report is for others.
    pub fn carry_out(&mut self, action: Action, config: &Arc<Config>) {
        match action {
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
                    Done {
                        input: Input::Permitted(at),
                        permit: writer.permit(direction).await,
                        error: None,
                    }
                });
            }
            Action::Read(at, limit) => {
                let (writer, namespace) = (Arc::clone(&self.writer), self.namespace.clone());
                let resource = config.dependent(at).resource.clone();
                self.begin(at, async move {
                    let read = writer.read(&resource, &namespace, limit).await;
                    Done::of(read, |read| Input::Read(at, read))
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
                    Done::of(written, |written| Input::Written(at, written))
                });
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
        if self.skip_probes {
            self.probing = ready((client, Ok(Input::NodesConfirmed))).boxed().fuse();
            return;
        }
        // Where answers are slow, one after the other may be too late.
        self.nodes = with_nodes.then(|| {
            let mut client = client.beside();
            AbortOnDropHandle::new(tokio::spawn(
                async move { nodes(&mut client, budget).await },
            ))
        });
        let probing = async move {
            let listed = client.leases(budget).await;
            (
                client,
                listed.map(|Listing { times, items }| Input::Leases(times, items)),
            )
        };
        self.probing = probing.boxed().fuse();
    }

    fn list_nodes(&mut self) {
        let (budget, Some(mut client), begun) =
            (self.budget, self.client.take(), self.nodes.take())
        else {
            return;
        };
        let probing = async move {
            let listed = match begun {
                Some(begun) => begun.await.ok(),
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

    /// Waits until something is done; for ever while nothing is under way. Without a complete,
    /// most-recent answer a probe comes to an error, which is never evidence of anything.
    pub async fn next(&mut self) -> Result<Input, ProbeError> {
        if self.client.is_some() {
            // The probe is over: nobody wants the nodes that were listed beside it.
            self.nodes = None;
        }
        tokio::select! {
            biased;
            (work, done) = done(&mut self.dependents) => {
                work.permit = done.permit;
                work.error = done.error.or(work.error.take());
                Ok(done.input)
            }
            (client, listed) = &mut self.probing => {
                self.client = Some(client);
                listed
            }
            verified = &mut self.verifying => Ok(Input::Verified(verified)),
        }
    }

    /// How the last request for a dependent failed, unless that was taken already.
    pub(crate) fn take_error(&mut self, at: DependentId) -> Option<WriteError> {
        self.work(at).error.take()
    }

    fn begin(&mut self, at: DependentId, request: impl Future<Output = Done> + Send + 'static) {
        let work = self.work(at);
        (work.request, work.permit) = (request.boxed().fuse(), None);
    }

    fn work(&mut self, at: DependentId) -> &mut DependentWork {
        if self.dependents.len() <= at.0 {
            self.dependents.resize_with(at.0 + 1, || DependentWork {
                request: Fuse::terminated(),
                permit: None,
                error: None,
            });
        }
        &mut self.dependents[at.0]
    }
}

async fn nodes(client: &mut Client, budget: Budget) -> Result<Input, ProbeError> {
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
