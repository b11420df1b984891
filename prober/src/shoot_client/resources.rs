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

/// A body up to this size needs no share: 7,000 leases of 300 bytes, or a page of 200 nodes of 10
/// kB.
pub const FREE: usize = 2 << 20;
/// What all larger bodies have together beyond that: enough for one of the largest, which no honest
/// API server sends.
const LARGE_BODIES: usize = 8 << 20;
const KIB: usize = 1 << 10;

/// For its length beyond [`FREE`] a body holds a share, until it is decoded.
pub type Share = Option<OwnedSemaphorePermit>;

pub struct Resources {
    /// None where the system's DNS servers cannot be told; then the C library is asked, whose every
    /// question blocks a thread until it gives up.
    resolver: Option<TokioResolver>,
    /// One permit for each KiB.
    large_bodies: Arc<Semaphore>,
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
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES / KIB)),
        }
    }

    /// Waits until a body may be so large; for as long as its probe may take.
    pub(super) async fn enlarge(&self, share: &mut Share, capacity: usize) {
        let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = capacity
            .saturating_sub(FREE)
            .div_ceil(KIB)
            .saturating_sub(held);
        if more == 0 {
            return;
        }
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        // Never closed.
        if let Ok(permit) = Arc::clone(&self.large_bodies)
            .acquire_many_owned(more)
            .await
        {
            match share {
                Some(share) => share.merge(permit),
                none => *none = Some(permit),
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
