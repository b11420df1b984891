use std::sync::Arc;

use api_server::protobuf::wire::{self as encoded, bytes as field, entry, message, number, text};
use chrono::DateTime;
use prober_core::lease::{LeaseList, LeaseRecord, LeaseUid};
use prober_core::verdict::{NodeCondition, NodeRecord, NodeTraits};

use super::*;

/// What was read of a page: its items and the token of the next.
type ReadPage<T> = (Vec<T>, Option<String>);

#[derive(Clone, Debug, PartialEq)]
struct ReadLease {
    name: String,
    uid: LeaseUid,
    renew_time: Option<DateTime<chrono::Utc>>,
    duration_seconds: Option<i32>,
}

impl ReadLease {
    /// With this last renewal, in seconds and nanoseconds since 1970.
    fn new(name: &str, duration_seconds: Option<i32>, renewed: Option<(i64, u32)>) -> Self {
        let stamp = |(seconds, nanos)| DateTime::from_timestamp(seconds, nanos);
        Self {
            name: name.to_owned(),
            uid: LeaseUid::default(),
            renew_time: renewed.and_then(stamp),
            duration_seconds,
        }
    }
}

impl From<LeaseRecord<'_>> for ReadLease {
    fn from(lease: LeaseRecord<'_>) -> Self {
        Self {
            name: lease.name.to_owned(),
            uid: lease.uid,
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
        &[text(1, name), text(3, "kube-node-lease"), number(7, 3)],
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
fn however_a_lease_is_written_what_matters_is_read() {
    let unknown = [
        number(90, -5),
        text(91, "new"),
        message(92, &[text(1, "deep")]),
        number(300, 1),
        vec![0xe9, 0x05, 1, 2, 3, 4, 5, 6, 7, 8],
        vec![0xed, 0x05, 1, 2, 3, 4],
    ]
    .concat();
    let name = |name: &str| message(1, &[text(1, name)]);
    let stamped = |stamp: &[Vec<u8>]| lease_with(&[message(4, stamp)]);
    let read = ReadLease::new;
    let of_uid = |uid: &str| message(2, &[message(1, &[text(1, "a"), text(5, uid)])]);
    let with_uid = |uid: &str| ReadLease {
        uid: uid.into(),
        ..read("a", None, None)
    };
    assert_ne!(with_uid("first"), with_uid("second"));
    for (written, expected) in [
        (vec![], vec![]),
        (
            vec![
                lease("a", Some(40), Some((1_772_366_407, 123_456_000))),
                lease("b", None, None),
                lease("c", Some(-1), Some((-1, 0))),
                // Nothing is left of the one before.
                message(2, &[name("d")]),
            ],
            vec![
                read("a", Some(40), Some((1_772_366_407, 123_456_000))),
                read("b", None, None),
                read("c", Some(-1), Some((-1, 0))),
                read("d", None, None),
            ],
        ),
        (
            vec![of_uid("first"), of_uid("second")],
            vec![with_uid("first"), with_uid("second")],
        ),
        // Go's zero time is empty and stands for none.
        (
            vec![
                stamped(&[]),
                stamped(&[number(1, 0), number(2, 0)]),
                stamped(&[number(90, 0)]),
            ],
            vec![
                read("a", None, None),
                read("a", None, Some((0, 0))),
                read("a", None, Some((0, 0))),
            ],
        ),
        // What comes twice is merged, and the last one counts.
        (
            vec![message(
                2,
                &[
                    message(1, &[text(1, "first"), text(1, "last")]),
                    message(
                        2,
                        &[number(2, 40), message(4, &[number(1, 5), number(2, 6)])],
                    ),
                    message(2, &[message(4, &[number(1, 7)])]),
                ],
            )],
            vec![read("last", Some(40), Some((7, 6)))],
        ),
        (
            vec![
                unknown.clone(),
                message(
                    2,
                    &[
                        unknown.clone(),
                        message(1, &[unknown.clone(), text(1, "a"), unknown.clone()]),
                        message(2, &[unknown, number(2, 40)]),
                    ],
                ),
            ],
            vec![read("a", Some(40), None)],
        ),
        // A number of 64 bits.
        (
            vec![[&[0x18], [0xff; 9].as_slice(), &[0x01]].concat()],
            vec![],
        ),
    ] {
        let list = [
            list_meta("7", "early"),
            written.concat(),
            message(1, &[text(3, "late")]),
        ];
        let (items, next) = lease_list(&list).expect("a page");
        assert_eq!((items, next.as_deref()), (expected, Some("late")));
    }
}

#[test]
fn the_bytes_of_a_real_answer_are_understood() {
    // Written out by hand: magic; Unknown{1: TypeMeta{1: "v1", 2: "LeaseList"}, 2: raw}; raw =
    // LeaseList{1: ListMeta{2: "7"}, 2: Lease{1: ObjectMeta{1: "n"}, 2: LeaseSpec{2: 40, 4: {1:
    // 1700000000, 2: 5000}}}}.
    let golden = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09LeaseList\x12\x1b\x0a\x03\x12\x017\x12\x14\x0a\x03\x0a\x01n\x12\x0d\x10\x28\x22\x09\x08\x80\xe2\xcf\xaa\x06\x10\x88\x27";
    let lease = ReadLease::new("n", Some(40), Some((1_700_000_000, 5000)));
    assert_eq!(leases(golden).expect("a page"), (vec![lease], None));
}

#[test]
fn of_a_node_what_makes_it_count_is_read_and_kept_once() {
    let bare = message(2, &[message(1, &[text(1, "n2")])]);
    let list = body("NodeList", &[list_meta("7", ""), node(), bare, node()]);
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
    let first = NodeRecord::new("n1", traits);
    let second = NodeRecord::new("n2", NodeTraits::default());
    assert_eq!(items, [first.clone(), second, first]);
    assert_eq!(next, None);
    assert!(Arc::ptr_eq(&items[0].traits, &items[2].traits));
}

fn check_content_type(content_type: &str) -> Result<(), DecodeError> {
    let room = ListRoom::after(&LeaseList::default());
    ListReader::<LeaseList>::new(0, &room).check_content_type(content_type)
}

#[test]
fn what_is_no_protobuf_is_refused_by_its_content_type() {
    check_content_type("application/vnd.kubernetes.protobuf;stream=watch").expect("protobuf");
    for content_type in ["", "text/html", "application/json", "APPLICATION"] {
        let refusal = check_content_type(content_type).expect_err(content_type);
        let expected = "not application/vnd.kubernetes.protobuf";
        assert_eq!(
            refusal.to_string(),
            format!("the answer is {content_type:?}, {expected}")
        );
    }
}

#[test]
fn what_is_no_list_of_leases_is_an_error_that_says_why() {
    let meta = || list_meta("7", "");
    let whole = body("LeaseList", &[meta()]);
    let kind = |kind: &str| message(1, &[text(2, kind)]);
    let list = message(2, &[meta(), lease("a", None, None)]);
    let no_kind = [MAGIC, &*list].concat();
    let long = "x".repeat(1025);
    let odd = |seconds, nanos| lease("odd", None, Some((seconds, nanos)));
    let raw = |bytes: &[&[u8]]| bytes.concat();
    let of_kind = |found: &str| format!("Kind {{ expected: \"LeaseList\", found: {found:?} }}");
    let bodies = [
        (b"{\"kind\":\"LeaseList\"}".to_vec(), "Magic".to_owned()),
        (b"k8s".to_vec(), "Magic".to_owned()),
        (body("NodeList", &[meta()]), of_kind("NodeList")),
        (body(&long[..1000], &[meta()]), of_kind(&long[..80])),
        (no_kind.clone(), of_kind("")),
        // No API server writes it there.
        ([no_kind, kind("LeaseList")].concat(), of_kind("")),
        (
            [whole.clone(), kind("PodList")].concat(),
            of_kind("PodList"),
        ),
        (
            [whole.clone(), list].concat(),
            "Protobuf(Repeated)".to_owned(),
        ),
        (
            [whole, message(2, &[])].concat(),
            "Protobuf(Repeated)".to_owned(),
        ),
    ];
    let lists = [
        (vec![], "NoResourceVersion"),
        (vec![list_meta("", "")], "NoResourceVersion"),
        (
            vec![meta(), message(1, &[text(2, "")])],
            "NoResourceVersion",
        ),
        (vec![meta(), odd(i64::MAX, 0)], "RenewTime(\"odd\")"),
        (vec![meta(), odd(i64::MIN, 0)], "RenewTime(\"odd\")"),
        (vec![meta(), odd(0, -1)], "RenewTime(\"odd\")"),
        (vec![meta(), odd(0, 2_000_000_000)], "RenewTime(\"odd\")"),
        (
            vec![meta(), odd(0, i64::from(i32::MIN))],
            "RenewTime(\"odd\")",
        ),
        (vec![meta(), lease(&long, None, None)], "LongText"),
        (vec![meta(), message(2, &[]).repeat(20_001)], "TooManyItems"),
        (vec![number(2, 5)], "Protobuf(WireType)"),
        (vec![lease_with(&[text(2, "40")])], "Protobuf(WireType)"),
        (vec![lease_with(&[number(4, 40)])], "Protobuf(WireType)"),
        (
            vec![message(2, &[message(1, &[field(1, &[0xff])])])],
            "Protobuf(Text)",
        ),
        // Field 0, a group, wire type 6, a field number of 33 bits.
        (vec![vec![0x00, 0x01]], "Protobuf(Key)"),
        (vec![vec![0x1b, 0x1c]], "Protobuf(Key)"),
        (vec![vec![0x1e, 0x00]], "Protobuf(Key)"),
        (
            vec![vec![0xf8, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00]],
            "Protobuf(Key)",
        ),
        // 11 bytes, and 65 bits.
        (
            vec![raw(&[&[0x18], &[0xff; 10], &[0x01]])],
            "Protobuf(Number)",
        ),
        (
            vec![raw(&[&[0x18], &[0xff; 9], &[0x02]])],
            "Protobuf(Number)",
        ),
        (vec![vec![0x18, 0xff]], "Protobuf(Cut)"),
        (vec![vec![0x1d, 1, 2, 3]], "Protobuf(Cut)"),
    ];
    let lists = lists.map(|(fields, error)| (body("LeaseList", &fields), error.to_owned()));
    for (body, expected) in bodies.into_iter().chain(lists) {
        let error = leases(&body).expect_err(&expected);
        assert_eq!(format!("{error:?}"), expected);
    }
    let most = [
        meta(),
        lease(&long[1..], None, None),
        message(2, &[]).repeat(19_999),
    ];
    assert_eq!(lease_list(&most).expect("a page").0.len(), 20_000);
}

#[test]
fn an_answer_that_was_cut_anywhere_is_never_a_list() {
    let renewed = lease("a", Some(40), Some((1_700_000_000, 5000)));
    let whole = body("LeaseList", &[list_meta("7", ""), renewed]);
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
fn no_error_repeats_more_than_a_little_of_an_answer() {
    let long = "x".repeat(1024);
    let metadata = message(1, &[text(1, &long)]);
    let spec = message(2, &[message(4, &[number(1, i64::MAX)])]);
    for error in [
        lease_list(&[list_meta("7", ""), message(2, &[metadata, spec])]).expect_err("no stamp"),
        leases(&body(&long, &[])).expect_err("no LeaseList"),
        lease_list(&[text(2, &long)]).expect_err("no lease"),
        check_content_type(&long.repeat(100)).expect_err("no format"),
    ] {
        let chain = common::transport::causes(&error);
        let said: String = chain.map(|error| format!("{error} {error:?} ")).collect();
        assert!(said.len() < 500, "{} bytes: {}", said.len(), &said[..500]);
    }
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
fn labels_and_annotations_of_any_size_are_skipped() {
    let long = "x".repeat(300_000);
    let metadata = [
        text(1, "n"),
        entry(11, &long, "a"),
        entry(11, "worker.gardener.cloud/pool", "w1"),
        entry(
            12,
            "kubectl.kubernetes.io/last-applied-configuration",
            &long,
        ),
        entry(12, &long, ""),
    ];
    let node = message(2, &[message(1, &metadata)]);
    let list = body("NodeList", &[list_meta("7", ""), node]);
    let mut read = None;
    let info = allocation_counter::measure(|| read = Some(node_page(list.chunks(1000))));
    let (items, _) = read.expect("a result").expect("a page");
    assert_eq!(items[0].traits.pool.as_deref(), Some("w1"));
    assert!(info.bytes_max < 3000, "{info:?}");
}
