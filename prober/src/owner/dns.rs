//! Queries DNS for TXT records, each time without a cache, over TCP where an answer is cut off.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_ok;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use prober_core::config::{DnsServer, OwnerCheck};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Why;
use crate::shoot_client::resources::{Records, Resources};

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Checks under way at most: a start of thousands of shoots is not to be a flood for the DNS
/// servers.
const IN_FLIGHT: usize = 256;

pub(crate) struct Resolver {
    pub check: OwnerCheck,
    /// One for each server, if there are any. The first that has any records counts, whatever others
    /// say.
    servers: Vec<TokioResolver>,
    /// In place of these.
    records: Option<Arc<Records>>,
    in_flight: Semaphore,
}

impl Resolver {
    pub(crate) fn new(check: OwnerCheck, resources: &Resources) -> Self {
        let servers = servers(&check).inspect_err(|error| {
            tracing::error!(%error, "no DNS server is known to ask for owner records");
        });
        Self {
            check,
            servers: servers.unwrap_or_default(),
            records: resources.records.clone(),
            in_flight: Semaphore::new(IN_FLIGHT),
        }
    }

    /// Asks for the value of the TXT records of a name. It is empty if the Cluster does not say
    /// enough for a question.
    pub(super) async fn ask(&self, name: &str) -> Result<String, Why> {
        let lookup = async {
            match &self.records {
                _ if name.is_empty() => Err(Why::Unknown),
                Some(records) => records(name.to_owned()).await.ok_or(Why::Server),
                None => self.values(name).await.map_err(|error| {
                    tracing::debug!(name, %error, "owner record cannot be resolved");
                    why(&error)
                }),
            }
        };
        let _permit = self.in_flight.acquire().await;
        let values = timeout(self.check.timeout, lookup).await;
        let mut values = values.unwrap_or(Err(Why::Timeout))?.into_iter();
        let value = values.next().ok_or(Why::NoRecord)?;
        match values.all(|other| other == value) {
            true => Ok(value),
            false => Err(Why::Ambiguous),
        }
    }

    /// The values of the TXT records of a name, each of its strings put together.
    async fn values(&self, name: &str) -> Result<Vec<String>, NetError> {
        if self.servers.is_empty() {
            return Err(NetError::NoConnections);
        }
        let servers = self.servers.iter();
        let lookups = servers.map(|server| server.lookup(name, RecordType::TXT).boxed());
        let (answer, _) = select_ok(lookups).await?;
        let text = |record: &Record| match &record.data {
            RData::TXT(text) => Some(text.to_string()),
            _ => None,
        };
        Ok(answer.answers().iter().filter_map(text).collect())
    }
}

/// A resolver for each server of the config, or else of the system.
fn servers(check: &OwnerCheck) -> Result<Vec<TokioResolver>, NetError> {
    let servers = match check.servers.as_slice() {
        [] => nameservers(&std::fs::read_to_string(RESOLV_CONF)?),
        given => given.to_vec(),
    };
    // Nothing is kept, and when to ask again is decided in one place.
    let mut options = ResolverOpts::default();
    (options.timeout, options.attempts, options.cache_size) = (check.timeout, 0, 0);
    options.positive_max_ttl = Some(Duration::ZERO);
    options.negative_max_ttl = Some(Duration::ZERO);
    let resolver = |DnsServer(address)| {
        let mut server = NameServerConfig::udp_and_tcp(address.ip());
        for connection in &mut server.connections {
            connection.port = address.port();
        }
        // Without search domains.
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            .with_options(options.clone())
            .build()
    };
    servers.into_iter().map(resolver).collect()
}

/// The servers of a resolv.conf. Its other lines are for the C library, which knows all of them.
fn nameservers(resolv_conf: &str) -> Vec<DnsServer> {
    let lines = resolv_conf
        .lines()
        .filter_map(|line| line.strip_prefix("nameserver"));
    let addresses = lines.filter_map(|line| line.split_whitespace().next());
    addresses
        .filter_map(|address| DnsServer::try_from(address.to_owned()).ok())
        .collect()
}

fn why(error: &NetError) -> Why {
    match error {
        NetError::Timeout => Why::Timeout,
        _ if error.is_no_records_found() => Why::NoRecord,
        _ => Why::Server,
    }
}

#[cfg(test)]
mod tests;
