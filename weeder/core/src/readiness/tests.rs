use super::*;

/// Slices in words: `name: Service endpoint ...; ...`.
fn slices(text: &str) -> BTreeMap<String, Option<Slice>> {
    let slice = |text: &str| {
        let (name, slice) = text.split_once(": ").expect("a name");
        let mut words = slice.split(' ').map(str::to_owned);
        let service = words.next().expect("a Service").into();
        let ready = words.collect();
        (name.to_owned(), Some(Slice { service, ready }))
    };
    text.split_terminator("; ").map(slice).collect()
}

/// The Services that turned, each with a sign.
fn signs(transitions: Vec<Transition>) -> String {
    let sign =
        |turned: &Transition| format!("{}{}", if turned.ready { '+' } else { '-' }, turned.service);
    transitions.iter().map(sign).collect::<Vec<_>>().join(" ")
}

#[test]
fn service_turns_by_its_endpoints() {
    for (what, steps) in [
        (
            "once each way",
            &[
                ("a: etcd", ""),
                ("a: etcd 1", "+etcd"),
                ("a: etcd 1 2", ""),
                ("a: etcd 3", ""),
                ("a: etcd", "-etcd"),
                ("a: etcd", ""),
            ][..],
        ),
        (
            "over all its slices",
            &[
                ("ipv4: api 1", "+api"),
                ("ipv6: api 1", ""),
                ("ipv4: api", ""),
                ("ipv6: api", "-api"),
                ("ipv4: api 2", "+api"),
            ],
        ),
        (
            "and over no others",
            &[
                ("a: etcd 1", "+etcd"),
                ("b: api 2", "+api"),
                ("a: etcd", "-etcd"),
            ],
        ),
        (
            "a slice changes its Service",
            &[("a: etcd 1", "+etcd"), ("a: api 1", "-etcd +api")],
        ),
    ] {
        let mut readiness = Readiness::default();
        for (applied, expected) in steps {
            for (name, slice) in slices(applied) {
                let turned = readiness.apply(name, slice.expect("a slice"));
                assert_eq!(signs(turned), *expected, "{what}: {applied}");
            }
        }
    }
}

#[test]
fn vanished_slice_takes_its_endpoints() {
    let mut readiness = Readiness::default();
    readiness.relist(slices("a: etcd 1; b: etcd 2"));
    let turned = ["a", "b", "b"].map(|name| signs(readiness.remove(name)));
    assert_eq!(turned, ["", "-etcd", ""]);
    assert!(readiness.is_empty());
}

#[test]
fn only_other_endpoints_are_a_recovery() {
    for (listed, expected) in [
        ("a: etcd 2 1", ""),
        // Cut differently.
        ("b: etcd 1; c: etcd 2", ""),
        ("a: etcd 1 3", "+etcd"),
        ("a: etcd 1", "+etcd"),
        ("a: api 1", "-etcd +api"),
        ("", "-etcd"),
    ] {
        let mut readiness = Readiness::default();
        readiness.relist(slices("a: etcd 1 2; b: api"));
        assert_eq!(
            signs(readiness.relist(slices(listed))),
            expected,
            "{listed}"
        );
    }
}

#[test]
fn unreadable_slice_stays() {
    let mut readiness = Readiness::default();
    readiness.relist(slices("a: etcd 1; b: api 2"));
    let unreadable = BTreeMap::from([("a".to_owned(), None)]);
    assert_eq!(signs(readiness.relist(unreadable)), "-api");
    assert!(readiness.ready().keys().eq(&["etcd".into()]));
}
