//! Real DNS servers on loopback, which have all the time that a busy machine takes.

use testbed::dns::{Dns, Reply};

use super::*;
use crate::config;
use crate::tests::CONFIG;

/// What comes of a lookup by servers that answer so.
async fn asked(replies: &[Reply], limit: &str) -> OwnerAnswer {
    let mut servers = Vec::new();
    for reply in replies {
        servers.push(Dns::start(reply.clone()).await.expect("a server"));
    }
    let addresses = servers.iter().map(|dns| dns.address().to_string());
    let addresses = addresses.collect::<Vec<_>>().join("', '");
    let check =
        format!("name: o, value: here, servers: ['{addresses}'], interval: 1m, timeout: {limit}");
    let config = config::parse(&format!("{CONFIG}ownerCheck: {{{check}}}\n"));
    let check = config.expect("a config").config.owner_check;
    let resources = Resources::of_system();
    let resolver = Resolver::new(&check.expect("a check"), &resources);
    let question = Question {
        name: "owner.example.org".to_owned(),
        ours: "here".to_owned(),
    };
    let answer = resolver.ask(Some(&question)).await;
    let mut asked = servers.iter().flat_map(Dns::asked);
    assert!(asked.all(|name| name == "owner.example.org."));
    answer
}

#[tokio::test]
async fn each_answer_of_dns_is_known_for_what_it_is() {
    // TXT records, each of several strings.
    let texts = |records: &str| {
        let strings = |record: &str| record.split('+').map(str::to_owned).collect();
        Vec::from_iter(records.split(' ').map(strings))
    };
    for (replies, expected) in [
        (vec![Reply::text("here")], "ours"),
        (vec![Reply::text("there")], "elsewhere"),
        // Strings are put together, and what is cut off is asked for over TCP.
        (vec![Reply::Text(texts("he+re"))], "ours"),
        (vec![Reply::Text(texts("here h+ere"))], "ours"),
        (vec![Reply::CutOff(texts("here"))], "ours"),
        (
            vec![Reply::Failure, Reply::Silence, Reply::text("here")],
            "ours",
        ),
        (vec![Reply::Text(texts("here there"))], "ambiguous"),
        (vec![Reply::NoName], "no_name"),
        (vec![Reply::NoRecord], "no_record"),
        (vec![Reply::Address], "no_record"),
        (vec![Reply::Failure], "server"),
        (vec![Reply::Refused], "refused"),
        (vec![Reply::CutOffAlways], "truncated"),
        (vec![Reply::Silence], "timeout"),
    ] {
        let limit = if expected == "timeout" {
            "300ms"
        } else {
            "30s"
        };
        assert_eq!(
            asked(&replies, limit).await.as_str(),
            expected,
            "{replies:?}"
        );
    }
}

#[test]
fn only_nameservers_are_read() {
    let resolv_conf = "# nameserver 192.0.2.9\nsearch svc.cluster.local\nnameserver 192.0.2.1\n\
        nameserver\t2001:db8::1 # the second\noptions ndots:5 use-vc nobody-knows:3\n\
        nameserver nobody\nnameserver\nunknown line\n";
    let servers = nameservers(resolv_conf);
    let expected = ["192.0.2.1:53", "[2001:db8::1]:53"];
    assert_eq!(
        servers,
        expected.map(|address| address.parse().expect(address))
    );
}
