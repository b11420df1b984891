use std::sync::Arc;

use api_server::protobuf::wire::{self as encoded, bytes as field, entry, message, number, text};
use chrono::DateTime;
use prober_core::lease::{LeaseList, LeaseRecord, LeaseUid};
use prober_core::verdict::{NodeCondition, NodeRecord, NodeTraits};
use proptest::prelude::*;

use super::*;

/// What was read of a page: its items and the token of the next.
type ReadPage<T> = (Vec<T>, Option<String>);

#[derive(Clone, Debug, PartialEq)]
struct ReadLease {
    name: String,
    renew_time: Option<DateTime<chrono::Utc>>,
    duration_seconds: Option<i32>,
}

impl From<LeaseRecord<'_>> for ReadLease {
    fn from(lease: LeaseRecord<'_>) -> Self {
        Self {
            name: lease.name.to_owned(),
            renew_time: lease.renew_time,
            duration_seconds: lease.duration_seconds,
        }
    }
}

/// Reads a page after others, in these pieces.
fn pieces<'a, L: ItemList>(
    before: &L,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Page<L>, DecodeError> {
    let room = ListRoom::after(before);
    let mut reader = ListReader::new(0, &room);
    for piece in pieces {
        reader.feed(piece)?;
    }
    reader.finish()
}

fn lease_page<'a>(
    body: impl IntoIterator<Item = &'a [u8]>,
) -> Result<ReadPage<ReadLease>, DecodeError> {
    let Page { items, next } = pieces(&LeaseList::default(), body)?;
    Ok((items.iter().map(ReadLease::from).collect(), next))
}

fn node_page<'a>(
    body: impl IntoIterator<Item = &'a [u8]>,
) -> Result<ReadPage<NodeRecord>, DecodeError> {
    let Page { items, next } = pieces(&NodeList::default(), body)?;
    Ok((items.nodes, next))
}

/// Reads a list of leases in one piece and byte by byte.
fn leases(body: &[u8]) -> Result<ReadPage<ReadLease>, DecodeError> {
    let whole = lease_page([body]);
    let in_bytes = lease_page(body.chunks(1));
    assert_eq!(format!("{whole:?}"), format!("{in_bytes:?}"));
    whole
}

/// Reads a list of nodes in one piece and byte by byte.
fn nodes(body: &[u8]) -> Result<ReadPage<NodeRecord>, DecodeError> {
    let whole = node_page([body]);
    let in_bytes = node_page(body.chunks(1));
    assert_eq!(format!("{whole:?}"), format!("{in_bytes:?}"));
    whole
}

/// A page of leases of which only the items matter.
fn lease_items(object: &[Vec<u8>]) -> Vec<ReadLease> {
    lease_list(object).expect("a page").0
}

/// A whole body.
fn body(kind: &str, object: &[Vec<u8>]) -> Vec<u8> {
    encoded::envelope("v1", kind, &object.concat())
}

fn lease_list(object: &[Vec<u8>]) -> Result<ReadPage<ReadLease>, DecodeError> {
    leases(&body("LeaseList", object))
}

/// ListMeta with selfLink (1), resourceVersion (2), continue (3) and remainingItemCount (4).
fn list_meta(version: &str, next: &str) -> Vec<u8> {
    message(
        1,
        &[text(1, ""), text(2, version), text(3, next), number(4, 3)],
    )
}

/// A Lease with metadata (name 1, namespace 3, uid 5) and spec (holder 1, duration 2, acquireTime
/// 3, renewTime 4, transitions 5).
fn lease(name: &str, duration: Option<i64>, renewed: Option<(i64, i64)>) -> Vec<u8> {
    let metadata = message(
        1,
        &[
            text(1, name),
            text(3, "kube-node-lease"),
            text(5, "a-uid"),
            number(7, 3),
        ],
    );
    let mut spec = vec![text(1, name)];
    spec.extend(duration.map(|seconds| number(2, seconds)));
    spec.push(message(3, &[number(1, 1)]));
    spec.extend(
        renewed.map(|(seconds, nanos)| message(4, &[number(1, seconds), number(2, nanos)])),
    );
    spec.push(number(5, 1));
    message(2, &[metadata, message(2, &spec)])
}

/// A lease with these fields in its spec.
fn lease_with(spec: &[Vec<u8>]) -> Vec<u8> {
    message(2, &[message(1, &[text(1, "a")]), message(2, spec)])
}

/// A Node with metadata (name 1, labels 11, annotations 12), spec (2) and status (3) whose
/// conditions (4) have type 1, status 2, lastHeartbeatTime 3, reason 5 and message 6.
fn node() -> Vec<u8> {
    let labels = [
        entry(11, "worker.gardener.cloud/pool", "w1"),
        entry(11, "topology.kubernetes.io/zone", "a"),
    ]
    .concat();
    let annotations = entry(12, "node.machine.sapcloud.io/not-managed-by-mcm", "");
    let metadata = message(1, &[text(1, "n1"), labels, annotations]);
    let condition = message(
        4,
        &[
            text(1, "InPlaceUpdate"),
            text(2, "True"),
            message(3, &[number(1, 5)]),
            text(5, "UpdateFailed"),
            text(6, "long"),
        ],
    );
    let capacity = message(1, &[text(1, "cpu"), message(2, &[text(1, "4")])]);
    message(
        2,
        &[
            metadata,
            message(2, &[text(3, "local:///n1")]),
            message(3, &[capacity, condition]),
        ],
    )
}

#[test]
fn of_a_lease_its_name_duration_and_last_renewal_are_read() {
    let (items, next) = lease_list(&[
        list_meta("77", "next-page"),
        lease("a", Some(40), Some((1_772_366_407, 123_456_000))),
        lease("b", None, None),
        lease("c", Some(-1), Some((-1, 0))),
    ])
    .expect("a page");
    let read = |name: &str, duration_seconds, renewed: Option<(i64, u32)>| ReadLease {
        name: name.to_owned(),
        renew_time: renewed.map(|(seconds, nanos)| {
            DateTime::from_timestamp(seconds, nanos).expect("a calendar date")
        }),
        duration_seconds,
    };
    let expected = [
        read("a", Some(40), Some((1_772_366_407, 123_456_000))),
        read("b", None, None),
        read("c", Some(-1), Some((-1, 0))),
    ];
    assert_eq!(items, expected);
    assert_eq!(next.as_deref(), Some("next-page"));
}

#[test]
fn the_bytes_of_a_real_answer_are_understood() {
    // Written out by hand: magic; Unknown{1: TypeMeta{1: "v1", 2: "LeaseList"}, 2: raw}; raw =
    // LeaseList{1: ListMeta{2: "7"}, 2: Lease{1: ObjectMeta{1: "n"}, 2: LeaseSpec{2: 40, 4: {1:
    // 1700000000, 2: 5000}}}}.
    let golden = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09LeaseList\x12\x1b\x0a\x03\x12\x017\x12\x14\x0a\x03\x0a\x01n\x12\x0d\x10\x28\x22\x09\x08\x80\xe2\xcf\xaa\x06\x10\x88\x27";
    let (items, next) = leases(golden).expect("a page");
    let renew_time = DateTime::from_timestamp(1_700_000_000, 5000);
    assert_eq!(
        items,
        [ReadLease {
            name: "n".to_owned(),
            renew_time,
            duration_seconds: Some(40)
        }]
    );
    assert_eq!(next, None);
}

#[test]
fn of_a_node_what_makes_it_count_is_read() {
    let bare = message(2, &[message(1, &[text(1, "n2")])]);
    let list = body("NodeList", &[list_meta("7", ""), node(), bare]);
    let (items, next) = nodes(&list).expect("a page");
    let condition = NodeCondition {
        kind: "InPlaceUpdate".to_owned(),
        status: "True".to_owned(),
        reason: "UpdateFailed".to_owned(),
    };
    let traits = NodeTraits {
        pool: Some("w1".to_owned()),
        zone: Some("a".to_owned()),
        not_managed_by_mcm: true,
        conditions: vec![condition],
    };
    let second = NodeRecord::new("n2", NodeTraits::default());
    assert_eq!(items, [NodeRecord::new("n1", traits), second]);
    assert_eq!(next, None);
}

#[test]
fn nodes_that_are_alike_share_what_is_kept_of_them() {
    let other = message(2, &[message(1, &[text(1, "n2")])]);
    let list = body("NodeList", &[list_meta("7", ""), node(), other, node()]);
    let (items, _) = nodes(&list).expect("a page");
    assert!(Arc::ptr_eq(&items[0].traits, &items[2].traits));
    assert_ne!(items[0].traits, items[1].traits);
}

#[test]
fn an_empty_list_is_a_list() {
    assert!(lease_items(&[list_meta("7", "")]).is_empty());
}

fn check_content_type(content_type: &str) -> Result<(), DecodeError> {
    let room = ListRoom::after(&LeaseList::default());
    ListReader::<LeaseList>::new(0, &room).check_content_type(content_type)
}

#[test]
fn parameters_of_the_content_type_do_not_matter() {
    check_content_type("application/vnd.kubernetes.protobuf;stream=watch").expect("protobuf");
}

#[test]
fn what_is_no_protobuf_is_refused_by_its_content_type() {
    for content_type in [
        "",
        "text/html",
        "application/json",
        "application/yaml",
        "application/cbor",
        "APPLICATION",
    ] {
        let refusal = check_content_type(content_type).expect_err(content_type);
        assert_eq!(
            refusal.to_string(),
            format!("the answer is {content_type:?}, not application/vnd.kubernetes.protobuf")
        );
    }
    for other in [b"{\"kind\":\"LeaseList\"}".as_slice(), b"k8s", b""] {
        assert!(
            matches!(leases(other), Err(DecodeError::Magic)),
            "{other:?}"
        );
    }
}

#[test]
fn another_kind_is_no_list_of_leases() {
    let found = |body: &[u8]| match leases(body) {
        Err(DecodeError::Kind {
            expected: "LeaseList",
            found,
        }) => found,
        other => panic!("{other:?}"),
    };
    let list = [list_meta("7", "")];
    assert_eq!(found(&body("NodeList", &list)), "NodeList");
    assert_eq!(
        found(&body(&"x".repeat(1000), &list)).len(),
        80,
        "nothing endless gets into a log"
    );
    let without_kind = [MAGIC, &message(2, &list)].concat();
    assert_eq!(found(&without_kind), "");
    let kind_behind = [&without_kind, &*message(1, &[text(2, "LeaseList")])].concat();
    assert_eq!(found(&kind_behind), "", "no API server writes it there");
    let another_behind = [body("LeaseList", &list), message(1, &[text(2, "PodList")])].concat();
    assert_eq!(found(&another_behind), "PodList");
}

#[test]
fn a_list_without_resource_version_is_no_answer_of_an_api_server() {
    let no_version = |result| matches!(result, Err(DecodeError::NoResourceVersion));
    assert!(no_version(lease_list(&[])));
    assert!(no_version(lease_list(&[list_meta("", "")])));
    assert!(no_version(lease_list(&[
        list_meta("7", ""),
        message(1, &[text(2, "")])
    ])));
}

#[test]
fn metadata_counts_wherever_it_comes_and_as_it_comes_last() {
    let page = lease_list(&[
        list_meta("7", "early"),
        lease("a", None, None),
        message(1, &[text(3, "late")]),
    ]);
    let (items, next) = page.expect("a page");
    assert_eq!((items.len(), next.as_deref()), (1, Some("late")));
}

#[test]
fn a_body_with_two_lists_is_an_error() {
    let list = message(2, &[list_meta("7", ""), lease("a", None, None)]);
    for second in [list.clone(), message(2, &[])] {
        let twice = [MAGIC, &message(1, &[text(2, "LeaseList")]), &list, &second].concat();
        assert!(matches!(
            leases(&twice),
            Err(DecodeError::Protobuf(ProtobufError::Repeated))
        ));
    }
}

#[test]
fn an_answer_that_was_cut_anywhere_is_never_a_list() {
    let whole = body(
        "LeaseList",
        &[
            list_meta("7", ""),
            lease("a", Some(40), Some((1_700_000_000, 5000))),
        ],
    );
    // The last four bytes are the two empty fields behind the object.
    for length in 0..whole.len() - 4 {
        assert!(
            leases(&whole[..length]).is_err(),
            "{length} of {} bytes",
            whole.len()
        );
    }
}

#[test]
fn a_length_beyond_the_body_is_an_error_and_no_allocation() {
    // The second one ends where numbers end.
    for length in [u64::MAX, u64::MAX - 11, u64::MAX >> 1, 1 << 40] {
        let beyond =
            |field: u64| [encoded::varint(field << 3 | 2), encoded::varint(length)].concat();
        let list = [MAGIC, &message(1, &[text(2, "LeaseList")]), &beyond(2)].concat();
        for huge in [
            [MAGIC, &beyond(2)].concat(),
            [MAGIC, &beyond(9)].concat(),
            list.clone(),
            [&*list, &beyond(2)].concat(),
            [&*list, &beyond(2), &beyond(1), &beyond(1)].concat(),
        ] {
            let mut refused = None;
            let info = allocation_counter::measure(|| refused = Some(lease_page([&*huge]).err()));
            assert!(refused.flatten().is_some(), "{huge:?}");
            assert!(info.bytes_max < 1000, "{info:?}");
        }
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let unknown = [
        number(90, -5),
        text(91, "new"),
        message(92, &[text(1, "deep")]),
        number(300, 1),
        vec![0xe9, 0x05, 1, 2, 3, 4, 5, 6, 7, 8],
        vec![0xed, 0x05, 1, 2, 3, 4],
    ]
    .concat();
    let lease = message(
        2,
        &[
            unknown.clone(),
            message(1, &[unknown.clone(), text(1, "a"), unknown.clone()]),
            message(2, &[unknown.clone(), number(2, 40)]),
        ],
    );
    assert_eq!(
        lease_items(&[unknown, list_meta("7", ""), lease]),
        [ReadLease {
            name: "a".to_owned(),
            renew_time: None,
            duration_seconds: Some(40)
        }]
    );
}

#[test]
fn a_lease_without_spec_has_no_renew_time() {
    let without_spec = message(2, &[message(1, &[text(1, "a")])]);
    let bare = ReadLease {
        name: "a".to_owned(),
        renew_time: None,
        duration_seconds: None,
    };
    let after_another = [
        list_meta("7", ""),
        lease("before", Some(40), Some((7, 0))),
        without_spec,
    ];
    assert_eq!(lease_items(&after_another)[1], bare);
}

#[test]
fn a_stamp_beyond_any_calendar_is_an_error_that_names_its_lease() {
    for (seconds, nanos) in [
        (i64::MAX, 0),
        (i64::MIN, 0),
        (0, -1),
        (0, 2_000_000_000),
        (0, i64::from(i32::MIN)),
    ] {
        let page = lease_list(&[
            list_meta("7", ""),
            lease("odd", Some(40), Some((seconds, nanos))),
        ]);
        assert!(
            matches!(&page, Err(DecodeError::RenewTime(name)) if name == "odd"),
            "{seconds} s {nanos} ns: {page:?}"
        );
    }
}

#[test]
fn a_wrong_wire_type_in_protobuf_is_an_error() {
    for wrong in [
        number(2, 5),
        message(2, &[text(1, "\u{ff}"), field(2, &[0xff])]),
        lease_with(&[text(2, "40")]),
        lease_with(&[number(4, 40)]),
    ] {
        assert!(lease_list(&[list_meta("7", ""), wrong]).is_err());
    }
}

#[test]
fn an_empty_stamp_is_how_go_writes_its_zero_time_and_stands_for_none() {
    let renewed = |stamp: &[Vec<u8>]| {
        let lease = lease_with(&[message(4, stamp)]);
        lease_items(&[list_meta("7", ""), lease])[0].renew_time
    };
    assert_eq!(renewed(&[]), None);
    for begin in [vec![number(1, 0), number(2, 0)], vec![number(90, 0)]] {
        assert_eq!(renewed(&begin), Some(DateTime::UNIX_EPOCH));
    }
}

#[test]
fn messages_and_fields_that_come_twice_are_merged_and_the_last_one_counts() {
    let spec = |parts: &[Vec<u8>]| message(2, parts);
    let lease = message(
        2,
        &[
            message(1, &[text(1, "first"), text(1, "last")]),
            spec(&[number(2, 40), message(4, &[number(1, 5), number(2, 6)])]),
            spec(&[message(4, &[number(1, 7)])]),
        ],
    );
    let merged = ReadLease {
        name: "last".to_owned(),
        renew_time: DateTime::from_timestamp(7, 6),
        duration_seconds: Some(40),
    };
    assert_eq!(lease_items(&[list_meta("7", ""), lease]), [merged]);
}

#[test]
fn keys_and_numbers_that_protobuf_does_not_know_are_an_error() {
    let broken = |bytes: &[u8]| match lease_list(&[list_meta("7", ""), bytes.to_vec()]) {
        Err(DecodeError::Protobuf(broken)) => broken,
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(&[0x00, 0x01]), ProtobufError::Key, "field 0");
    assert_eq!(broken(&[0x1b, 0x1c]), ProtobufError::Key, "a group");
    assert_eq!(broken(&[0x1e, 0x00]), ProtobufError::Key, "wire type 6");
    assert_eq!(
        broken(&[0xf8, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00]),
        ProtobufError::Key,
        "a field number of 33 bits"
    );
    assert_eq!(
        broken(&[&[0x18], [0xff; 10].as_slice(), &[0x01]].concat()),
        ProtobufError::Number,
        "11 bytes"
    );
    assert_eq!(
        broken(&[&[0x18], [0xff; 9].as_slice(), &[0x02]].concat()),
        ProtobufError::Number,
        "65 bits"
    );
    assert_eq!(broken(&[0x18, 0xff]), ProtobufError::Cut);
    assert_eq!(broken(&[0x1d, 1, 2, 3]), ProtobufError::Cut);
    let whole = [&[0x18], [0xff; 9].as_slice(), &[0x01]].concat();
    assert!(lease_list(&[list_meta("7", ""), whole]).is_ok(), "64 bits");
}

#[test]
fn a_text_that_matters_and_is_not_utf8_is_an_error() {
    let lease = message(2, &[message(1, &[field(1, &[0xff])])]);
    assert!(matches!(
        lease_list(&[list_meta("7", ""), lease]),
        Err(DecodeError::Protobuf(ProtobufError::Text))
    ));
}

#[test]
fn a_name_longer_than_any_is_an_error() {
    let named = |length: usize| {
        let lease = lease(&"x".repeat(length), None, None);
        lease_list(&[list_meta("7", ""), lease])
    };
    assert!(named(1024).is_ok());
    assert!(matches!(named(1025), Err(DecodeError::LongText)));
}

#[test]
fn no_error_repeats_more_than_a_little_of_an_answer() {
    let long = "x".repeat(1024);
    let stamp = message(
        2,
        &[
            message(1, &[text(1, &long)]),
            message(2, &[message(4, &[number(1, i64::MAX)])]),
        ],
    );
    let errors = [
        lease_list(&[list_meta("7", ""), stamp]).expect_err("no stamp"),
        leases(&body(&long, &[])).expect_err("no LeaseList"),
        lease_list(&[text(2, &long)]).expect_err("no lease"),
        check_content_type(&long.repeat(100)).expect_err("no format"),
    ];
    for error in errors {
        let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
            error.source()
        });
        let said: String = chain.map(|error| format!("{error} {error:?} ")).collect();
        assert!(said.len() < 500, "{} bytes: {}", said.len(), &said[..500]);
    }
}

#[test]
fn a_list_of_more_items_than_any_cluster_has_is_refused_before_it_grows() {
    let list = |count: usize| [list_meta("7", ""), message(2, &[]).repeat(count)];
    assert_eq!(lease_items(&list(20_000)).len(), 20_000);
    assert!(matches!(
        lease_list(&list(20_001)),
        Err(DecodeError::TooManyItems)
    ));
    assert!(matches!(
        nodes(&body("NodeList", &list(20_001))),
        Err(DecodeError::TooManyItems)
    ));
}

/// Reads the same page again and again, until that is refused; the pages that were taken.
fn again<L: ItemList>(page: &[u8]) -> (usize, L, DecodeError) {
    let mut list = L::default();
    for taken in 0.. {
        match pieces(&list, [page]) {
            Ok(page) => list.append(page.items),
            Err(refusal) => return (taken, list, refusal),
        }
    }
    unreachable!("a list is bounded")
}

#[test]
fn the_items_of_all_pages_count_together() {
    let items = [list_meta("7", "more"), message(2, &[]).repeat(10_000)];
    let (pages, list, refusal) = again::<LeaseList>(&body("LeaseList", &items));
    assert!(matches!(refusal, DecodeError::TooManyItems), "{refusal}");
    assert_eq!((pages, list.len()), (2, 20_000));
    let (pages, list, refusal) = again::<NodeList>(&body("NodeList", &items));
    assert!(matches!(refusal, DecodeError::TooManyItems), "{refusal}");
    assert_eq!((pages, list.nodes.len()), (2, 20_000));
}

#[test]
fn what_is_kept_of_all_pages_is_bounded() {
    let named = message(2, &[message(1, &[text(1, &"x".repeat(1000))])]);
    let items = [list_meta("7", "more"), named.repeat(400)];
    let (pages, _, refusal) = again::<LeaseList>(&body("LeaseList", &items));
    assert!(matches!(refusal, DecodeError::TooMuch), "{refusal}");
    assert_eq!(pages, 2, "800 kB");
    let (pages, _, refusal) = again::<NodeList>(&body("NodeList", &items));
    assert!(matches!(refusal, DecodeError::TooMuch), "{refusal}");
    assert_eq!(pages, 2, "the same, with the records themselves");
}

#[test]
fn two_attempts_at_a_page_share_what_may_be_kept() {
    let named = message(2, &[message(1, &[text(1, &"x".repeat(1000))])]);
    let list = body("LeaseList", &[list_meta("7", ""), named.repeat(600)]);
    let room = ListRoom::after(&LeaseList::default());
    let mut readers = [0, 0].map(|expected| ListReader::<LeaseList>::new(expected, &room));
    let [first, second] = &mut readers;
    first.feed(&list).expect("600 kB");
    assert!(matches!(second.feed(&list), Err(DecodeError::TooMuch)));
}

#[test]
fn of_any_number_of_conditions_as_many_are_kept_as_an_honest_node_has() {
    let long = "x".repeat(2000);
    let condition = |kind: &str, status: &str, reason: &str| {
        message(4, &[text(1, kind), text(2, status), text(5, reason)])
    };
    let conditions = [
        condition("A", "False", ""),
        condition("B", &long, ""),
        condition("C", "True", &long),
    ];
    let status = message(3, &[conditions.concat().repeat(1000)]);
    let list = body("NodeList", &[list_meta("7", ""), message(2, &[status])]);
    let (items, _) = nodes(&list).expect("a page");
    let kept: Vec<_> = items[0]
        .traits
        .conditions
        .iter()
        .map(|condition| (condition.kind.as_str(), condition.reason.as_str()))
        .collect();
    assert_eq!(kept, [("C", ""); 64]);
}

#[test]
fn labels_and_annotations_of_any_size_are_skipped() {
    let long = "x".repeat(300_000);
    let metadata = message(
        1,
        &[
            text(1, "n"),
            entry(11, &long, "a"),
            entry(11, "worker.gardener.cloud/pool", "w1"),
            entry(
                12,
                "kubectl.kubernetes.io/last-applied-configuration",
                &long,
            ),
            entry(12, &long, ""),
        ],
    );
    let list = body("NodeList", &[list_meta("7", ""), message(2, &[metadata])]);
    let mut read = None;
    let info = allocation_counter::measure(|| read = Some(node_page(list.chunks(1000))));
    let (items, _) = read.expect("a result").expect("a page");
    assert_eq!(items[0].traits.pool.as_deref(), Some("w1"));
    assert!(!items[0].traits.not_managed_by_mcm);
    assert!(info.bytes_max < 3000, "{info:?}");
}

#[test]
fn a_lease_that_was_made_again_is_distinguished_from_the_one_before_it() {
    let uid = |uid: &str| {
        let lease = message(2, &[message(1, &[text(1, "a"), text(5, uid)])]);
        let list = body("LeaseList", &[list_meta("7", ""), lease]);
        let page = pieces(&LeaseList::default(), [&*list]).expect("a page");
        page.items.iter().next().expect("a lease").uid
    };
    assert_eq!(uid("first"), LeaseUid::from("first"));
    assert_ne!(uid("first"), uid("second"));
}

/// A list that is damaged in a few places, and the lengths of the pieces in which it comes.
fn damaged_in_pieces(kind: &'static str) -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let whole = body(
        kind,
        &[
            list_meta("7", "more"),
            lease("a", Some(40), Some((1_700_000_000, 5000))),
            node(),
            lease(&"b".repeat(200), Some(-1), None),
            list_meta("8", ""),
        ],
    );
    let damages = proptest::collection::vec((0..whole.len(), any::<u8>()), 0..3);
    let damaged = damages.prop_map(move |damages| {
        let mut body = whole.clone();
        damages
            .into_iter()
            .for_each(|(place, byte)| body[place] = byte);
        body
    });
    (damaged, proptest::collection::vec(0..40_usize, 0..60))
}

/// The pieces of these lengths, and the rest.
fn cut<'a>(body: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = body;
    let mut pieces: Vec<_> = lengths
        .iter()
        .map(|length| {
            rest.split_off(..(*length).min(rest.len()))
                .expect("a piece")
        })
        .collect();
    pieces.push(rest);
    pieces
}

proptest! {
    #[test]
    fn in_whatever_pieces_a_list_comes_it_is_read_alike(
        (leases, lengths) in damaged_in_pieces("LeaseList"),
        (nodes, other_lengths) in damaged_in_pieces("NodeList"),
    ) {
        let [whole, in_pieces] = [vec![&*leases], cut(&leases, &lengths)].map(lease_page);
        prop_assert_eq!(format!("{whole:?}"), format!("{in_pieces:?}"));
        let [whole, in_pieces] = [vec![&*nodes], cut(&nodes, &other_lengths)].map(node_page);
        prop_assert_eq!(format!("{whole:?}"), format!("{in_pieces:?}"));
    }
}
