//! How the name of an API server becomes the address to connect to.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use prober::shoot_client::resources::Resources;
use testbed::dns::{Dns, Reply};

use super::shoot::{TestShoot, words};

/// One of the names that certificates here are good for.
const HOST: &str = "kubernetes.default.svc";

/// What all shoots share, with this DNS server.
fn resources(dns: &Dns) -> Arc<Resources> {
    let mut server = NameServerConfig::udp_and_tcp(dns.address().ip());
    server
        .connections
        .iter_mut()
        .for_each(|connection| connection.port = dns.address().port());
    let config = ResolverConfig::from_parts(None, vec![], vec![server]);
    let resources = Resources::new(config, ResolverOpts::default());
    Arc::new(resources.expect("a resolver"))
}

/// A DNS server, and a shoot whose API server is known by its name alone, which that resolves.
async fn named(reply: Reply) -> (Dns, TestShoot) {
    let dns = Dns::start(reply).await.expect("a server");
    let mut shoot = TestShoot::start().await;
    let port = shoot.api.address().port();
    shoot.lead(&format!("https://{HOST}:{port}"), "");
    shoot.share(&resources(&dns));
    (dns, shoot)
}

/// The name is this host's.
fn here() -> Reply {
    Reply::Host(format!("{HOST}."), vec![Ipv4Addr::LOCALHOST])
}

#[tokio::test]
async fn each_new_connection_asks_where_its_name_points_now() {
    let (dns, mut shoot) = named(here()).await;
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
        let (_dns, mut shoot) = named(here()).await;
        shoot.healthy().await;
    });
    drop(done);
}

#[tokio::test]
async fn a_silent_dns_costs_a_probe_its_time_and_nothing_afterwards() {
    let (dns, mut shoot) = named(Reply::Silence).await;
    shoot.timeout = Duration::from_millis(400);
    assert_eq!(shoot.failed().await, ("version", "timeout"));
    dns.say(here());
    shoot.timeout = Duration::from_secs(20);
    shoot.healthy().await;
}
