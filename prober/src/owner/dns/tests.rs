//! Real DNS servers on loopback, which have all the time that a busy machine takes.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use testbed::dns::{Dns, Reply};
use tokio::time::Instant;

use super::*;
use crate::config;
use crate::tests::CONFIG;

/// A resolver by a section with this in it.
fn resolver(more: &str, resources: &Resources) -> Resolver {
    let check = format!("ownerCheck: {{name: o, value: here, {more}}}\n");
    let config = config::parse(&(CONFIG.to_owned() + &check));
    let check = config.expect("a config").config.owner_check;
    Resolver::new(check.expect("a check"), resources)
}

async fn answer(resolver: &Resolver, name: &str) -> &'static str {
    let question = (name.to_owned(), "here".to_owned());
    (&resolver.ask(&question).await).into()
}

/// What comes of a lookup by servers that answer so.
async fn asked(replies: &[Reply], limit: &str) -> &'static str {
    let mut servers = Vec::new();
    for reply in replies {
        servers.push(Dns::start(reply.clone()).await.expect("a server"));
    }
    let addresses = servers.iter().map(|dns| dns.address().to_string());
    let addresses = addresses.collect::<Vec<_>>().join("', '");
    let section = format!("servers: ['{addresses}'], interval: 1m, timeout: {limit}");
    let resolver = resolver(&section, &Resources::of_system());
    let answer = answer(&resolver, "owner.example.org").await;
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
        assert_eq!(asked(&replies, limit).await, expected, "{replies:?}");
    }
}

#[tokio::test]
async fn only_our_value_is_ours() {
    for (records, expected) in [
        ("here", "ours"),
        ("here, here", "ours"),
        ("there, there", "elsewhere"),
        ("Here", "elsewhere"),
        ("here ", "elsewhere"),
        ("\"here\"", "elsewhere"),
        ("", "elsewhere"),
        ("here, there", "ambiguous"),
        ("here, there, here", "ambiguous"),
        ("there, elsewhere", "ambiguous"),
    ] {
        let values: Vec<_> = records.split(", ").map(str::to_owned).collect();
        let answers = move |_| ready(Some(values.clone())).boxed();
        let resources = Resources::of_system().with_records(answers);
        let resolver = resolver("servers: [127.0.0.1]", &resources);
        assert_eq!(answer(&resolver, "o").await, expected, "{records}");
        assert_eq!(answer(&resolver, "").await, "unknown", "without a name");
    }
}

#[tokio::test(start_paused = true)]
async fn queries_in_flight_are_bounded() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let silence = move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        pending().boxed()
    };
    let resources = Resources::of_system().with_records(silence);
    let resolver = resolver("timeout: 2s", &resources);
    let began = Instant::now();
    let queries = (0..3 * IN_FLIGHT).map(|_| answer(&resolver, "o"));
    let answers = join_all(queries).await;
    assert!(answers.iter().all(|answer| *answer == "timeout"));
    assert_eq!(asked.load(Ordering::Relaxed), 3 * IN_FLIGHT);
    // Three rounds, each as long as a check may take.
    assert_eq!(began.elapsed().as_secs(), 6);
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
