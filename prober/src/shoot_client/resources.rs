//! Resources that the clients of all shoots share: how their API servers are dialed, and their owner
//! records looked up.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use common::transport::Dialer;
use futures::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::system_conf::read_system_conf;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::net::lookup_host;
use tower::service_fn;

/// Looks up the TXT records of a name; `None` if that fails.
pub(crate) type Records = dyn Fn(String) -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync;

pub struct Resources {
    pub(super) dialer: Dialer,
    /// In place of the DNS servers of the config.
    pub(crate) records: Option<Arc<Records>>,
}

impl Resources {
    /// With the system's DNS servers, search domains and hosts file. To be called within the
    /// runtime.
    pub fn of_system() -> Self {
        let resolver = read_system_conf().and_then(|(config, options)| uncached(config, options));
        let resolver = resolver
            .inspect_err(|error| tracing::warn!(error = %error, "the system's DNS servers cannot be told: asking the C library"));
        Self::resolving(resolver.ok())
    }

    /// With these DNS servers.
    ///
    /// # Errors
    /// When no resolver can be made of them.
    pub fn new(config: ResolverConfig, options: ResolverOpts) -> Result<Self, NetError> {
        Ok(Self::resolving(Some(uncached(config, options)?)))
    }

    /// With another way to the API servers than TCP.
    pub fn dialing(dialer: Dialer) -> Self {
        Self {
            dialer,
            records: None,
        }
    }

    /// With another way to owner records than DNS.
    pub fn with_records(
        self,
        records: impl Fn(String) -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync + 'static,
    ) -> Self {
        let records: Arc<Records> = Arc::new(records);
        Self {
            records: Some(records),
            ..self
        }
    }

    /// Without a resolver the C library resolves names, and blocks a thread for each until it gives
    /// up.
    fn resolving(resolver: Option<TokioResolver>) -> Self {
        let resolver = Arc::new(resolver);
        let resolve = service_fn(move |name: Name| {
            let resolver = Arc::clone(&resolver);
            async move { addresses(Option::as_ref(&resolver), name.as_str()).await }
        });
        Self::dialing(Dialer::tcp(resolve))
    }
}

/// The addresses of a host, by a lookup that ends when its probe does.
async fn addresses(
    resolver: Option<&TokioResolver>,
    host: &str,
) -> Result<std::vec::IntoIter<SocketAddr>, NameError> {
    let addresses: Vec<_> = match resolver {
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

/// A resolver that says how it is now: nothing is kept, and what is on its way out of the cache counts
/// for nothing.
pub(crate) fn uncached(
    config: ResolverConfig,
    mut options: ResolverOpts,
) -> Result<TokioResolver, NetError> {
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
