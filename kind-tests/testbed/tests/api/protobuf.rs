//! The wire form, read by a decoder that knows nothing of the encoder: fields by number, straight from the bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use testbed::api::{Heart, Nodes, Options, protobuf};

use crate::client::Bed;

const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";

/// The fields of a message: numbers with their content. Fixed-size fields do not occur in what is read here.
#[derive(Clone, Debug, PartialEq)]
enum Content {
    Number(u64),
    Bytes(Vec<u8>),
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

fn fields(mut bytes: &[u8]) -> Vec<(u64, Content)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let content = match key & 7 {
            0 => Content::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Content::Bytes(content.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, content));
    }
    found
}

fn all(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let wanted = fields(message).into_iter().filter(|(found, _)| *found == number);
    wanted.filter_map(|(_, content)| if let Content::Bytes(bytes) = content { Some(bytes) } else { None }).collect()
}

fn bytes(message: &[u8], number: u64) -> Vec<u8> {
    all(message, number).pop().unwrap_or_else(|| panic!("field {number} is there"))
}

fn text(message: &[u8], number: u64) -> String {
    String::from_utf8(bytes(message, number)).unwrap()
}

fn number(message: &[u8], number: u64) -> u64 {
    let found = fields(message).into_iter().find(|(found, _)| *found == number);
    let Some((_, Content::Number(value))) = found else { panic!("field {number} is a number: {found:?}") };
    value
}

async fn raw(bed: &Bed, path: &str, kind: &str) -> Vec<u8> {
    let answer = bed.send(bed.request("GET", path).header("accept", BOTH)).await.unwrap();
    assert_eq!(answer.headers["content-type"], "application/vnd.kubernetes.protobuf");
    let envelope = answer.body.strip_prefix(b"k8s\0").expect("the magic");
    assert_eq!(text(&bytes(envelope, 1), 2), kind);
    bytes(envelope, 2)
}

#[tokio::test]
async fn lease_lists_carry_names_and_renewals() {
    let bed = Bed::start().await;
    let nodes = Nodes::start(bed.server.store(), "n", 100, Heart::default());
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    nodes.cut_all();
    let list = raw(&bed, path, "LeaseList").await;
    let json = bed.get(path).await.json();
    assert_eq!(text(&bytes(&list, 1), 2), json["metadata"]["resourceVersion"].as_str().unwrap());
    let leases = all(&list, 2);
    assert_eq!(leases.len(), 100);
    for (lease, json) in leases.iter().zip(json["items"].as_array().unwrap()) {
        assert_eq!(text(&bytes(lease, 1), 1), json["metadata"]["name"].as_str().unwrap());
        assert_eq!(text(&bytes(lease, 1), 3), "kube-node-lease");
        let spec = bytes(lease, 2);
        assert_eq!(number(&spec, 2), 40);
        let stamp = chrono::DateTime::parse_from_rfc3339(json["spec"]["renewTime"].as_str().unwrap()).unwrap();
        let renewed = bytes(&spec, 4);
        assert_eq!(i64::try_from(number(&renewed, 1)).unwrap(), stamp.timestamp());
        let nanos = if stamp.timestamp_subsec_nanos() == 0 { 0 } else { number(&renewed, 2) };
        assert_eq!(nanos, u64::from(stamp.timestamp_subsec_nanos()));
    }
}

#[tokio::test]
async fn node_lists_carry_labels_annotations_and_conditions_page_by_page() {
    let bed = Bed::start().await;
    let _nodes = Nodes::start(bed.server.store(), "n", 3, Heart::default());
    let list = raw(&bed, "/api/v1/nodes?limit=2", "NodeList").await;
    assert!(!text(&bytes(&list, 1), 3).is_empty());
    assert_eq!(number(&bytes(&list, 1), 4), 1);
    let node = all(&list, 2).remove(0);
    let metadata = bytes(&node, 1);
    let labels: Vec<(String, String)> = all(&metadata, 11).iter().map(|entry| (text(entry, 1), text(entry, 2))).collect();
    assert!(labels.contains(&("worker.gardener.cloud/pool".into(), "worker".into())), "{labels:?}");
    assert_eq!(all(&metadata, 12).len(), 1);
    let conditions: Vec<(String, String)> =
        all(&bytes(&node, 3), 4).iter().map(|condition| (text(condition, 1), text(condition, 2))).collect();
    assert!(conditions.contains(&("DiskPressure".into(), "False".into())), "{conditions:?}");
    assert!(conditions.contains(&("Ready".into(), "True".into())), "{conditions:?}");
}

#[tokio::test]
async fn computed_lists_come_page_by_page_and_are_asked_for_each_time() {
    let bed = Bed::start().await;
    let asked = AtomicU64::new(0);
    bed.server.computed().set("nodes", move || {
        let moment = asked.fetch_add(1, Ordering::Relaxed);
        (0..5).map(|at| protobuf::node(&json!({"metadata": {"name": format!("n-{at}"), "uid": moment.to_string()}}))).collect()
    });
    let mut next = String::new();
    for (moment, names) in [vec!["n-0", "n-1"], vec!["n-2", "n-3"], vec!["n-4"]].iter().enumerate() {
        let list = raw(&bed, &format!("/api/v1/nodes?limit=2&continue={next}"), "NodeList").await;
        let nodes: Vec<Vec<u8>> = all(&list, 2).iter().map(|node| bytes(node, 1)).collect();
        assert_eq!(nodes.iter().map(|metadata| text(metadata, 1)).collect::<Vec<_>>(), *names);
        assert!(nodes.iter().all(|metadata| text(metadata, 5) == moment.to_string()));
        next = text(&bytes(&list, 1), 3);
    }
    assert!(next.is_empty(), "{next}");
    assert_eq!(bed.get("/api/v1/nodes").await.code, 406);
    assert!(bed.server.requests().bytes() > 100);
}

#[tokio::test]
async fn errors_come_in_the_accepted_form() {
    let bed = Bed::start().await;
    let status = raw(&bed, "/api/v1/nodes/none", "Status").await;
    assert_eq!((text(&status, 2), text(&status, 4), number(&status, 6)), ("Failure".into(), "NotFound".into(), 404));
    assert_eq!(text(&bytes(&status, 5), 1), "none");
}

#[tokio::test]
async fn kinds_and_servers_without_protobuf_answer_json() {
    let bed = Bed::start().await;
    let request = bed.request("GET", "/apis/machine.sapcloud.io/v1alpha1/machines").header("accept", BOTH);
    assert_eq!(bed.send(request).await.unwrap().json()["kind"], "MachineList");
    let bed = Bed::with(Options { json_only: true, ..Options::default() }).await;
    let answer = bed.send(bed.request("GET", "/api/v1/nodes").header("accept", BOTH)).await.unwrap();
    assert_eq!(answer.json()["items"], json!([]));
    let only = bed.request("GET", "/api/v1/nodes").header("accept", "application/vnd.kubernetes.protobuf");
    assert_eq!(bed.send(only).await.unwrap().code, 406);
}
