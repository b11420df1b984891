use chrono::{DateTime, TimeZone, Utc};
use prober_core::lease::{LeaseList, LeaseRecord, LeaseUid};
use prober_core::verdict::{NodeCondition, NodeRecord};
use serde_json::{Value, json};
use testbed::api::protobuf::wire::{self as encoded, bytes as field, entry, message, number, text};

use super::protobuf::ProtobufError;
use super::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

#[derive(Debug)]
struct Page<T> {
    items: Vec<T>,
    next: Next,
}

#[derive(Clone, Debug, PartialEq)]
struct ReadLease {
    name: String,
    renew_time: Option<DateTime<Utc>>,
    duration_seconds: Option<i32>,
}

impl From<LeaseRecord<'_>> for ReadLease {
    fn from(
        LeaseRecord {
            name,
            renew_time,
            duration_seconds,
            ..
        }: LeaseRecord<'_>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            renew_time,
            duration_seconds,
        }
    }
}

fn leases(content_type: &str, body: Vec<u8>) -> Result<Page<ReadLease>, DecodeError> {
    let mut list = LeaseList::default();
    let next = read_page(content_type, &body, &mut list)?;
    Ok(Page {
        items: list.iter().map(ReadLease::from).collect(),
        next,
    })
}

fn nodes(content_type: &str, body: Vec<u8>) -> Result<Page<NodeRecord>, DecodeError> {
    let mut list = NodeList::default();
    let next = read_page(content_type, &body, &mut list)?;
    Ok(Page {
        items: list.nodes,
        next,
    })
}

/// Kubernetes' envelope.
fn envelope(kind: &str, object: &[Vec<u8>]) -> Vec<u8> {
    encoded::envelope("v1", kind, &object.concat())
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
fn proto_lease(name: &str, duration: Option<i64>, renewed: Option<(i64, i64)>) -> Vec<u8> {
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

/// A Node with metadata (name 1, labels 11, annotations 12), spec (2) and status (3) whose
/// conditions (4) have type 1, status 2, lastHeartbeatTime 3, reason 5 and message 6.
fn proto_node() -> Vec<u8> {
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

fn json_lease(name: &str, duration: Value, renewed: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": duration, "renewTime": renewed, "leaseTransitions": 1}})
}

fn lease_list(items: Value) -> Value {
    json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {"resourceVersion": "77", "remainingItemCount": 3}, "items": items})
}

fn from_json(value: &Value) -> Result<Page<ReadLease>, DecodeError> {
    leases(JSON, value.to_string().into())
}

fn from_protobuf(object: &[Vec<u8>]) -> Result<Page<ReadLease>, DecodeError> {
    leases(PROTOBUF, envelope("LeaseList", object))
}

#[test]
fn leases_are_the_same_from_protobuf_and_from_json() {
    let renewed = Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 7).unwrap()
        + chrono::TimeDelta::microseconds(123_456);
    let stamp = (
        renewed.timestamp(),
        i64::from(renewed.timestamp_subsec_nanos()),
    );
    let protobuf = from_protobuf(&[
        list_meta("77", "next-page"),
        proto_lease("a", Some(40), Some(stamp)),
        proto_lease("b", None, None),
        proto_lease("c", Some(-1), Some((-1, 0))),
    ]);
    let mut list = lease_list(json!([
        json_lease("a", json!(40), json!("2026-03-01T12:00:07.123456Z")),
        json_lease("b", Value::Null, Value::Null),
        json_lease("c", json!(-1), json!("1969-12-31T23:59:59.000000Z")),
    ]));
    list["metadata"]["continue"] = json!("next-page");
    let (protobuf, json) = (protobuf.expect("a page"), from_json(&list).expect("a page"));
    assert_eq!(protobuf.items, json.items);
    let first = ReadLease {
        name: "a".to_owned(),
        renew_time: Some(renewed),
        duration_seconds: Some(40),
    };
    assert_eq!(protobuf.items.first(), Some(&first));
    assert_eq!(
        (protobuf.next.as_deref(), json.next.as_deref()),
        (Some("next-page"), Some("next-page"))
    );
}

#[test]
fn the_bytes_of_a_real_answer_are_understood() {
    // Written out by hand: magic; Unknown{1: TypeMeta{1: "v1", 2: "LeaseList"}, 2: raw}; raw =
    // LeaseList{1: ListMeta{2: "7"}, 2: Lease{1: ObjectMeta{1: "n"}, 2: LeaseSpec{2: 40, 4: {1:
    // 1700000000, 2: 5000}}}}.
    let golden = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09LeaseList\x12\x1b\x0a\x03\x12\x017\x12\x14\x0a\x03\x0a\x01n\x12\x0d\x10\x28\x22\x09\x08\x80\xe2\xcf\xaa\x06\x10\x88\x27";
    let page = leases(PROTOBUF, golden.to_vec());
    let Ok(Page { items, next: None }) = page else {
        panic!("{page:?}")
    };
    let renew_time = DateTime::from_timestamp(1_700_000_000, 5000);
    assert_eq!(
        items,
        [ReadLease {
            name: "n".to_owned(),
            renew_time,
            duration_seconds: Some(40)
        }]
    );
}

#[test]
fn nodes_are_the_same_from_protobuf_and_from_json() {
    let protobuf = nodes(
        PROTOBUF,
        envelope(
            "NodeList",
            &[
                list_meta("7", ""),
                proto_node(),
                message(2, &[message(1, &[text(1, "n2")])]),
            ],
        ),
    );
    let list = json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [
        {"metadata": {"name": "n1", "labels": {"worker.gardener.cloud/pool": "w1", "topology.kubernetes.io/zone": "a"},
            "annotations": {"node.machine.sapcloud.io/not-managed-by-mcm": ""}},
         "spec": {"providerID": "local:///n1"},
         "status": {"capacity": {"cpu": "4"},
            "conditions": [{"type": "InPlaceUpdate", "status": "True", "reason": "UpdateFailed", "message": "long"}]}},
        {"metadata": {"name": "n2"}},
    ]});
    let json = nodes(JSON, list.to_string().into());
    let (protobuf, json) = (protobuf.expect("a page"), json.expect("a page"));
    assert_eq!(protobuf.items, json.items);
    let condition = NodeCondition {
        kind: "InPlaceUpdate".to_owned(),
        status: "True".to_owned(),
        reason: "UpdateFailed".to_owned(),
    };
    let first = NodeRecord {
        name: "n1".to_owned(),
        pool: Some("w1".to_owned()),
        zone: Some("a".into()),
        not_managed_by_mcm: true,
        conditions: vec![condition],
    };
    assert_eq!(protobuf.items.first(), Some(&first));
    assert_eq!(
        (protobuf.items.len(), protobuf.next, json.next),
        (2, None, None)
    );
}

#[test]
fn an_empty_list_is_a_list() {
    for items in [json!([]), Value::Null] {
        assert!(
            from_json(&lease_list(items))
                .expect("a page")
                .items
                .is_empty()
        );
    }
    let mut absent = lease_list(Value::Null);
    absent.as_object_mut().expect("an object").remove("items");
    assert!(from_json(&absent).expect("a page").items.is_empty());
    assert!(
        from_protobuf(&[list_meta("7", "")])
            .expect("a page")
            .items
            .is_empty()
    );
}

#[test]
fn parameters_of_the_content_type_do_not_matter() {
    let list = lease_list(json!([])).to_string();
    assert!(leases("application/json; charset=utf-8", list.into()).is_ok());
    assert!(
        leases(
            "application/vnd.kubernetes.protobuf;stream=watch",
            envelope("LeaseList", &[list_meta("7", "")])
        )
        .is_ok()
    );
}

#[test]
fn another_kind_is_no_list_of_leases() {
    let found = |result: Result<Page<ReadLease>, DecodeError>| match result {
        Err(DecodeError::Kind {
            expected: "LeaseList",
            found,
        }) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        found(leases(
            PROTOBUF,
            envelope("NodeList", &[list_meta("7", "")])
        )),
        "NodeList"
    );
    let mut list = lease_list(json!([]));
    list["kind"] = json!("Status");
    assert_eq!(found(from_json(&list)), "Status");
    let mut endless = lease_list(json!([]));
    endless["kind"] = json!("x".repeat(10_000));
    assert_eq!(
        found(from_json(&endless)).len(),
        80,
        "nothing endless gets into a log"
    );
    assert_eq!(
        found(leases(
            PROTOBUF,
            [b"k8s\0".as_slice(), &message(2, &[list_meta("7", "")])].concat()
        )),
        ""
    );
}

#[test]
fn a_list_without_resource_version_is_no_answer_of_an_api_server() {
    let no_version = |result| matches!(result, Err(DecodeError::NoResourceVersion));
    assert!(no_version(from_protobuf(&[])));
    assert!(no_version(from_protobuf(&[list_meta("", "")])));
    assert!(no_version(from_json(
        &json!({"kind": "LeaseList", "metadata": {}, "items": []})
    )));
    assert!(from_json(&json!({"kind": "LeaseList", "items": []})).is_err());
}

#[test]
fn neither_protobuf_nor_json_is_refused_by_its_content_type() {
    for content_type in [
        "",
        "text/html",
        "application/yaml",
        "application/cbor",
        "APPLICATION",
    ] {
        assert!(
            matches!(
                leases(content_type, lease_list(json!([])).to_string().into()),
                Err(DecodeError::ContentType(_))
            ),
            "{content_type}"
        );
    }
    assert!(matches!(
        leases(PROTOBUF, lease_list(json!([])).to_string().into()),
        Err(DecodeError::Magic)
    ));
    assert!(matches!(
        leases(PROTOBUF, b"k8s".to_vec()),
        Err(DecodeError::Magic)
    ));
    assert!(matches!(
        leases(JSON, envelope("LeaseList", &[list_meta("7", "")])),
        Err(DecodeError::Json(_))
    ));
}

#[test]
fn an_answer_that_was_cut_anywhere_is_never_a_list() {
    let whole = envelope(
        "LeaseList",
        &[
            list_meta("7", ""),
            proto_lease("a", Some(40), Some((1_700_000_000, 5000))),
        ],
    );
    // The last four bytes are the two empty fields behind the object.
    for length in 0..whole.len() - 4 {
        assert!(
            leases(PROTOBUF, whole[..length].to_vec()).is_err(),
            "{length} of {} bytes",
            whole.len()
        );
    }
    let whole = lease_list(json!([json_lease(
        "a",
        json!(40),
        json!("2026-03-01T12:00:07.123456Z")
    )]))
    .to_string();
    for length in 0..whole.len() {
        assert!(
            leases(JSON, whole.as_bytes()[..length].to_vec()).is_err(),
            "{length} of {} bytes",
            whole.len()
        );
    }
}

#[test]
fn a_length_beyond_the_body_is_an_error_and_no_allocation() {
    let huge = [
        b"k8s\0".as_slice(),
        &encoded::varint(2 << 3 | 2),
        &encoded::varint(u64::MAX >> 1),
    ]
    .concat();
    assert!(matches!(
        leases(PROTOBUF, huge),
        Err(DecodeError::Protobuf(_))
    ));
}

#[test]
fn unknown_fields_are_skipped() {
    let unknown = [
        number(90, -5),
        text(91, "new"),
        message(92, &[text(1, "deep")]),
        vec![0xe9, 0x05, 1, 2, 3, 4, 5, 6, 7, 8],
    ]
    .concat();
    let lease = message(
        2,
        &[
            unknown.clone(),
            message(1, &[unknown.clone(), text(1, "a")]),
            message(2, &[unknown.clone(), number(2, 40)]),
        ],
    );
    let page = from_protobuf(&[unknown, list_meta("7", ""), lease]).expect("a page");
    assert_eq!(
        page.items,
        [ReadLease {
            name: "a".to_owned(),
            renew_time: None,
            duration_seconds: Some(40)
        }]
    );
}

#[test]
fn a_lease_without_spec_has_no_renew_time() {
    let page = from_protobuf(&[
        list_meta("7", ""),
        message(2, &[message(1, &[text(1, "a")])]),
    ])
    .expect("a page");
    let bare = ReadLease {
        name: "a".to_owned(),
        renew_time: None,
        duration_seconds: None,
    };
    assert_eq!(page.items, std::slice::from_ref(&bare));
    let page = from_json(&lease_list(
        json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}, "spec": null}]),
    ))
    .expect("a page");
    assert_eq!(page.items, [bare.clone(), bare]);
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
        let page = from_protobuf(&[
            list_meta("7", ""),
            proto_lease("odd", Some(40), Some((seconds, nanos))),
        ]);
        assert!(
            matches!(&page, Err(DecodeError::RenewTime(name)) if name == "odd"),
            "{seconds} s {nanos} ns: {page:?}"
        );
    }
    for stamp in [
        json!("yesterday"),
        json!(5),
        json!(""),
        json!("2026-13-01T00:00:00Z"),
        json!({}),
    ] {
        assert!(
            from_json(&lease_list(json!([json_lease(
                "odd",
                json!(40),
                stamp.clone()
            )])))
            .is_err(),
            "{stamp}"
        );
    }
}

#[test]
fn a_stamp_may_be_in_another_time_zone() {
    let page = from_json(&lease_list(json!([json_lease(
        "a",
        json!(40),
        json!("2026-03-01T14:00:07.5+02:00")
    )])))
    .expect("a page");
    let expected =
        Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 7).unwrap() + chrono::TimeDelta::milliseconds(500);
    assert_eq!(page.items[0].renew_time, Some(expected));
}

#[test]
fn a_wrong_type_in_json_is_an_error() {
    for wrong in [
        lease_list(json!("text")),
        lease_list(json!([{"metadata": {"name": 5}}])),
        lease_list(json!([json_lease("a", json!("40"), Value::Null)])),
        lease_list(json!([json_lease(
            "a",
            json!(3_000_000_000_u32),
            Value::Null
        )])),
        lease_list(json!([["a"]])),
        lease_list(json!([{"metadata": ["a"]}])),
        lease_list(json!([{"spec": [40, "2026-03-01T12:00:07Z"]}])),
        json!({"kind": "LeaseList", "metadata": ["77", ""], "items": []}),
        json!(["LeaseList", {"resourceVersion": "77"}, []]),
        json!([]),
        json!("LeaseList"),
        Value::Null,
    ] {
        assert!(from_json(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_wrong_wire_type_in_protobuf_is_an_error() {
    assert!(from_protobuf(&[list_meta("7", ""), number(2, 5)]).is_err());
    assert!(
        from_protobuf(&[
            list_meta("7", ""),
            message(2, &[text(1, "\u{ff}"), field(2, &[0xff])])
        ])
        .is_err()
    );
}

#[test]
fn an_empty_stamp_is_how_go_writes_its_zero_time_and_stands_for_none() {
    let lease = message(
        2,
        &[message(1, &[text(1, "a")]), message(2, &[message(4, &[])])],
    );
    assert_eq!(
        from_protobuf(&[list_meta("7", ""), lease])
            .expect("a page")
            .items[0]
            .renew_time,
        None
    );
    let begin = message(
        2,
        &[
            message(1, &[text(1, "a")]),
            message(2, &[message(4, &[number(1, 0), number(2, 0)])]),
        ],
    );
    assert_eq!(
        from_protobuf(&[list_meta("7", ""), begin])
            .expect("a page")
            .items[0]
            .renew_time,
        Some(DateTime::UNIX_EPOCH)
    );
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
    let page = from_protobuf(&[list_meta("7", ""), lease]).expect("a page");
    let merged = ReadLease {
        name: "last".to_owned(),
        renew_time: DateTime::from_timestamp(7, 6),
        duration_seconds: Some(40),
    };
    assert_eq!(page.items, [merged]);
}

#[test]
fn keys_and_numbers_that_protobuf_does_not_know_are_an_error() {
    let broken = |bytes: &[u8]| match from_protobuf(&[list_meta("7", ""), bytes.to_vec()]) {
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
    assert!(
        from_protobuf(&[list_meta("7", ""), whole]).is_ok(),
        "64 bits"
    );
}

#[test]
fn a_text_that_matters_and_is_not_utf8_is_an_error() {
    let lease = message(2, &[message(1, &[field(1, &[0xff])])]);
    assert!(matches!(
        from_protobuf(&[list_meta("7", ""), lease]),
        Err(DecodeError::Protobuf(ProtobufError::Text))
    ));
}

#[test]
fn no_error_repeats_more_than_a_little_of_an_answer() {
    let endless = "x".repeat(100_000);
    let stamp = message(
        2,
        &[
            message(1, &[text(1, &endless)]),
            message(2, &[message(4, &[number(1, i64::MAX)])]),
        ],
    );
    let errors = [
        from_json(&lease_list(json!([json_lease(
            "a",
            json!(endless),
            Value::Null
        )])))
        .expect_err("no number"),
        from_json(&lease_list(json!([json_lease(
            "a",
            json!(40),
            json!(endless)
        )])))
        .expect_err("no stamp"),
        from_json(&json!({"kind": endless, "metadata": {}, "items": []}))
            .expect_err("no LeaseList"),
        from_protobuf(&[list_meta("7", ""), stamp]).expect_err("no stamp"),
        from_protobuf(&[text(2, &endless)]).expect_err("no lease"),
        leases(&endless, Vec::new()).expect_err("no format"),
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
    assert_eq!(
        from_protobuf(&list(20_000)).expect("a page").items.len(),
        20_000
    );
    assert!(matches!(
        from_protobuf(&list(20_001)),
        Err(DecodeError::TooManyItems)
    ));
    let json = |count: usize| lease_list(Value::Array(vec![json!({}); count]));
    assert_eq!(
        from_json(&json(20_000)).expect("a page").items.len(),
        20_000
    );
    assert!(matches!(
        from_json(&json(20_001)),
        Err(DecodeError::TooManyItems)
    ));
    let nodes = |count| nodes(PROTOBUF, envelope("NodeList", &list(count)));
    assert!(matches!(nodes(20_001), Err(DecodeError::TooManyItems)));
}

#[test]
fn the_items_of_all_pages_count_together() {
    let items = |count: usize| [list_meta("7", "more"), message(2, &[]).repeat(count)];
    let in_json = |kind: &str, count: usize| {
        let mut list = lease_list(Value::Array(vec![json!({}); count]));
        list["kind"] = json!(kind);
        list.to_string().into_bytes()
    };
    for (content_type, page) in [
        (PROTOBUF, envelope("LeaseList", &items(10_000))),
        (JSON, in_json("LeaseList", 10_000)),
    ] {
        let mut list = LeaseList::default();
        for _ in 0..2 {
            read_page(content_type, &page, &mut list).expect("a page");
        }
        assert!(
            matches!(
                read_page(content_type, &page, &mut list),
                Err(DecodeError::TooManyItems)
            ),
            "{content_type}"
        );
        assert_eq!(list.len(), 20_000, "refused before the list grows");
    }
    for (content_type, page) in [
        (PROTOBUF, envelope("NodeList", &items(10_000))),
        (JSON, in_json("NodeList", 10_000)),
    ] {
        let mut list = NodeList::default();
        for _ in 0..2 {
            read_page(content_type, &page, &mut list).expect("a page");
        }
        assert!(
            matches!(
                read_page(content_type, &page, &mut list),
                Err(DecodeError::TooManyItems)
            ),
            "{content_type}"
        );
    }
}

#[test]
fn what_is_kept_of_the_nodes_of_all_pages_is_bounded() {
    let name = "x".repeat(1 << 20);
    let protobuf = envelope(
        "NodeList",
        &[
            list_meta("7", "more"),
            message(2, &[message(1, &[text(1, &name)])]).repeat(3),
        ],
    );
    let list = json!({"kind": "NodeList", "metadata": {"resourceVersion": "7", "continue": "more"},
        "items": vec![json!({"metadata": {"name": name}}); 3]});
    for (content_type, page) in [(PROTOBUF, protobuf), (JSON, list.to_string().into_bytes())] {
        let mut list = NodeList::default();
        for _ in 0..2 {
            read_page(content_type, &page, &mut list).expect("a page");
        }
        assert!(
            matches!(
                read_page(content_type, &page, &mut list),
                Err(DecodeError::TooMuch)
            ),
            "{content_type}"
        );
        let kept = list.nodes.len();
        assert!(kept < 8, "{kept} names of 1 MiB");
    }
}

#[test]
fn of_any_number_of_conditions_as_many_are_kept_as_an_honest_node_has() {
    let long = "x".repeat(2000);
    let conditions: Vec<[&str; 3]> = std::iter::repeat_n(
        [["A", "True", &long], ["B", "False", ""], ["C", "True", "R"]],
        1000,
    )
    .flatten()
    .collect();
    let protobuf: Vec<u8> = conditions
        .iter()
        .flat_map(|[kind, status, reason]| {
            message(4, &[text(1, kind), text(2, status), text(5, reason)])
        })
        .collect();
    let protobuf = envelope(
        "NodeList",
        &[list_meta("7", ""), message(2, &[message(3, &[protobuf])])],
    );
    let in_json: Vec<Value> = conditions
        .iter()
        .map(|[kind, status, reason]| json!({"type": kind, "status": status, "reason": reason}))
        .collect();
    let in_json = json!({"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": [{"status": {"conditions": in_json}}]});
    for (content_type, page) in [
        (PROTOBUF, protobuf),
        (JSON, in_json.to_string().into_bytes()),
    ] {
        let page = nodes(content_type, page).expect("a page");
        let kept: Vec<_> = page.items[0]
            .conditions
            .iter()
            .map(|condition| condition.kind.as_str())
            .collect();
        assert_eq!(kept, ["C"; 64], "{content_type}");
    }
}

#[test]
fn a_lease_that_was_made_again_is_distinguished_from_the_one_before_it() {
    let in_protobuf = |uid: &str| {
        let lease = message(2, &[message(1, &[text(1, "a"), text(5, uid)])]);
        (
            PROTOBUF,
            envelope("LeaseList", &[list_meta("7", ""), lease]),
        )
    };
    let in_json = |uid: &str| {
        (
            JSON,
            lease_list(json!([{"metadata": {"name": "a", "uid": uid}}]))
                .to_string()
                .into_bytes(),
        )
    };
    let uid = |(content_type, body): (&str, Vec<u8>)| {
        let mut list = LeaseList::default();
        read_page(content_type, &body, &mut list).expect("a page");
        list.iter().next().expect("a lease").uid
    };
    assert_eq!(uid(in_protobuf("first")), LeaseUid::from("first"));
    assert_eq!(
        uid(in_json("first")),
        LeaseUid::from("first"),
        "whichever form it came in"
    );
    assert_ne!(uid(in_protobuf("first")), uid(in_protobuf("second")));
    assert_ne!(uid(in_json("first")), uid(in_json("second")));
}

#[test]
fn nodes_in_json_take_no_more_memory_while_they_are_read_than_may_be_kept() {
    let node = json!({"status": {"conditions": vec![json!({"status": "True"}); 19]}}).to_string();
    let mut list = br#"{"kind":"NodeList","metadata":{"resourceVersion":"7"},"items":["#.to_vec();
    while list.len() + node.len() < 8 << 20 {
        list.extend_from_slice(node.as_bytes());
        list.push(b',');
    }
    list.pop();
    list.extend_from_slice(b"]}");
    let mut refused = None;
    let most =
        allocation_counter::measure(|| refused = Some(nodes(JSON, list.clone()).err())).bytes_max;
    assert!(
        matches!(refused, Some(Some(DecodeError::TooMuch))),
        "{refused:?}"
    );
    // The text itself, what may be kept of it, and the growth of the table.
    assert!(most < 20 << 20, "{} MiB", most >> 20);
}
