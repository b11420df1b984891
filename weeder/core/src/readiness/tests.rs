use super::*;

const ETCD: &str = "etcd";
const API: &str = "api";

fn ready(service: &str) -> Transition {
    Transition {
        service: service.into(),
        ready: true,
    }
}

fn not_ready(service: &str) -> Transition {
    Transition {
        ready: false,
        ..ready(service)
    }
}

fn ready_services(readiness: &Readiness) -> Vec<String> {
    readiness
        .ready()
        .keys()
        .map(|name| name.to_string())
        .collect()
}

fn slice(service: &str, ready: &[&str]) -> Slice {
    Slice {
        service: service.into(),
        ready: ready
            .iter()
            .map(|endpoint| (*endpoint).to_owned())
            .collect(),
    }
}

/// Applies slices one after the other and returns the transitions of each.
fn transitions(readiness: &mut Readiness, slices: &[(&str, Slice)]) -> Vec<Vec<Transition>> {
    slices
        .iter()
        .map(|(name, slice)| readiness.apply((*name).to_owned(), slice.clone()))
        .collect()
}

fn relisted(readiness: &mut Readiness, slices: &[(&str, Slice)]) -> Vec<Transition> {
    let listed = slices
        .iter()
        .map(|(name, slice)| ((*name).to_owned(), Some(slice.clone())));
    readiness.relist(listed.collect())
}

#[test]
fn service_turns_by_its_endpoints() {
    type Step = (
        &'static str,
        &'static str,
        &'static [&'static str],
        Vec<Transition>,
    );
    let cases: [(&str, Vec<Step>); 4] = [
        (
            "once each way",
            vec![
                ("a", ETCD, &[], vec![]),
                ("a", ETCD, &["1"], vec![ready(ETCD)]),
                ("a", ETCD, &["1", "2"], vec![]),
                ("a", ETCD, &["3"], vec![]),
                ("a", ETCD, &[], vec![not_ready(ETCD)]),
                ("a", ETCD, &[], vec![]),
            ],
        ),
        (
            "over all its slices",
            vec![
                ("ipv4", API, &["1"], vec![ready(API)]),
                ("ipv6", API, &["1"], vec![]),
                ("ipv4", API, &[], vec![]),
                ("ipv6", API, &[], vec![not_ready(API)]),
                ("ipv4", API, &["2"], vec![ready(API)]),
            ],
        ),
        (
            "and over no others",
            vec![
                ("a", ETCD, &["1"], vec![ready(ETCD)]),
                ("b", API, &["2"], vec![ready(API)]),
                ("a", ETCD, &[], vec![not_ready(ETCD)]),
            ],
        ),
        (
            "a slice changes its Service",
            vec![
                ("a", ETCD, &["1"], vec![ready(ETCD)]),
                ("a", API, &["1"], vec![not_ready(ETCD), ready(API)]),
            ],
        ),
    ];
    for (what, steps) in cases {
        let mut readiness = Readiness::default();
        for (name, service, endpoints, expected) in steps {
            let turned = readiness.apply(name.to_owned(), slice(service, endpoints));
            assert_eq!(turned, expected, "{what}: {name} {endpoints:?}");
        }
    }
}

#[test]
fn vanished_slice_takes_its_endpoints() {
    let mut readiness = Readiness::default();
    transitions(
        &mut readiness,
        &[("a", slice(ETCD, &["1"])), ("b", slice(ETCD, &["2"]))],
    );
    assert_eq!(readiness.remove("a"), []);
    assert_eq!(readiness.remove("b"), [not_ready(ETCD)]);
    assert_eq!(readiness.remove("b"), []);
    assert!(readiness.is_empty());
}

#[test]
fn only_other_endpoints_are_a_recovery() {
    let mut readiness = Readiness::default();
    transitions(&mut readiness, &[("a", slice(ETCD, &["1", "2"]))]);
    assert_eq!(
        relisted(&mut readiness, &[("a", slice(ETCD, &["2", "1"]))]),
        []
    );
    assert_eq!(
        relisted(
            &mut readiness,
            &[("b", slice(ETCD, &["1"])), ("c", slice(ETCD, &["2"]))]
        ),
        [],
        "cut differently"
    );
    assert_eq!(
        relisted(&mut readiness, &[("a", slice(ETCD, &["1", "3"]))]),
        [ready(ETCD)]
    );
    assert_eq!(
        relisted(&mut readiness, &[("a", slice(ETCD, &["1"]))]),
        [ready(ETCD)]
    );
}

#[test]
fn relisted_readiness_turns_as_ever() {
    let mut readiness = Readiness::default();
    transitions(
        &mut readiness,
        &[("a", slice(ETCD, &["1"])), ("b", slice(API, &[]))],
    );
    assert_eq!(
        relisted(&mut readiness, &[("b", slice(API, &["2"]))]),
        [not_ready(ETCD), ready(API)]
    );
    assert_eq!(relisted(&mut readiness, &[]), [not_ready(API)]);
}

#[test]
fn unreadable_slice_stays() {
    let mut readiness = Readiness::default();
    transitions(
        &mut readiness,
        &[("a", slice(ETCD, &["1"])), ("b", slice(API, &["2"]))],
    );
    let transitions = readiness.relist(HashMap::from([("a".to_owned(), None)]));
    assert_eq!(transitions, [not_ready(API)]);
    assert_eq!(ready_services(&readiness), [ETCD]);
}
