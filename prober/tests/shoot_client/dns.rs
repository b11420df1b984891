//! How the name of an API server becomes the address to connect to.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::proto::rr::Name;
use prober::shoot_client::Budget;
use prober::shoot_client::resources::Resources;
use testbed::dns::{Dns, Reply};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::shoot::{LEASES, TOKEN, TestShoot, VERSION, words};

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

/// Whose API server is known by its name alone, which this DNS server resolves.
async fn named(dns: &Dns) -> TestShoot {
    let mut shoot = TestShoot::start().await;
    shoot.secret.set(&shoot.api.kubeconfig_at(
        &format!("https://{HOST}:{}", shoot.api.address().port()),
        TOKEN,
    ));
    shoot.share(&resources(dns));
    shoot
}

fn host(name: &str, addresses: &[Ipv4Addr]) -> Reply {
    Reply::Host(name.to_owned(), addresses.to_vec())
}

#[tokio::test]
async fn a_name_is_resolved_with_search_domains_and_as_it_is() {
    let dns = Dns::start(host(
        &format!("{HOST}.cluster.local."),
        &[Ipv4Addr::LOCALHOST],
    ))
    .await
    .expect("a server");
    let mut shoot = named(&dns).await;
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [VERSION, LEASES]);
    dns.say(host(&format!("{HOST}."), &[Ipv4Addr::LOCALHOST]));
    shoot.share(&resources(&dns));
    shoot.healthy().await;
}

#[tokio::test]
async fn each_new_connection_asks_where_its_name_points_now() {
    let dns = Dns::start(host(&format!("{HOST}."), &[Ipv4Addr::LOCALHOST]))
        .await
        .expect("a server");
    let mut shoot = named(&dns).await;
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
    let dns = Dns::start(Reply::Silence).await.expect("a server");
    let mut shoot = named(&dns).await;
    for host in ["127.0.0.1", "localhost"] {
        shoot.secret.set(&shoot.api.kubeconfig_at(
            &format!("https://{host}:{}", shoot.api.address().port()),
            TOKEN,
        ));
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
        let dns = Dns::start(host(&format!("{HOST}."), &[Ipv4Addr::LOCALHOST]))
            .await
            .expect("a server");
        named(&dns).await.healthy().await;
    });
    drop(done);
}

#[tokio::test]
async fn a_silent_dns_costs_a_probe_its_time_and_nothing_afterwards() {
    let dns = Dns::start(Reply::Silence).await.expect("a server");
    let mut shoot = named(&dns).await;
    shoot.timeout = Duration::from_millis(400);
    assert_eq!(shoot.failed().await, ("version", "timeout"));
    dns.say(host(&format!("{HOST}."), &[Ipv4Addr::LOCALHOST]));
    shoot.timeout = Duration::from_secs(20);
    shoot.healthy().await;
}

#[tokio::test]
async fn of_several_addresses_one_that_swallows_everything_keeps_no_probe_from_the_next() {
    let dead = Ipv4Addr::new(127, 0, 0, 2);
    let dns = Dns::start(host(&format!("{HOST}."), &[dead, Ipv4Addr::LOCALHOST]))
        .await
        .expect("a server");
    let mut shoot = named(&dns).await;
    let address = SocketAddr::from((dead, shoot.api.address().port()));
    let listener = TcpSocket::new_v4().expect("a socket");
    listener.bind(address).expect("a free port");
    let _listener = listener.listen(1).expect("a listener");
    // Once its queue is full, what knocks gets no answer.
    let mut queued = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
        queued.push(stream.expect("a place in the queue"));
    }
    let answer = shoot
        .client
        .leases(Budget::starting_now(Duration::from_secs(12)))
        .await;
    assert_eq!(answer.expect("a complete answer").items.len(), 3);
}
