//! What the clients of all shoots share: how names are resolved, and how much memory large answers
//! may take together. A shoot that is hostile, or out of reach, takes no more of either than leaves
//! enough for the others.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::system_conf::read_system_conf;
use tokio::net::lookup_host;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bodies up to this size are read at the same time: 7,000 leases of 300 bytes, or a page of 200
/// nodes of 10 kB.
pub(super) const ORDINARY_BODY: usize = 2 << 20;
/// Larger ones grow by steps of this size.
pub(super) const STEP: usize = 1 << 20;
/// The steps that all bodies have together: enough for one of the largest, which no honest API
/// server sends.
const STEPS: usize = 8;

/// The steps that a body has; held until it is decoded.
pub(super) type Steps = Option<OwnedSemaphorePermit>;

pub struct Resources {
    /// `None` if the system's DNS servers are not known; then the C library resolves names, and
    /// blocks a thread for each until it gives up.
    resolver: Option<TokioResolver>,
    steps: Arc<Semaphore>,
}

impl Resources {
    /// With the system's DNS servers, search domains and hosts file. To be called within the
    /// runtime.
    pub fn of_system() -> Self {
        let resolver = read_system_conf().and_then(|(config, options)| resolver(config, options));
        let resolver = resolver
            .inspect_err(|error| tracing::warn!(error = %error, "the system's DNS servers cannot be told: asking the C library"));
        Self::with(resolver.ok())
    }

    /// With these DNS servers.
    ///
    /// # Errors
    /// When no resolver can be made of them.
    pub fn new(config: ResolverConfig, options: ResolverOpts) -> Result<Self, NetError> {
        resolver(config, options).map(|resolver| Self::with(Some(resolver)))
    }

    fn with(resolver: Option<TokioResolver>) -> Self {
        Self {
            resolver,
            steps: Arc::new(Semaphore::new(STEPS)),
        }
    }

    /// Waits for one more step; for as long as the probe may take.
    pub(super) async fn add_step(&self, steps: &mut Steps) {
        // Never closed.
        if let Ok(step) = Arc::clone(&self.steps).acquire_owned().await {
            match steps {
                Some(steps) => steps.merge(step),
                None => *steps = Some(step),
            }
        }
    }

    /// The addresses of a host, by a lookup that ends when its probe does.
    pub(super) async fn addresses(
        &self,
        host: &str,
    ) -> Result<std::vec::IntoIter<SocketAddr>, NameError> {
        let addresses: Vec<_> = match &self.resolver {
            Some(resolver) => resolver
                .lookup_ip(host)
                .await
                .map_err(name_error)?
                .iter()
                .map(|address| SocketAddr::new(address, 0))
                .collect(),
            None => lookup_host((host, 0)).await?.collect(),
        };
        Ok(addresses.into_iter())
    }
}

fn resolver(config: ResolverConfig, mut options: ResolverOpts) -> Result<TokioResolver, NetError> {
    // Each new connection is to go where the name points now.
    options.cache_size = 0;
    (options.positive_max_ttl, options.negative_max_ttl) =
        (Some(Duration::ZERO), Some(Duration::ZERO));
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NameError {
    #[error("there is no such name")]
    NoName,
    #[error("the name has no address")]
    NoAddress,
    #[error("{0}")]
    Failed(NetError),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Hickory's own words for the first two repeat the whole question.
fn name_error(error: NetError) -> NameError {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(NoRecords {
            response_code: ResponseCode::NXDomain,
            ..
        })) => NameError::NoName,
        NetError::Dns(DnsError::NoRecordsFound(_)) => NameError::NoAddress,
        error => NameError::Failed(error),
    }
}
