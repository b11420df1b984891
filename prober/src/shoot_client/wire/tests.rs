//! That lists are read as Go's own decoder reads them, whole, in pieces and damaged, random lists
//! show (`kind-tests/readers`).

use std::sync::Arc;

use api_server::protobuf::wire::{self as encoded, bytes as field, entry, message, number, text};
use prober_core::lease::{LeaseList, LeaseUid};
use prober_core::verdict::{NodeCondition, NodeTraits};

use super::*;

/// Fields in words: `1:5` is a number, `1'a'` a text, `1{...}` a message.
fn wire(words: &str) -> Vec<u8> {
    let (mut left, mut fields) = (words.trim_start(), Vec::new());
    while let Some(at) = left.find([':', '\'', '{']) {
        let (of, rest) = (left[..at].parse().expect("a field"), &left[at + 1..]);
        let mut depth = 0;
        let (end, begin) = match &left[at..=at] {
            ":" => (rest.find(' '), ':'),
            "'" => (rest.find('\''), '\''),
            _ => {
                let ends = |letter: char| {
                    depth += i32::from(letter == '{') - i32::from(letter == '}');
                    depth < 0
                };
                (rest.find(ends), '{')
            }
        };
        let end = end.unwrap_or(rest.len());
        let content = &rest[..end];
        fields.extend(match begin {
            ':' => number(of, content.parse().expect("a number")),
            '\'' => text(of, content),
            _ => field(of, &wire(content)),
        });
        left = rest.get(end + 1..).unwrap_or_default().trim_start();
    }
    fields
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

/// A page of leases in words: name, duration and nanoseconds from 1970 to the last renewal of each;
/// and the token of the next page.
fn lease_page<'a>(
    body: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(String, Option<String>), DecodeError> {
    let Page { items, next } = pieces(&LeaseList::default(), body)?;
    let items = items.iter().map(|lease| {
        let renewed = lease.renew_time.and_then(|at| at.timestamp_nanos_opt());
        let numbers = [lease.duration_seconds.map(i64::from), renewed];
        let numbers = numbers.map(|number| number.map_or("-".to_owned(), |it| it.to_string()));
        format!("{} {}", lease.name, numbers.join(" "))
    });
    Ok((items.collect::<Vec<_>>().join(", "), next))
}

/// Reads a list of leases in one piece and byte by byte.
fn leases(body: &[u8]) -> Result<(String, Option<String>), DecodeError> {
    let whole = lease_page([body]);
    let in_bytes = lease_page(body.chunks(1));
    assert_eq!(format!("{whole:?}"), format!("{in_bytes:?}"));
    whole
}

/// A whole body.
fn body(kind: &str, object: &[u8]) -> Vec<u8> {
    encoded::envelope("v1", kind, object)
}

/// ListMeta with resourceVersion (2).
const META: &str = "1{2'7'} ";

#[test]
fn however_a_lease_is_written_what_matters_is_read() {
    // What nobody knows here, with fields of four and eight bytes.
    let unknown = [
        wire("90:-5 91'new' 92{1'deep'} 300:1"),
        vec![0xe9, 0x05, 1, 2, 3, 4, 5, 6, 7, 8],
        vec![0xed, 0x05, 1, 2, 3, 4],
    ]
    .concat();
    let metadata = message(1, &[unknown.clone(), text(1, "a"), unknown.clone()]);
    let spec = message(2, &[unknown.clone(), number(2, 40)]);
    let known = message(2, &[unknown.clone(), metadata, spec]);
    // A Lease has metadata (name 1, namespace 3) and spec (holder 1, duration 2, acquireTime 3,
    // renewTime 4, transitions 5).
    for (written, expected) in [
        (vec![], ""),
        (
            wire(
                "2{1{1'a' 3'kube-node-lease' 7:3} 2{1'a' 2:40 3{1:1} 4{1:1772366407 2:123456000} 5:1}}",
            ),
            "a 40 1772366407123456000",
        ),
        // Nothing is left of the one before.
        (
            wire("2{1{1'b'} 2{2:-1 4{1:-1}}} 2{1{1'c'}}"),
            "b -1 -1000000000, c - -",
        ),
        // Go's zero time is empty and stands for none.
        (
            wire("2{1{1'a'} 2{4{}}} 2{1{1'a'} 2{4{1:0 2:0}}} 2{1{1'a'} 2{4{90:0}}}"),
            "a - -, a - 0, a - 0",
        ),
        // What comes twice is merged, and the last one counts.
        (
            wire("2{1{1'first' 1'last'} 2{2:40 4{1:5 2:6}} 2{4{1:7}}}"),
            "last 40 7000000006",
        ),
        ([unknown, known].concat(), "a 40 -"),
        // A number of 64 bits.
        ([&[0x18], [0xff; 9].as_slice(), &[0x01]].concat(), ""),
    ] {
        let list = [
            wire("1{1'' 2'7' 3'early' 4:3}"),
            written,
            wire("1{3'late'}"),
        ]
        .concat();
        let (items, next) = leases(&body("LeaseList", &list)).expect("a page");
        assert_eq!((&*items, next.as_deref()), (expected, Some("late")));
    }
    let list = body(
        "LeaseList",
        &wire("1{2'7'} 2{1{1'a' 5'first'}} 2{1{1'a' 5'second'}}"),
    );
    let page = pieces(&LeaseList::default(), [&*list]).expect("a page");
    let uids: Vec<_> = page.items.iter().map(|lease| lease.uid).collect();
    assert!(uids == ["first", "second"].map(LeaseUid::from) && uids[0] != uids[1]);
}

#[test]
fn of_a_node_what_makes_it_count_is_read_and_kept_once() {
    // A Node has metadata (name 1, labels 11, annotations 12), spec (2) and status (3) whose
    // conditions (4) have type 1, status 2, lastHeartbeatTime 3, reason 5 and message 6. Of what is
    // not known any amount is skipped.
    let long = "x".repeat(300_000);
    let metadata = [
        text(1, "n1"),
        entry(11, &long, "a"),
        entry(11, "worker.gardener.cloud/pool", "w1"),
        entry(11, "topology.kubernetes.io/zone", "a"),
        entry(
            12,
            "kubectl.kubernetes.io/last-applied-configuration",
            &long,
        ),
        entry(12, "node.machine.sapcloud.io/not-managed-by-mcm", ""),
    ];
    let status =
        wire("3{1{1'cpu' 2{1'4'}} 4{1'InPlaceUpdate' 2'True' 3{1:5} 5'UpdateFailed' 6'long'}}");
    let node = message(
        2,
        &[message(1, &metadata), wire("2{3'local:///n1'}"), status],
    );
    let list = [wire(META), node.clone(), wire("2{1{1'n2'}}"), node].concat();
    let list = body("NodeList", &list);
    let mut read = None;
    let in_pieces = || read = Some(pieces(&NodeList::default(), list.chunks(1000)));
    let info = allocation_counter::measure(in_pieces);
    let nodes = read.expect("a result").expect("a page").items.nodes;
    let traits = NodeTraits {
        pool: Some("w1".to_owned()),
        zone: Some("a".to_owned()),
        not_managed_by_mcm: true,
        conditions: vec![NodeCondition {
            kind: "InPlaceUpdate".to_owned(),
            status: "True".to_owned(),
            reason: "UpdateFailed".to_owned(),
        }],
    };
    assert_eq!((&*nodes[0].name, &*nodes[0].traits), ("n1", &traits));
    assert_eq!(
        (&*nodes[1].name, &*nodes[1].traits),
        ("n2", &NodeTraits::default())
    );
    assert!(Arc::ptr_eq(&nodes[0].traits, &nodes[2].traits));
    assert!(info.bytes_max < 4000, "{info:?}");
}

#[test]
fn what_is_no_protobuf_is_refused_by_its_content_type() {
    let room = ListRoom::after(&LeaseList::default());
    let check = |content_type: &str| {
        let reader = ListReader::<LeaseList>::new(0, &room);
        reader
            .check_content_type(content_type)
            .map_err(|error| error.to_string())
    };
    check("application/vnd.kubernetes.protobuf;stream=watch").expect("protobuf");
    for content_type in ["", "text/html", "application/json", "APPLICATION"] {
        let refusal =
            format!("the answer is {content_type:?}, not application/vnd.kubernetes.protobuf");
        assert_eq!(check(content_type), Err(refusal));
    }
    let long = check(&"x".repeat(100_000)).expect_err("no format");
    assert!(long.len() < 500, "{long}");
}

#[test]
fn what_is_no_list_of_leases_is_an_error_that_says_why() {
    let long = "x".repeat(1025);
    let whole = body("LeaseList", &wire(META));
    let no_kind = [MAGIC, &*wire("2{1{2'7'}}")].concat();
    let of_kind = |found: &str| format!("Kind {{ expected: \"LeaseList\", found: {found:?} }}");
    let bodies = [
        (b"{\"kind\":\"LeaseList\"}".to_vec(), "Magic".to_owned()),
        (b"k8s".to_vec(), "Magic".to_owned()),
        (body("NodeList", &wire(META)), of_kind("NodeList")),
        (body(&long[..1000], &wire(META)), of_kind(&long[..80])),
        (no_kind.clone(), of_kind("")),
        // No API server writes it there.
        ([no_kind, wire("1{2'LeaseList'}")].concat(), of_kind("")),
        (
            [whole.clone(), wire("1{2'PodList'}")].concat(),
            of_kind("PodList"),
        ),
        (
            [whole.clone(), wire("2{1{2'7'}}")].concat(),
            "Protobuf(Repeated)".to_owned(),
        ),
        (
            [whole.clone(), wire("2{}")].concat(),
            "Protobuf(Repeated)".to_owned(),
        ),
    ];
    let odd = |stamp: &str| wire(&format!("2{{1{{1'odd'}} 2{{4{{{stamp}}}}}}}"));
    let named = |name: &str| wire(&format!("2{{1{{1'{name}'}}}}"));
    let lists = [
        (odd("1:9223372036854775807"), "RenewTime(\"odd\")"),
        (odd("1:-9223372036854775808"), "RenewTime(\"odd\")"),
        (odd("1:0 2:-1"), "RenewTime(\"odd\")"),
        (odd("1:0 2:2000000000"), "RenewTime(\"odd\")"),
        (odd("1:0 2:-2147483648"), "RenewTime(\"odd\")"),
        (named(&long), "LongText"),
        (wire("2{}").repeat(20_001), "TooManyItems"),
        (wire("1{2''}"), "NoResourceVersion"),
        (wire("2:5"), "Protobuf(WireType)"),
        (wire("2{2{2'40'}}"), "Protobuf(WireType)"),
        (wire("2{2{4:40}}"), "Protobuf(WireType)"),
        (
            message(2, &[message(1, &[field(1, &[0xff])])]),
            "Protobuf(Text)",
        ),
        // Field 0, a group, wire type 6, a field number of 33 bits.
        (vec![0x00, 0x01], "Protobuf(Key)"),
        (vec![0x1b, 0x1c], "Protobuf(Key)"),
        (vec![0x1e, 0x00], "Protobuf(Key)"),
        (
            vec![0xf8, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00],
            "Protobuf(Key)",
        ),
        // 11 bytes, and 65 bits.
        (
            [&[0x18], &[0xff; 10][..], &[0x01]].concat(),
            "Protobuf(Number)",
        ),
        (
            [&[0x18], &[0xff; 9][..], &[0x02]].concat(),
            "Protobuf(Number)",
        ),
        (vec![0x18, 0xff], "Protobuf(Cut)"),
        (vec![0x1d, 1, 2, 3], "Protobuf(Cut)"),
    ];
    let lists = lists.map(|(fields, error)| {
        let list = [wire(META), fields].concat();
        (body("LeaseList", &list), error.to_owned())
    });
    for (body, expected) in bodies.into_iter().chain(lists) {
        let error = format!("{:?}", leases(&body).expect_err(&expected));
        assert_eq!(error, expected);
    }
    leases(&body("LeaseList", &[])).expect_err("no version");
    let most = [wire(META), named(&long[1..]), wire("2{}").repeat(19_999)].concat();
    leases(&body("LeaseList", &most)).expect("a page");
    // The last four bytes are the two empty fields behind the object.
    for length in 0..whole.len() - 4 {
        leases(&whole[..length]).expect_err("it is cut off");
    }
}

#[test]
fn a_length_beyond_the_body_is_an_error_and_no_allocation() {
    // The second one ends where numbers end.
    for length in [u64::MAX, u64::MAX - 11, u64::MAX >> 1, 1 << 40] {
        let beyond =
            |field: u64| [encoded::varint(field << 3 | 2), encoded::varint(length)].concat();
        let list = [MAGIC, &wire("1{2'LeaseList'}"), &beyond(2)].concat();
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
fn two_attempts_at_a_page_share_what_may_be_kept() {
    let named = message(2, &[message(1, &[text(1, &"x".repeat(1000))])]);
    let list = body("LeaseList", &[wire(META), named.repeat(600)].concat());
    let room = ListRoom::after(&LeaseList::default());
    let mut readers = [0, 0].map(|expected| ListReader::<LeaseList>::new(expected, &room));
    let [first, second] = &mut readers;
    first.feed(&list).expect("600 kB");
    assert!(matches!(second.feed(&list), Err(DecodeError::TooMuch)));
}
