//! Real DNS servers on loopback, which have all the time that a busy machine takes.

use std::future::ready;

use testbed::dns::{Dns, Reply};

use super::*;
use crate::config;
use crate::tests::CONFIG;

/// What comes of a look-up by a section with this in it.
async fn answer(more: &str, resources: &Resources, name: &str) -> String {
    let check = format!("ownerCheck: {{name: o, value: here, {more}}}\n");
    let config = config::parse(&(CONFIG.to_owned() + &check));
    let check = config.expect("a config").config.owner_check;
    let resolver = Resolver::new(check.expect("a check"), resources);
    let answer = resolver.ask(name).await;
    answer.unwrap_or_else(|why| <&str>::from(why).to_owned())
}

/// What comes of a look-up by servers that answer so.
async fn asked(replies: &[Reply], limit: &str) -> String {
    let mut servers = Vec::new();
    for reply in replies {
        servers.push(Dns::start(reply.clone()).await.expect("a server"));
    }
    let addresses = servers.iter().map(|dns| dns.address().to_string());
    let addresses = addresses.collect::<Vec<_>>().join("', '");
    let section = format!("servers: ['{addresses}'], interval: 1m, timeout: {limit}");
    let answer = answer(&section, &Resources::of_system(), "owner.example.org").await;
    let mut asked = servers.iter().flat_map(Dns::asked);
    assert!(asked.all(|name| name == "owner.example.org."));
    answer
}

#[tokio::test]
async fn dns_answers_are_told_apart() {
    // TXT records, each of several strings.
    let texts = |records: &str| {
        let strings = |record: &str| record.split('+').map(str::to_owned).collect();
        Vec::from_iter(records.split(' ').map(strings))
    };
    for (replies, expected) in [
        // Strings are put together, and what is cut off is asked for over TCP.
        (vec![Reply::Text(texts("here h+ere"))], "here"),
        (vec![Reply::CutOff(texts("here"))], "here"),
        (
            vec![Reply::Failure, Reply::Silence, Reply::text("here")],
            "here",
        ),
        (vec![Reply::Text(texts("here there"))], "ambiguous"),
        (vec![Reply::NoName], "no_record"),
        (vec![Reply::NoRecord], "no_record"),
        (vec![Reply::Address], "no_record"),
        (vec![Reply::Failure], "server"),
        (vec![Reply::Refused], "server"),
        (vec![Reply::CutOffAlways], "server"),
        (vec![Reply::Silence], "timeout"),
    ] {
        let limit = if expected == "timeout" {
            "300ms"
        } else {
            "30s"
        };
        assert_eq!(asked(&replies, limit).await, expected, "{replies:?}");
    }
}

#[tokio::test]
async fn records_must_agree_to_the_letter() {
    for (records, expected) in [
        ("here", "here"),
        ("there, there", "there"),
        ("Here ", "Here "),
        ("", ""),
        ("here, there, here", "ambiguous"),
        ("here, Here", "ambiguous"),
    ] {
        let values: Vec<_> = records.split(", ").map(str::to_owned).collect();
        let answers = move |_| ready(Some(values.clone())).boxed();
        let resources = Resources::of_system().with_records(answers);
        assert_eq!(answer("", &resources, "o").await, expected, "{records}");
        let unnamed = answer("", &resources, "").await;
        assert_eq!(unnamed, "unknown");
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
        expected.map(|address| DnsServer(address.parse().expect(address)))
    );
}
