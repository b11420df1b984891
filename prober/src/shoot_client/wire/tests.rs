//! That lists are read as Go's own decoder reads them, whole, in pieces and damaged, random lists
//! show (`kind-tests/readers`).

use std::sync::Arc;

use api_server::protobuf::wire::{self as encoded, bytes as field, number, text};
use prober_core::lease::{LeaseList, LeaseUid};
use prober_core::verdict::{NodeCondition, NodeTraits};

use super::*;

/// Fields in words: `1:5` is a number, `1'a'` a text, `1{...}` a message, `#1b1c` are bytes.
fn wire(words: &str) -> Vec<u8> {
    let (mut left, mut fields) = (words.trim_start(), Vec::new());
    while let Some(at) = left.find([':', '\'', '{', '#']) {
        let (of, begin, rest) = (&left[..at], &left[at..=at], &left[at + 1..]);
        let mut depth = 0;
        let end = match begin {
            "{" => rest.find(|letter: char| {
                depth += i32::from(letter == '{') - i32::from(letter == '}');
                depth < 0
            }),
            "'" => rest.find('\''),
            _ => rest.find(' '),
        };
        let end = end.unwrap_or(rest.len());
        let content = &rest[..end];
        let of = of.parse().unwrap_or_default();
        fields.extend(match begin {
            ":" => number(of, content.parse().expect(content)),
            "'" => text(of, content),
            "{" => field(of, &wire(content)),
            _ => {
                let bytes = content.as_bytes().chunks(2).map(std::str::from_utf8);
                let bytes = bytes.map(|hex| u8::from_str_radix(hex.expect(content), 16));
                bytes.collect::<Result<_, _>>().expect(content)
            }
        });
        left = rest.get(end + 1..).unwrap_or_default().trim_start();
    }
    fields
}

/// Reads a page in these pieces.
fn read<'a, L: ItemList>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Page<L>, DecodeError> {
    let room = ListRoom::after(&L::default());
    let mut reader = ListReader::new(0, &room);
    for piece in pieces {
        reader.feed(piece)?;
    }
    reader.finish()
}

/// A page of leases in words, read in one piece and byte by byte: name, duration and nanoseconds
/// from 1970 to the last renewal of each; and the token of the next page.
fn leases(body: &[u8]) -> Result<String, DecodeError> {
    let [whole, in_bytes] = [body.len().max(1), 1].map(|size| {
        let Page { items, next } = read::<LeaseList>(body.chunks(size))?;
        let items = items.iter().map(|lease| {
            let renewed = lease.renew_time.and_then(|at| at.timestamp_nanos_opt());
            let numbers = [lease.duration_seconds.map(i64::from), renewed];
            let [duration, renewed] =
                numbers.map(|number| number.map_or("-".to_owned(), |it| it.to_string()));
            format!("{} {duration} {renewed}", lease.name)
        });
        let next = next.map(|token| format!("then {token}"));
        Ok(items.chain(next).collect::<Vec<_>>().join(", "))
    });
    assert_eq!(format!("{whole:?}"), format!("{in_bytes:?}"));
    whole
}

/// A whole body: a list with its ListMeta, which has resourceVersion (2), and these fields.
fn list(kind: &str, fields: &[u8]) -> Vec<u8> {
    encoded::envelope("v1", kind, &[&wire("1{2'7'}"), fields].concat())
}

#[test]
fn however_a_lease_is_written_what_matters_is_read() {
    // With fields of eight and of four bytes, and a number of 64 bits.
    let unknown = "#e9050102030405060708 #ed0501020304 #18ffffffffffffffffff01 90:-5 91'new' 92{1'deep'} 300:1";
    // A Lease has metadata (name 1, namespace 3) and spec (holder 1, duration 2, acquireTime 3,
    // renewTime 4, transitions 5).
    for (written, expected) in [
        ("", "then late"),
        (
            "2{1{1'a' 3'kube-node-lease' 7:3} 2{1'a' 2:40 3{1:1} 4{1:1772366407 2:123456000} 5:1}}",
            "a 40 1772366407123456000, then late",
        ),
        // Nothing is left of the one before.
        (
            "2{1{1'b'} 2{2:-1 4{1:-1}}} 2{1{1'c'}}",
            "b -1 -1000000000, c - -, then late",
        ),
        // Go's zero time is empty and stands for none.
        (
            "2{1{1'a'} 2{4{}}} 2{1{1'a'} 2{4{1:0 2:0}}} 2{1{1'a'} 2{4{90:0}}}",
            "a - -, a - 0, a - 0, then late",
        ),
        // What comes twice is merged, and the last one counts.
        (
            "2{1{1'first' 1'last'} 2{2:40 4{1:5 2:6}} 2{4{1:7}}} 1{3'last'}",
            "last 40 7000000006, then last",
        ),
    ] {
        let fields = wire(&format!("1{{3'late'}} {unknown} {written}"));
        assert_eq!(
            leases(&list("LeaseList", &fields)).expect(written),
            expected
        );
    }
    let list = list(
        "LeaseList",
        &wire("2{1{1'a' 5'first'}} 2{1{1'a' 5'second'}}"),
    );
    let page = read::<LeaseList>([&*list]).expect("a page");
    let uids = page.items.iter().map(|lease| lease.uid);
    assert!(uids.eq(["first", "second"].map(LeaseUid::from)));
}

#[test]
fn of_a_node_what_makes_it_count_is_read_and_kept_once() {
    // A Node has metadata (name 1, labels 11, annotations 12), spec (2) and status (3) whose
    // conditions (4) have type 1, status 2, lastHeartbeatTime 3, reason 5 and message 6. Of what is
    // not known any amount is skipped.
    let long = "x".repeat(300_000);
    let node = wire(&format!(
        "2{{1{{1'n1' 11{{1'{long}' 2'a'}} 11{{1'worker.gardener.cloud/pool' 2'w1'}} \
         12{{1'last-applied' 2'{long}'}} 12{{1'node.machine.sapcloud.io/not-managed-by-mcm' 2''}}}} 2{{3'local'}} \
         3{{1{{1'cpu' 2{{1'4'}}}} 4{{1'InPlaceUpdate' 2'True' 3{{1:5}} 5'UpdateFailed' 6'long'}}}}}}"
    ));
    let list = list("NodeList", &[&*node, &wire("2{1{1'n2'}}"), &node].concat());
    let mut page = None;
    let info = allocation_counter::measure(|| page = read::<NodeList>(list.chunks(1000)).ok());
    let nodes = page.expect("a page").items.nodes;
    let [first, second, last] = &nodes[..] else {
        panic!("{}", nodes.len())
    };
    let condition = NodeCondition {
        kind: "InPlaceUpdate".to_owned(),
        status: "True".to_owned(),
        reason: "UpdateFailed".to_owned(),
    };
    let traits = NodeTraits {
        pool: Some("w1".to_owned()),
        not_managed_by_mcm: true,
        conditions: vec![condition],
    };
    assert_eq!((&*first.name, &*first.traits), ("n1", &traits));
    assert_eq!(
        (&*second.name, &*second.traits),
        ("n2", &NodeTraits::default())
    );
    assert!(Arc::ptr_eq(&first.traits, &last.traits));
    assert!(info.bytes_max < 4000, "{info:?}");
}

#[test]
fn what_is_no_protobuf_is_refused_by_its_content_type() {
    let room = ListRoom::after(&LeaseList::default());
    let reader = ListReader::<LeaseList>::new(0, &room);
    let refused = |content_type| {
        reader
            .check_content_type(content_type)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(
        refused("application/vnd.kubernetes.protobuf;stream=watch"),
        None
    );
    let refusal = "the answer is \"application/json\", not application/vnd.kubernetes.protobuf";
    assert_eq!(refused("application/json").as_deref(), Some(refusal));
    let long = refused(&"x".repeat(100_000)).expect("no format");
    assert!(long.len() < 500, "{long}");
}

/// Fields of lists that are refused: field 0, a group, wire type 6 and a field number of 33 bits
/// are no keys, and numbers have neither 11 bytes nor 65 bits.
const BROKEN_LISTS: &str = r#"
    2{1{1'odd'} 2{4{1:9223372036854775807}}} is RenewTime("odd")
    2{1{1'odd'} 2{4{1:-9223372036854775808}}} is RenewTime("odd")
    2{1{1'odd'} 2{4{1:0 2:-1}}} is RenewTime("odd")
    2{1{1'odd'} 2{4{1:0 2:2000000000}}} is RenewTime("odd")
    LONG is LongText
    1{2''} is NoResourceVersion
    2:5 is Protobuf(WireType)
    2{2{2'40'}} is Protobuf(WireType)
    2{2{4:40}} is Protobuf(WireType)
    2{1{#0a01ff}} is Protobuf(Text)
    #0001 is Protobuf(Key)
    #1b1c is Protobuf(Key)
    #1e00 is Protobuf(Key)
    #f8ffffffff0100 is Protobuf(Key)
    #18ffffffffffffffffffff01 is Protobuf(Number)
    #18ffffffffffffffffff02 is Protobuf(Number)
    #18ff is Protobuf(Cut)
    #1d010203 is Protobuf(Cut)
"#;

#[test]
fn what_is_no_list_of_leases_is_an_error_that_says_why() {
    let of_kind = |found: &str| format!("Kind {{ expected: \"LeaseList\", found: {found:?} }}");
    let long = "x".repeat(1025);
    let (empty, no_kind) = (
        list("LeaseList", &[]),
        [MAGIC, &*wire("2{1{2'7'}}")].concat(),
    );
    let then = |fields: &str| [&*empty, &*wire(fields)].concat();
    for (body, expected) in [
        (b"{\"kind\":\"LeaseList\"}".to_vec(), "Magic"),
        (b"k8s".to_vec(), "Magic"),
        (list("NodeList", &[]), &of_kind("NodeList")),
        (list(&long[..1000], &[]), &of_kind(&long[..80])),
        (no_kind.clone(), &of_kind("")),
        // No API server writes it there.
        ([no_kind, wire("1{2'LeaseList'}")].concat(), &of_kind("")),
        (then("1{2'PodList'}"), &of_kind("PodList")),
        (then("2{1{2'7'}}"), "Protobuf(Repeated)"),
        (then("2{}"), "Protobuf(Repeated)"),
        (
            encoded::envelope("v1", "LeaseList", &[]),
            "NoResourceVersion",
        ),
        (
            list("LeaseList", &wire("2{}").repeat(20_001)),
            "TooManyItems",
        ),
    ] {
        let error = leases(&body).expect_err(expected);
        assert_eq!(format!("{error:?}"), expected);
    }
    let long_name = format!("2{{1{{1'{long}'}}}}");
    for (fields, expected) in BROKEN_LISTS
        .lines()
        .filter_map(|row| row.trim().split_once(" is "))
    {
        let fields = fields.replace("LONG", &long_name);
        let error = leases(&list("LeaseList", &wire(&fields))).expect_err(&fields);
        assert_eq!(format!("{error:?}"), expected, "{fields}");
    }
    let most = [
        wire(&format!("2{{1{{1'{}'}}}}", &long[1..])),
        wire("2{}").repeat(19_999),
    ]
    .concat();
    leases(&list("LeaseList", &most)).expect("a page");
    // The last four bytes are the two empty fields behind the object.
    for length in 0..empty.len() - 4 {
        leases(&empty[..length]).expect_err("it is cut off");
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
            let read = || refused = Some(read::<LeaseList>([&*huge]).err());
            let info = allocation_counter::measure(read);
            assert!(refused.flatten().is_some(), "{huge:?}");
            assert!(info.bytes_max < 1000, "{info:?}");
        }
    }
}

#[test]
fn two_attempts_at_a_page_share_what_may_be_kept() {
    let named = wire(&format!("2{{1{{1'{}'}}}}", "x".repeat(1000)));
    let list = list("LeaseList", &named.repeat(600));
    let room = ListRoom::after(&LeaseList::default());
    let mut readers = [0, 0].map(|expected| ListReader::<LeaseList>::new(expected, &room));
    let [first, second] = &mut readers;
    first.feed(&list).expect("600 kB");
    assert!(matches!(second.feed(&list), Err(DecodeError::TooMuch)));
}
