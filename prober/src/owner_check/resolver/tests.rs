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
    use Unresolved::{Ambiguous, NoName, NoRecord, Refused, Server, Timeout, Truncated};
    let strings = |value: &[&str]| vec![value.iter().map(ToString::to_string).collect::<Vec<_>>()];
    let here = || Reply::text("here");
    for (replies, expected) in [
        (vec![here()], None),
        // Strings are put together, and what is cut off is asked for over TCP.
        (vec![Reply::Text(strings(&["he", "re"]))], None),
        (
            vec![Reply::Text(
                [strings(&["here"]), strings(&["h", "ere"])].concat(),
            )],
            None,
        ),
        (vec![Reply::CutOff(strings(&["here"]))], None),
        (vec![Reply::Failure, Reply::Silence, here()], None),
        (
            vec![Reply::Text(
                [strings(&["here"]), strings(&["there"])].concat(),
            )],
            Some(Ambiguous),
        ),
        (vec![Reply::NoName], Some(NoName)),
        (vec![Reply::NoRecord], Some(NoRecord)),
        (vec![Reply::Address], Some(NoRecord)),
        (vec![Reply::Failure], Some(Server)),
        (vec![Reply::Refused], Some(Refused)),
        (vec![Reply::CutOffAlways], Some(Truncated)),
    ] {
        let expected = expected.map_or(OwnerAnswer::Ours, OwnerAnswer::Unresolved);
        assert_eq!(asked(&replies, "30s").await, expected, "{replies:?}");
    }
    let other = asked(&[Reply::text("there")], "30s").await;
    assert_eq!(other, OwnerAnswer::Elsewhere("there".into()));
    let silent = asked(&[Reply::Silence], "300ms").await;
    assert_eq!(silent, OwnerAnswer::Unresolved(Timeout));
}
