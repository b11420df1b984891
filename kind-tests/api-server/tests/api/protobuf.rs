//! The wire form, read by a decoder that knows nothing of the encoder: fields by number, straight
//! from the bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use api_server::protobuf;
use serde_json::json;

use crate::client::ApiBed;

const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";

/// The fields of a message: their numbers, and what they hold as a number or as bytes. Fixed-size
/// fields do not occur in what is read here.
fn fields(mut message: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = varint(&mut message);
        let length = match key & 7 {
            0 => 0,
            2 => usize::try_from(value).unwrap(),
            other => panic!("wire type {other}"),
        };
        let (content, rest) = message.split_at(length);
        message = rest;
        found.push((key >> 3, value, content));
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
        shift += 7;
    }
}

fn all(message: &[u8], number: u64) -> Vec<&[u8]> {
    fields(message)
        .into_iter()
        .filter(|field| field.0 == number)
        .map(|field| field.2)
        .collect()
}

fn bytes(message: &[u8], number: u64) -> &[u8] {
    all(message, number)
        .pop()
        .unwrap_or_else(|| panic!("field {number} is there"))
}

fn text(message: &[u8], number: u64) -> String {
    String::from_utf8(bytes(message, number).to_vec()).unwrap()
}

fn number(message: &[u8], number: u64) -> u64 {
    fields(message)
        .into_iter()
        .find(|field| field.0 == number)
        .unwrap_or_else(|| panic!("field {number} is there"))
        .1
}

async fn raw(bed: &ApiBed, path: &str, kind: &str) -> Vec<u8> {
    let answer = bed
        .send(bed.request("GET", path).header("accept", BOTH))
        .await
        .unwrap();
    assert_eq!(
        answer.headers["content-type"],
        "application/vnd.kubernetes.protobuf"
    );
    let envelope = answer.body.strip_prefix(b"k8s\0").expect("the magic");
    assert_eq!(text(bytes(envelope, 1), 2), kind);
    bytes(envelope, 2).to_vec()
}

#[tokio::test]
async fn computed_lists_come_page_by_page_and_are_asked_for_each_time() {
    let bed = ApiBed::start().await;
    let asked = AtomicU64::new(0);
    bed.server.computed().set("nodes", move || {
        let moment = asked.fetch_add(1, Ordering::Relaxed);
        (0..5)
            .map(|at| {
                protobuf::node(
                    &json!({"metadata": {"name": format!("n-{at}"), "uid": moment.to_string()}}),
                )
            })
            .collect()
    });
    let mut next = String::new();
    let pages = [
        (vec!["n-0", "n-1"], Some(3)),
        (vec!["n-2", "n-3"], Some(1)),
        (vec!["n-4"], None),
    ];
    for (moment, (names, left)) in pages.iter().enumerate() {
        let list = raw(
            &bed,
            &format!("/api/v1/nodes?limit=2&continue={next}"),
            "NodeList",
        )
        .await;
        let nodes: Vec<&[u8]> = all(&list, 2).iter().map(|node| bytes(node, 1)).collect();
        assert_eq!(
            nodes
                .iter()
                .map(|metadata| text(metadata, 1))
                .collect::<Vec<_>>(),
            *names
        );
        assert!(
            nodes
                .iter()
                .all(|metadata| text(metadata, 5) == moment.to_string())
        );
        let remaining = fields(bytes(&list, 1))
            .into_iter()
            .find(|field| field.0 == 4);
        assert_eq!(remaining.map(|field| field.1), *left);
        next = text(bytes(&list, 1), 3);
    }
    assert!(next.is_empty(), "{next}");
    assert_eq!(bed.get("/api/v1/nodes").await.code, 406);
    assert!(bed.server.requests().bytes() > 100);
}

#[tokio::test]
async fn errors_come_in_the_accepted_form() {
    let bed = ApiBed::start().await;
    let status = raw(&bed, "/api/v1/nodes/none", "Status").await;
    assert_eq!(
        (text(&status, 2), text(&status, 4), number(&status, 6)),
        ("Failure".into(), "NotFound".into(), 404)
    );
    assert_eq!(text(bytes(&status, 5), 1), "none");
}
