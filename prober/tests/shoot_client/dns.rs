//! How the name of an API server becomes the address to connect to.

use std::net::Ipv4Addr;
use std::sync::Arc;

use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use prober::shoot_client::resources::Resources;
use testbed::dns::{Dns, Reply};

use super::shoot::TestShoot;

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
        shoot.tell("probe: 3 by leases/1").await;
    });
    drop(done);
}

#[tokio::test]
async fn a_silent_dns_costs_a_probe_its_time_and_nothing_afterwards() {
    let (dns, mut shoot) = named(Reply::Silence).await;
    shoot
        .tell("timeout 400; probe: timeout at leases by ")
        .await;
    dns.say(here());
    shoot.tell("timeout 20000; probe: 3 by leases/1").await;
    // Each new connection asks where its name points now.
    dns.say(Reply::NoName);
    shoot
        .tell("probe: 3 by leases/1; cut; probe: dns at leases by ")
        .await;
}
