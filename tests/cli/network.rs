//! Odd networks between prober, operator and API servers, which all of them get through: names are
//! resolved as the system does, whatever resolv.conf says, and the seed may be slow to connect.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use api_server::MemoryApi;
use testbed::dns::{Dns, Reply};
use testbed::gardener::probe_secret;
use testbed::network::with_resolv_conf;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::world::{ASKING, ONE, World, config, holds, line, until};

/// One of the names that certificates here are good for.
const HOST: &str = "kubernetes.default.svc";
/// Asks the servers of resolv.conf.
const OWNER_CHECK: &str =
    "ownerCheck: {name: '{{namespace}}.example.org', value: here, interval: 5s}\n";

/// A seed with one shoot, not probed yet.
async fn world(more: &str) -> World {
    let config = config().replace("probeTimeout: 4s", "probeTimeout: 30s");
    World::configured(&[ONE], config + more).await
}

/// Shows that no probe fails, and that an operator is told what comes of them.
async fn probes_and_tells(mut world: World, seed_url: String) -> World {
    world.seed_url = seed_url;
    world.may(ASKING);
    world.join_and_probe().await;
    let status = world.text("status").await;
    holds(line(&status, ONE), &["probed"]);
    let metrics = world.metrics().await;
    for result in ["connect", "dns", "timeout", "tls"] {
        let is_failed = |series: &str| {
            series.starts_with("dwd_probes_total") && series.contains(&format!("\"{result}\""))
        };
        let mut failed = metrics.values.iter().filter(|(_, count)| **count > 0.0);
        assert!(!failed.any(|(series, _)| is_failed(series)), "{metrics:?}");
    }
    world
}

/// The same where the API servers have names, in a network with these DNS servers.
fn by_names(resolv_conf: &str, servers: &[(&str, Reply)], more: &str) {
    with_resolv_conf(resolv_conf, async || {
        let mut dns = Vec::new();
        for (address, reply) in servers {
            let address: IpAddr = address.parse().expect("an address");
            let server = Dns::start_at(SocketAddr::new(address, 53), reply.clone()).await;
            dns.push(server.expect("a DNS server"));
        }
        let world = world(more).await;
        let url = |api: &MemoryApi| format!("https://{HOST}:{}", api.address().port());
        let (shoot, _) = &world.shoots[ONE];
        let kubeconfig = shoot.kubeconfig_at(&url(shoot), "probe");
        let secret = probe_secret(ONE, &kubeconfig);
        world.seed.store().apply(secret).expect("a Secret");
        let seed = url(&world.seed);
        let world = probes_and_tells(world, seed).await;
        if !more.is_empty() {
            let ours = "dwd_owner_shoots{standing=\"ours\"}";
            let is_ours = async || world.metrics().await.values.get(ours) == Some(&1.0);
            until("the owner record is ours", is_ours).await;
        }
    });
}

fn good() -> Reply {
    Reply::Loopback("here".to_owned())
}

#[test]
fn a_dead_first_nameserver_of_three() {
    // Each name takes 5 s, as long as the C library waits for it: the seed's, too.
    by_names(
        "nameserver 127.0.0.2\nnameserver 127.0.0.3\nnameserver 127.0.0.4\n",
        &[
            ("127.0.0.2", Reply::Silence),
            ("127.0.0.3", good()),
            ("127.0.0.4", good()),
        ],
        OWNER_CHECK,
    );
}

#[test]
fn use_vc_with_udp_blocked() {
    by_names(
        "nameserver 127.0.0.2\noptions use-vc\n",
        &[("127.0.0.2", Reply::LoopbackOverTcp("here".to_owned()))],
        "",
    );
}

#[test]
fn an_option_that_nobody_knows() {
    for more in ["", OWNER_CHECK] {
        by_names(
            "search example.org\nnameserver 127.0.0.2\noptions ndots:5 nobody-knows:3\nunknown line\n",
            &[("127.0.0.2", good())],
            more,
        );
    }
}

/// A way to this address on which nothing comes through for this time.
async fn relay(listener: TcpListener, to: SocketAddr, after: Duration) -> io::Result<()> {
    loop {
        let (mut from, _) = listener.accept().await?;
        tokio::spawn(async move {
            sleep(after).await;
            copy_bidirectional(&mut from, &mut TcpStream::connect(to).await?).await
        });
    }
}

#[tokio::test]
async fn a_seed_whose_tls_takes_6_s() {
    let world = world("").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("one"));
    let to = world.seed.address();
    tokio::select! {
        _ = probes_and_tells(world, url) => {}
        ended = relay(listener, to, Duration::from_secs(6)) => panic!("{ended:?}"),
    }
}
