//! An odd network, which prober and operator get through: names are resolved as the system does,
//! whatever resolv.conf says.

use std::net::{IpAddr, SocketAddr};

use api_server::MemoryApi;
use testbed::dns::{Dns, Reply};
use testbed::gardener::probe_secret;
use testbed::network::with_resolv_conf;

use super::world::{ASKING, ONE, World, config, holds, line, until_holds};

/// One of the names that certificates here are good for.
const HOST: &str = "kubernetes.default.svc";
const RESOLV_CONF: &str = "search example.org
nameserver 127.0.0.2
nameserver 127.0.0.3
nameserver 127.0.0.4
options ndots:5 nobody-knows:3
unknown line
";
/// Asks the servers of resolv.conf.
const OWNER_CHECK: &str =
    "ownerCheck: {name: '{{namespace}}.example.org', value: here, interval: 5s}\n";

/// Each name takes 5 s, as long as the C library waits for it: the seed's, too.
#[test]
fn a_dead_first_nameserver_of_three() {
    with_resolv_conf(RESOLV_CONF, async || {
        let mut dns = Vec::new();
        let good = Reply::Loopback("here".to_owned());
        for (address, reply) in [(2, Reply::Silence), (3, good.clone()), (4, good)] {
            let address = SocketAddr::new(IpAddr::from([127, 0, 0, address]), 53);
            dns.push(Dns::start_at(address, reply).await.expect("a DNS server"));
        }
        let config = config().replace("probeTimeout: 4s", "probeTimeout: 30s");
        let mut world = World::configured(&[ONE], config + OWNER_CHECK).await;
        let url = |api: &MemoryApi| format!("https://{HOST}:{}", api.address().port());
        let (shoot, _) = &world.shoots[ONE];
        let kubeconfig = shoot.kubeconfig_at(&url(shoot), "probe");
        let secret = probe_secret(ONE, &kubeconfig);
        world.seed.store().apply(secret).expect("a Secret");
        world.seed_url = url(&world.seed);
        world.may(ASKING);
        world.join_and_probe().await;
        let status = world.text("status").await;
        holds(line(&status, ONE), &["probed"]);
        let ours = ["dwd_owner_shoots{standing=\"ours\"} 1"];
        until_holds(&ours, async || world.metrics().await).await;
        let metrics = world.metrics().await;
        for result in ["connect", "dns", "timeout", "tls"] {
            assert!(
                !metrics.contains(&format!("result=\"{result}\"")),
                "{metrics}"
            );
        }
    });
}
