use super::*;

/// A slice in words: `Service endpoint ...`, or `unreadable`.
fn slice(text: &str) -> Option<Slice> {
    let mut words = text.split(' ').map(str::to_owned);
    let service = words.next().filter(|word| word != "unreadable")?.into();
    let ready = words.collect();
    Some(Slice { service, ready })
}

/// Tells stories, one a line: what it shows, and its steps: a slice that changes, all that are
/// listed, or one that is gone, and the Services that turn then, each with a sign.
#[track_caller]
fn tell(rows: &str) {
    for (what, story) in rows.lines().filter_map(|row| row.split_once(": ")) {
        let mut readiness = Readiness::default();
        for step in story.split("; ") {
            let (event, expected) = step.split_once(" -> ").unwrap_or((step, ""));
            let (name, rest) = event.split_once(' ').unwrap_or((event, ""));
            let named = |text: &str| {
                let (name, text) = text.split_once(' ')?;
                Some((name.to_owned(), slice(text)))
            };
            let turned = match name {
                "list" => readiness.relist(rest.split(", ").filter_map(named).collect()),
                "gone" => readiness.remove(rest),
                _ => readiness.apply(name.to_owned(), slice(rest).expect(event)),
            };
            let sign = |turned: &Transition| {
                format!("{}{}", if turned.ready { '+' } else { '-' }, turned.service)
            };
            let signs: Vec<_> = turned.iter().map(sign).collect();
            assert_eq!(signs.join(" "), expected, "{what}: {step}");
        }
    }
}

#[test]
fn service_turns_by_its_endpoints() {
    tell(
        "
once each way: a etcd 1 -> +etcd; a etcd 1 2; a etcd 3; a etcd -> -etcd; a etcd
over all its slices: ipv4 api 1 -> +api; ipv6 api 1; ipv4 api; ipv6 api -> -api; ipv4 api 2 -> +api
over no others: a etcd 1 -> +etcd; b api 2 -> +api; a etcd -> -etcd
a slice changes its Service: a etcd 1 -> +etcd; a api 1 -> -etcd +api
a slice vanishes with its endpoints: list a etcd 1, b etcd 2 -> +etcd; gone a; gone b -> -etcd; gone b
",
    );
}

#[test]
fn only_other_endpoints_are_a_recovery() {
    tell(
        "
they are the same: list a etcd 1 2, b api -> +etcd; list a etcd 2 1
cut differently: list a etcd 1 2, b api -> +etcd; list b etcd 1, c etcd 2
one is another: list a etcd 1 2, b api -> +etcd; list a etcd 1 3 -> +etcd
one is gone: list a etcd 1 2, b api -> +etcd; list a etcd 1 -> +etcd
of another Service: list a etcd 1 2, b api -> +etcd; list a api 1 -> -etcd +api
nothing is listed: list a etcd 1 2, b api -> +etcd; list nothing -> -etcd
what cannot be read stays: list a etcd 1, b api 2 -> +api +etcd; list a unreadable -> -api; a etcd -> -etcd
",
    );
}
