//! Answers of an API server as a real one gives them for kubelets' leases and nodes: owner references, managed fields, labels, images and
//! all. Written by the rules of the formats alone: none of this comes from the code under test.

#![allow(dead_code, reason = "several programs share this file and each uses a part of it")]

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
pub use testbed::api::protobuf::wire::MEDIA_TYPE as PROTOBUF;
use testbed::api::protobuf::wire::{entry, envelope, message, number, text, time};

/// The content type of the other form.
pub const JSON: &str = "application/json";

const POOL: &str = "worker-a1b2c";
const UID: &str = "0b9a3c52-7d1f-4f7e-9a53-3f0e6f0b8d11";
const FIELDS: &str = r#"{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"0b9a3c52-7d1f-4f7e-9a53-3f0e6f0b8d11\"}":{}}},"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}}"#;

/// A name such as Gardener gives to nodes. With the numbers ascending, names come in the order of an API server.
pub fn name(number: usize) -> String {
    format!("shoot--garden-dev--load-{POOL}-z{}-5d8f7-{number:05}", number / 2_000 + 1)
}

/// When node `number` of `count` renewed last, if the list is read at `read`: kubelets renew every 10 s, each at a phase of its own.
pub fn renewed(number: usize, count: usize, read: DateTime<Utc>) -> DateTime<Utc> {
    let age = TimeDelta::microseconds(10_000_000 * number as i64 / count as i64);
    DateTime::from_timestamp_micros((read - age).timestamp_micros()).expect("a calendar date")
}

/// A LeaseList in protobuf.
pub fn leases_protobuf(count: usize, read: DateTime<Utc>) -> Vec<u8> {
    let lease = |at| {
        let name = name(at);
        let owner = [text(1, "Node"), text(3, &name), text(4, UID), text(5, "v1")];
        let metadata = metadata(&name, "kube-node-lease", &[message(13, &owner), managed("coordination.k8s.io/v1")]);
        message(2, &[metadata, message(2, &[text(1, &name), number(2, 40), time(4, renewed(at, count, read))])])
    };
    list("coordination.k8s.io/v1", "LeaseList", (0..count).map(lease).collect())
}

/// A LeaseList in JSON.
pub fn leases_json(count: usize, read: DateTime<Utc>) -> Vec<u8> {
    let lease = |number| {
        let (name, stamp) = (name(number), renewed(number, count, read).to_rfc3339_opts(SecondsFormat::Micros, true));
        json!({"metadata": {"name": name, "namespace": "kube-node-lease", "uid": UID, "resourceVersion": "1234567",
                "creationTimestamp": "2026-03-01T12:00:07Z",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": UID}],
                "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "coordination.k8s.io/v1",
                    "time": "2026-03-01T12:00:07Z", "fieldsType": "FieldsV1",
                    "fieldsV1": serde_json::from_str::<Value>(FIELDS).expect("JSON")}]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp}})
    };
    let list = json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {"resourceVersion": "1234567"},
        "items": (0..count).map(lease).collect::<Vec<_>>()});
    list.to_string().into_bytes()
}

/// A NodeList page in protobuf: 500 nodes come to about 5 MB, as on a real cluster, most of it the images.
pub fn nodes_protobuf(count: usize) -> Vec<u8> {
    let images: Vec<Vec<u8>> = (0..50)
        .map(|image| {
            let names = [
                text(1, &format!("registry.example/garden/image-{image}@sha256:{}", "ab".repeat(32))),
                text(1, &format!("registry.example/garden/image-{image}:v1.2.{image}")),
            ];
            message(8, &[names.concat(), number(2, 123_456_789)])
        })
        .collect();
    let node = |number| {
        let name = name(number);
        let labels = (0..15).map(|label| entry(11, &format!("node.kubernetes.io/label-{label}"), "some-value"));
        let pool = [entry(11, "worker.gardener.cloud/pool", POOL), entry(11, "kubernetes.io/hostname", &name)];
        let annotations = (0..8)
            .map(|key| entry(12, &format!("csi.volume.kubernetes.io/annotation-{key}"), "some longer value of an annotation"));
        let marks: Vec<Vec<u8>> = labels.chain(pool).chain(annotations).chain([managed("v1")]).collect();
        let conditions: Vec<Vec<u8>> = CONDITIONS
            .map(|(kind, status, reason)| {
                let times = [time(3, DateTime::UNIX_EPOCH), time(4, DateTime::UNIX_EPOCH)].concat();
                message(
                    4,
                    &[
                        text(1, kind),
                        text(2, status),
                        times,
                        text(5, reason),
                        text(6, "what the kubelet says about it at some length"),
                    ],
                )
            })
            .to_vec();
        let spec = message(2, &[text(1, "100.64.0.0/24"), text(3, &format!("aws:///eu-west-1/{name}"))]);
        let status = message(3, &[conditions.concat(), images.concat()]);
        message(2, &[metadata(&name, "", &marks), spec, status])
    };
    list("v1", "NodeList", (0..count).map(node).collect())
}

const CONDITIONS: [(&str, &str, &str); 10] = [
    ("KernelDeadlock", "False", "KernelHasNoDeadlock"),
    ("ReadonlyFilesystem", "False", "FilesystemIsNotReadOnly"),
    ("CorruptDockerOverlay2", "False", "NoCorruptDockerOverlay2"),
    ("FrequentKubeletRestart", "False", "NoFrequentKubeletRestart"),
    ("NetworkUnavailable", "False", "CalicoIsUp"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("InPlaceUpdate", "True", "CandidateForUpdate"),
    ("Ready", "True", "KubeletReady"),
];

fn list(version: &str, kind: &str, items: Vec<Vec<u8>>) -> Vec<u8> {
    let object = [message(1, &[text(1, ""), text(2, "1234567"), text(3, "")]), items.concat()];
    envelope(version, kind, &object.concat())
}

fn metadata(name: &str, namespace: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let begin = [text(1, name), text(2, ""), text(3, namespace), text(4, ""), text(5, UID), text(6, "1234567"), number(7, 0)];
    message(1, &[begin.concat(), time(8, DateTime::UNIX_EPOCH), more.concat()])
}

fn managed(version: &str) -> Vec<u8> {
    let raw = message(7, &[text(1, FIELDS)]);
    message(
        17,
        &[
            text(1, "kubelet"),
            text(2, "Update"),
            text(3, version),
            time(4, DateTime::UNIX_EPOCH),
            text(6, "FieldsV1"),
            raw,
            text(8, ""),
        ],
    )
}
