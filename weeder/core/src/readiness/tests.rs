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
fn a_service_without_ready_endpoints_is_not_ready() {
    let mut readiness = Readiness::default();
    assert_eq!(
        transitions(&mut readiness, &[("a", slice(ETCD, &[]))]),
        [vec![]]
    );
    assert_eq!(readiness.ready().len(), 0);
}

#[test]
fn a_service_turns_ready_once_and_not_ready_once() {
    let mut readiness = Readiness::default();
    let steps = [
        ("a", slice(ETCD, &["1"])),
        ("a", slice(ETCD, &["1", "2"])),
        ("a", slice(ETCD, &["3"])),
        ("a", slice(ETCD, &[])),
        ("a", slice(ETCD, &[])),
    ];
    let expected = [
        vec![ready(ETCD)],
        vec![],
        vec![],
        vec![not_ready(ETCD)],
        vec![],
    ];
    assert_eq!(transitions(&mut readiness, &steps), expected);
}

#[test]
fn one_ready_endpoint_in_any_slice_is_enough() {
    let mut readiness = Readiness::default();
    let steps = [
        ("ipv4", slice(API, &["1"])),
        ("ipv6", slice(API, &["1"])),
        ("ipv4", slice(API, &[])),
        ("ipv6", slice(API, &[])),
        ("ipv4", slice(API, &["2"])),
    ];
    let expected = [
        vec![ready(API)],
        vec![],
        vec![],
        vec![not_ready(API)],
        vec![ready(API)],
    ];
    assert_eq!(transitions(&mut readiness, &steps), expected);
}

#[test]
fn services_do_not_share_their_slices() {
    let mut readiness = Readiness::default();
    let steps = [
        ("a", slice(ETCD, &["1"])),
        ("b", slice(API, &["2"])),
        ("a", slice(ETCD, &[])),
    ];
    assert_eq!(
        transitions(&mut readiness, &steps),
        [vec![ready(ETCD)], vec![ready(API)], vec![not_ready(ETCD)]]
    );
    assert_eq!(ready_services(&readiness), [API]);
}

#[test]
fn a_vanished_slice_takes_its_endpoints_along() {
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
fn a_slice_that_changes_its_service_turns_both() {
    let mut readiness = Readiness::default();
    transitions(&mut readiness, &[("a", slice(ETCD, &["1"]))]);
    assert_eq!(
        transitions(&mut readiness, &[("a", slice(API, &["1"]))]),
        [vec![not_ready(ETCD), ready(API)]]
    );
}

#[test]
fn after_blindness_the_same_endpoints_are_no_recovery_and_others_are() {
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
fn after_blindness_readiness_turns_as_ever() {
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
fn a_slice_that_cannot_be_read_stays_as_it_was() {
    let mut readiness = Readiness::default();
    transitions(
        &mut readiness,
        &[("a", slice(ETCD, &["1"])), ("b", slice(API, &["2"]))],
    );
    let transitions = readiness.relist(HashMap::from([("a".to_owned(), None)]));
    assert_eq!(transitions, [not_ready(API)]);
    assert_eq!(ready_services(&readiness), [ETCD]);
}
