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
    let mut reader = ListReader::new(L::default());
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

/// Fields that nobody reads: of eight and of four bytes, a number of 64 bits, a group.
const UNKNOWN: &str = "#e9050102030405060708 #ed0501020304 #f805ffffffffffffffffff01 #eb050801ec05 90:-5 91'new' 92{1'deep'} 300:1";

#[test]
fn however_a_lease_is_written_what_matters_is_read() {
    // A Lease has metadata (name 1, namespace 3) and spec (holder 1, duration 2, acquireTime 3,
    // renewTime 4, transitions 5).
    for (written, expected) in [
        ("", "then late"),
        (
            "2{1{1'a' 3'kube-node-lease' 7:3} 2{1'a' 2:40 3{1:1} 4{1:1772366407 2:123456000} 5:1}}",
            "a 40 1772366407123456000, then late",
        ),
        (
            "2{UNKNOWN 1{1'a' UNKNOWN} UNKNOWN 2{2:40 4{1:5 UNKNOWN} UNKNOWN}}",
            "a 40 5000000000, then late",
        ),
        // Nothing is left of the one before.
        (
            "2{1{1'b'} 2{2:-1 4{1:-1}}} 2{1{1'c'}}",
            "b -1 -1000000000, c - -, then late",
        ),
        // Go's zero time is empty and stands for none.
        (
            "2{1{1'a'} 2{4{}}} 2{1{1'a'} 2{4{1:0 2:0}}} 2{1{1'a'} 2{4{90:0}}}",
            "a - -, a - 0, a - -, then late",
        ),
        // What comes twice is merged, and the last one counts.
        (
            "2{1{1'first' 1'last'} 2{2:40 4{1:5 2:6}} 2{4{1:7}}} 1{3'last'}",
            "last 40 7000000006, then last",
        ),
    ] {
        let fields = wire(&format!(
            "1{{3'late'}} 91'new' {}",
            written.replace("UNKNOWN", UNKNOWN)
        ));
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
    assert!(info.bytes_current < 4000, "{info:?}");
    // One item, as it came, and its longest text.
    assert!(info.bytes_max < 3 << 20, "{info:?}");
}

#[test]
fn what_is_no_protobuf_is_refused_by_its_content_type() {
    let reader = ListReader::new(LeaseList::default());
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

/// Fields of lists that are refused: of a list and its envelope none is a number, field 0, wire type 6
/// and a field number of 33 bits are no keys, and numbers have neither 11 bytes nor 65 bits.
const BROKEN_LISTS: &str = r#"
    2{1{1'odd'} 2{4{1:9223372036854775807}}} is renewTime of lease "odd" is not a point in time
    2{1{1'odd'} 2{4{1:-9223372036854775808}}} is renewTime of lease "odd" is not a point in time
    2{1{1'odd'} 2{4{1:0 2:-1}}} is renewTime of lease "odd" is not a point in time
    2{1{1'odd'} 2{4{1:0 2:2000000000}}} is renewTime of lease "odd" is not a point in time
    LONG is the list has more than 20000 items, 1048576 bytes to be held, or 1024 bytes of a text
    1{2''} is the list has no resourceVersion
    2:5 is invalid wire type: Varint (expected LengthDelimited)
    90:5 is invalid wire type: Varint (expected LengthDelimited)
    #1b1c is invalid wire type: StartGroup (expected LengthDelimited)
    #0001 is invalid tag value: 0
    #1e00 is invalid wire type value: 6
    #f8ffffffff0100 is invalid key value: 68719476728
    #92ffffffffffffffffffff01 is invalid varint
    2{2{2'40'}} is LeaseSpec.duration_seconds: WireLease.spec: invalid wire type: LengthDelimited (expected Varint)
    2{2{4:40}} is LeaseSpec.renew_time: WireLease.spec: invalid wire type: Varint (expected LengthDelimited)
    2{1{#0a01ff}} is LeaseMeta.name: WireLease.metadata: invalid string value: data is not UTF-8 encoded
    2{#1a0501} is buffer underflow
    2{#1b08} is invalid varint
    2{#18ffffffffffffffffffff01} is invalid varint
    2{#18ffffffffffffffffff02} is invalid varint
    2{#18ff} is invalid varint
    2{#1d010203} is buffer underflow
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
        (b"k8s".to_vec(), "Cut"),
        (vec![], "Cut"),
        (list("NodeList", &[]), &of_kind("NodeList")),
        (list(&long[..1000], &[]), &of_kind(&long[..80])),
        (no_kind.clone(), &of_kind("")),
        ([no_kind, wire("1{2'LeaseList'}")].concat(), &of_kind("")),
        // A list has its kind before it, also a second one.
        (then("2{1{2'7'}}"), &of_kind("")),
        (then("2{}"), &of_kind("")),
        (
            encoded::envelope("v1", "LeaseList", &[]),
            "NoResourceVersion",
        ),
        // An item that ends behind its list.
        (
            [&*list("LeaseList", &wire("#1202")), &*wire("#0000")].concat(),
            "Cut",
        ),
        (list("LeaseList", &wire("2{}").repeat(20_001)), "TooLarge"),
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
        // With as much behind it as the longest head of a field.
        let body = list(
            "LeaseList",
            &[wire(&fields), wire("91'01234567890123456789'")].concat(),
        );
        let error = leases(&body).expect_err(&fields).to_string();
        assert!(error.ends_with(expected), "{fields}: {error}");
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

/// Its items know whether they are decoded alone.
#[derive(Clone, Default)]
struct Alone(Vec<bool>);

impl ItemList for Alone {
    const KIND: &'static str = "NodeList";

    type Item = TypeMeta;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        0
    }

    fn add(&mut self, _item: &mut TypeMeta, _to_come: usize) -> Result<(), DecodeError> {
        self.0.push(LARGE_ITEM.is_locked());
        Ok(())
    }
}

#[test]
fn a_forged_item_takes_bounded_memory_and_is_decoded_alone() {
    let conditions = field(3, &wire("4{}").repeat(500_000));
    let list = list("NodeList", &field(2, &conditions));
    let mut page = None;
    let info = allocation_counter::measure(|| page = read::<NodeList>(list.chunks(2000)).ok());
    assert_eq!(page.expect("a page").items.count(), 1);
    assert!(info.bytes_max < 60 << 20, "{info:?}");
    assert!(info.bytes_current < 1000, "{info:?}");
    let page = read::<Alone>([&*list]).expect("a page");
    assert_eq!(page.items.0, [true]);
}
