//! How the name of an API server becomes the address to connect to.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::proto::rr::Name;
use prober::shoot_client::resources::Resources;
use testbed::dns::{Dns, Reply};

use super::shoot::{LEASES, TestShoot, VERSION, words};

/// One of the names that certificates here are good for.
const HOST: &str = "kubernetes.default.svc";

/// What all shoots share, with this DNS server and a search domain.
fn resources(dns: &Dns) -> Arc<Resources> {
    let mut server = NameServerConfig::udp_and_tcp(dns.address().ip());
    server
        .connections
        .iter_mut()
        .for_each(|connection| connection.port = dns.address().port());
    let search = Name::from_ascii("cluster.local.").expect("a name");
    let mut options = ResolverOpts::default();
    // As in a pod.
    options.ndots = 5;
    Arc::new(
        Resources::new(
            ResolverConfig::from_parts(None, vec![search], vec![server]),
            options,
        )
        .expect("a resolver"),
    )
}

/// A DNS server, and a shoot whose API server is known by its name alone, which that resolves.
async fn named(reply: Reply) -> (Dns, TestShoot) {
    let dns = Dns::start(reply).await.expect("a server");
    let mut shoot = TestShoot::start().await;
    lead(&shoot, HOST);
    shoot.share(&resources(&dns));
    (dns, shoot)
}

/// Leads to the API server by this name.
fn lead(shoot: &TestShoot, host: &str) {
    shoot.lead(
        &format!("https://{host}:{}", shoot.api.address().port()),
        "",
    );
}

/// It is the host of this name.
fn here(name: &str) -> Reply {
    Reply::Host(name.to_owned(), vec![Ipv4Addr::LOCALHOST])
}

fn itself() -> Reply {
    here(&format!("{HOST}."))
}

#[tokio::test]
async fn a_name_is_resolved_with_search_domains_and_as_it_is() {
    let (dns, mut shoot) = named(here(&format!("{HOST}.cluster.local."))).await;
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [VERSION, LEASES]);
    dns.say(itself());
    shoot.share(&resources(&dns));
    shoot.healthy().await;
}

#[tokio::test]
async fn each_new_connection_asks_where_its_name_points_now() {
    let (dns, mut shoot) = named(itself()).await;
    shoot.healthy().await;
    let asked = dns.asked().len();
    shoot.healthy().await;
    assert_eq!(dns.asked().len(), asked, "a kept connection needs no name");
    dns.say(Reply::NoName);
    shoot.api.cut_connections();
    let error = shoot.leases().await.expect_err("no such name");
    assert_eq!(words(&error), ("leases", "dns"));
    assert_eq!(
        error.cause.to_string(),
        "the host name cannot be resolved: there is no such name"
    );
}

#[tokio::test]
async fn addresses_and_localhost_need_no_dns() {
    let (dns, mut shoot) = named(Reply::Silence).await;
    for host in ["127.0.0.1", "localhost"] {
        lead(&shoot, host);
        shoot.healthy().await;
    }
    assert_eq!(dns.asked(), [""; 0]);
}

#[test]
fn no_lookup_waits_for_a_thread() {
    // With one thread for what blocks, which is busy: lookups of a silent DNS took all of them,
    // each for a minute and longer.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let (done, busy) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || busy.recv());
    runtime.block_on(async {
        let (_dns, mut shoot) = named(itself()).await;
        shoot.healthy().await;
    });
    drop(done);
}

#[tokio::test]
async fn a_silent_dns_costs_a_probe_its_time_and_nothing_afterwards() {
    let (dns, mut shoot) = named(Reply::Silence).await;
    shoot.timeout = Duration::from_millis(400);
    assert_eq!(shoot.failed().await, ("version", "timeout"));
    dns.say(itself());
    shoot.timeout = Duration::from_secs(20);
    shoot.healthy().await;
}
