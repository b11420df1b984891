//! Queries DNS for TXT records, each time without a cache, over TCP where an answer is cut off.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_ok;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{RData, RecordType};
use prober_core::config::{DnsServer, OwnerCheck};
use tokio::time::timeout;

use crate::owner_records::record::{OwnerAnswer, Question, Unresolved};
use crate::shoot_client::resources::{Records, Resources};

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// DNS' own.
const PORT: u16 = 53;

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Resolver {
    /// One for each server, if there are any: the first that resolves a name counts, whatever others
    /// say.
    resolvers: Vec<TokioResolver>,
    /// In place of these.
    records: Option<Arc<Records>>,
    limit: Duration,
}

impl Resolver {
    pub(crate) fn new(check: &OwnerCheck, resources: &Resources) -> Self {
        let resolvers = resolvers(check)
            .inspect_err(|error| tracing::error!(error = %error, "no DNS server is known to ask for owner records"));
        Self {
            resolvers: resolvers.unwrap_or_default(),
            records: resources.records.clone(),
            limit: check.timeout,
        }
    }

    /// Asks a question, if the Cluster says enough for one.
    pub(crate) async fn ask(&self, question: Option<&Question>) -> OwnerAnswer {
        let Some(question) = question else {
            return OwnerAnswer::Unresolved(Unresolved::Unknown);
        };
        match timeout(self.limit, self.records(&question.name)).await {
            Ok(Ok(records)) => question.judge(&records),
            Ok(Err(why)) => OwnerAnswer::Unresolved(why),
            Err(_) => OwnerAnswer::Unresolved(Unresolved::Timeout),
        }
    }

    /// The values of the TXT records of a name, each of its strings put together.
    async fn records(&self, name: &str) -> Result<Vec<String>, Unresolved> {
        // With the dot no search domain is tried.
        let name = format!("{}.", name.trim_end_matches('.'));
        if let Some(records) = &self.records {
            return records(name).await.ok_or(Unresolved::Server);
        }
        if self.resolvers.is_empty() {
            return Err(Unresolved::NoServers);
        }
        let lookups = self
            .resolvers
            .iter()
            .map(|resolver| resolver.lookup(name.clone(), RecordType::TXT).boxed());
        let (answer, _) = select_ok(lookups)
            .await
            .map_err(|error| unresolved(&error))?;
        let text = |data: &RData| match data {
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        };
        Ok(answer
            .answers()
            .iter()
            .filter_map(|record| text(&record.data))
            .collect())
    }
}

/// One resolver for each server of the config, or else of the system.
fn resolvers(check: &OwnerCheck) -> Result<Vec<TokioResolver>, NetError> {
    let servers = match check.servers.as_slice() {
        [] => nameservers(&std::fs::read_to_string(RESOLV_CONF)?),
        given => given.iter().map(|DnsServer(address)| *address).collect(),
    };
    servers
        .into_iter()
        .map(|server| resolver(server, check))
        .collect()
}

/// The servers of a resolv.conf. Its other lines are for the C library, which knows all of them.
fn nameservers(resolv_conf: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let address = line.strip_prefix("nameserver")?.split_whitespace().next()?;
        Some(SocketAddr::new(address.parse().ok()?, PORT))
    };
    resolv_conf.lines().filter_map(server).collect()
}

/// A resolver that says how it is now: nothing is kept, and what is on its way out of the cache counts
/// for nothing.
fn resolver(address: SocketAddr, check: &OwnerCheck) -> Result<TokioResolver, NetError> {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server
        .connections
        .iter_mut()
        .for_each(|connection| connection.port = address.port());
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let mut options = ResolverOpts::default();
    options.timeout = check.timeout;
    // When to ask again is decided in one place.
    options.attempts = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    (options.positive_max_ttl, options.negative_max_ttl) =
        (Some(Duration::ZERO), Some(Duration::ZERO));
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
}

fn unresolved(error: &NetError) -> Unresolved {
    match error {
        NetError::Timeout => Unresolved::Timeout,
        NetError::Truncated => Unresolved::Truncated,
        NetError::Dns(DnsError::NoRecordsFound(NoRecords {
            response_code: ResponseCode::NXDomain,
            ..
        })) => Unresolved::NoName,
        NetError::Dns(DnsError::NoRecordsFound(_)) => Unresolved::NoRecord,
        NetError::Dns(DnsError::ResponseCode(ResponseCode::Refused)) => Unresolved::Refused,
        NetError::Dns(_) => Unresolved::Server,
        NetError::Proto(_) => Unresolved::Decode,
        _ => Unresolved::Network,
    }
}

#[cfg(test)]
mod tests;
