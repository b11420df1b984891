//! That lists are read as Go's own decoder reads them, whole, in pieces and damaged, random lists
//! show (`kind-tests/readers`).

use std::sync::Arc;

use api_server::protobuf::wire::{bytes, envelope, message, number, text, varint};
use prober_core::lease::{LeaseList, LeaseUid};
use prober_core::verdict::{NodeCondition, NodeTraits};

use super::*;

/// Reads a page that comes in pieces of this size.
fn read<L: ItemList>(body: &[u8], size: usize) -> Result<Page<L>, DecodeError> {
    read_pieces(body.chunks(size))
}

/// A whole body: a list with its ListMeta, which has resourceVersion (2), and these fields.
fn list(kind: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    let meta = message(1, &[text(2, "7")]);
    envelope("v1", kind, &[meta, fields.concat()].concat())
}

/// A lease: metadata (name 1, uid 5) and spec (holder 1, duration 2, acquireTime 3, renewTime 4).
fn lease(name: &str, spec: &[Vec<u8>]) -> Vec<u8> {
    let metadata = message(1, &[text(1, name), text(5, "u1"), text(90, "new")]);
    message(2, &[text(90, "new"), metadata, message(2, spec)])
}

fn renewed(seconds: i64, nanos: i64) -> Vec<u8> {
    message(4, &[number(1, seconds), number(2, nanos)])
}

#[test]
fn of_a_lease_what_matters_is_read() {
    let body = list(
        "LeaseList",
        &[
            lease(
                "a",
                &[
                    text(1, "a"),
                    number(2, 40),
                    message(3, &[number(1, 1)]),
                    renewed(7, 123_456_000),
                ],
            ),
            bytes(91, &[0; 70_000]),
            // Nothing is left of the one before.
            lease("b", &[]),
            // Go's zero time is empty and stands for none.
            lease("c", &[message(4, &[])]),
            lease("d", &[renewed(0, 0)]),
            message(1, &[text(3, "late")]),
        ],
    );
    for size in [1, 1000, body.len()] {
        let page = read::<LeaseList>(&body, size).expect("a page");
        let seen = page.items.iter().map(|lease| {
            assert_eq!(lease.uid, LeaseUid::from("u1"));
            let renewed = lease.renew_time.and_then(|at| at.timestamp_nanos_opt());
            (lease.name, lease.duration_seconds, renewed)
        });
        assert!(seen.eq([
            ("a", Some(40), Some(7_123_456_000)),
            ("b", None, None),
            ("c", None, None),
            ("d", None, Some(0)),
        ]));
        assert_eq!(page.next.as_deref(), Some("late"));
    }
}

#[test]
fn of_a_node_what_makes_it_count_is_read_and_kept_once() {
    // A Node has metadata (name 1, labels 11, annotations 12), spec (2) and status (3) whose
    // conditions (4) have type 1, status 2, lastHeartbeatTime 3, reason 5 and message 6. Of what is
    // not known any amount is skipped.
    let long = "x".repeat(300_000);
    let pair = |field, key: &str, value: &str| message(field, &[text(1, key), text(2, value)]);
    let metadata = message(
        1,
        &[
            text(1, "n1"),
            pair(11, &long, "a"),
            pair(11, "worker.gardener.cloud/pool", "w1"),
            pair(12, "last-applied", &long),
            pair(12, "node.machine.sapcloud.io/not-managed-by-mcm", ""),
        ],
    );
    let update = [
        (1, "InPlaceUpdate"),
        (2, "True"),
        (5, "UpdateFailed"),
        (6, "long"),
    ];
    let update = update.map(|(field, value)| text(field, value));
    let node = message(2, &[metadata, message(3, &[message(4, &update)])]);
    let other = message(2, &[message(1, &[text(1, "n2")])]);
    let list = list("NodeList", &[node.clone(), other, node]);
    let mut page = None;
    let info = allocation_counter::measure(|| page = read::<NodeList>(&list, 1000).ok());
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
fn what_is_no_list_of_leases_is_an_error_that_says_why() {
    let leases = |fields: &[Vec<u8>]| list("LeaseList", fields);
    let empty = leases(&[]);
    let item = message(2, &[]);
    let no_time = "renewTime of lease \"odd\" is not a point in time";
    let odd = |seconds, nanos| leases(&[lease("odd", &[renewed(seconds, nanos)])]);
    // Its list ends a byte earlier than its item, and 20 fields without a meaning come behind it.
    let behind = [leases(&[vec![0x12, 1]]), bytes(90, &[0; 20])].concat();
    let second = [empty.clone(), message(2, &[message(1, &[text(2, "7")])])].concat();
    for (body, expected) in [
        (
            b"{\"kind\":\"LeaseList\"}".to_vec(),
            "the answer does not begin like Kubernetes protobuf",
        ),
        (
            b"k8s".to_vec(),
            "the list cannot be read: unexpected end of file",
        ),
        (b"k8s\0".to_vec(), "the list has no resourceVersion"),
        (
            envelope("v1", "LeaseList", &[]),
            "the list has no resourceVersion",
        ),
        (
            list("NodeList", &[]),
            "the answer is a \"NodeList\", not a LeaseList",
        ),
        (second, "the answer is a \"\", not a LeaseList"),
        (behind, "the list cannot be read: unexpected end of file"),
        (
            leases(&[number(2, 5)]),
            "invalid wire type: Varint (expected LengthDelimited)",
        ),
        (leases(&[vec![0xff; 12]]), "invalid varint"),
        (leases(&[message(2, &[text(2, "a")])]), "buffer underflow"),
        (
            leases(&[lease("a", &[text(2, "40")])]),
            "invalid wire type: LengthDelimited (expected Varint)",
        ),
        (odd(i64::MAX, 0), no_time),
        (odd(0, -1), no_time),
        (odd(0, 2_000_000_000), no_time),
        // Each within bounds, but not all of them together.
        (
            leases(&[item.repeat(100_000)]),
            "of the list more than 1048576 bytes would be held",
        ),
        (
            leases(&[lease(&"x".repeat(1000), &[]).repeat(1100)]),
            "of the list more than 1048576 bytes would be held",
        ),
    ] {
        for size in [1, body.len()] {
            let error = read::<LeaseList>(&body, size).err().expect(expected);
            assert!(
                error.to_string().ends_with(expected),
                "{error}, not {expected}"
            );
        }
    }
    // The last four bytes are the two empty fields behind the object.
    for length in 0..empty.len() - 4 {
        assert!(
            read::<LeaseList>(&empty[..length], 1000).is_err(),
            "{length}"
        );
    }
}

#[test]
fn a_length_beyond_the_body_is_an_error_and_no_allocation() {
    let kind = message(1, &[text(2, "LeaseList")]);
    // The second one ends where numbers end.
    for length in [u64::MAX, u64::MAX - 11, u64::MAX >> 1, 1 << 40] {
        let beyond = |field: u64| [varint(field << 3 | 2), varint(length)].concat();
        let list = [&MAGIC[..], &kind, &beyond(2)].concat();
        for huge in [
            [&MAGIC[..], &beyond(9)].concat(),
            list.clone(),
            [&*list, &beyond(2)].concat(),
            [&*list, &beyond(9)].concat(),
        ] {
            let mut refused = None;
            let info = allocation_counter::measure(|| {
                refused = Some(read::<LeaseList>(&huge, 1000).is_err());
            });
            assert_eq!(refused, Some(true), "{huge:?}");
            assert!(info.bytes_max < 1000, "{info:?}");
        }
    }
}

#[test]
fn what_is_held_of_a_list_is_bounded() {
    // As much as may be kept, and more that is not; or an item that never ends.
    let item = [lease(&"x".repeat(1000), &[]), bytes(90, &[0; 7000])].concat();
    let [many, endless] = [
        item.repeat(450),
        message(2, &[bytes(90, &vec![0; 8 << 20])]),
    ];
    for (items, is_read) in [(many, true), (endless, false)] {
        let body = list("LeaseList", &[items]);
        let mut page = None;
        let info = allocation_counter::measure(|| page = Some(read::<LeaseList>(&body, 16 << 10)));
        assert_eq!(page.expect("read").is_ok(), is_read);
        assert!(info.bytes_max < 3 * MAX_HELD as u64 / 2, "{info:?}");
    }
}
