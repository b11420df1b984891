//! Answers of an API server as a real one gives them for kubelets' leases and nodes: owner
//! references, managed fields, labels, images and all. Written by the rules of the formats alone:
//! none of this comes from the code under test.

#![allow(
    dead_code,
    reason = "several programs share this file and each uses a part of it"
)]

use api_server::protobuf;
use api_server::protobuf::wire::{envelope, message, number, push, text, time};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use testbed::full_size;
pub use testbed::full_size::node_name as name;

/// Go's HTTP server sends what is written to it in chunks of its buffer's size.
pub const CHUNK: usize = 2048;

const VERSION: &str = "1234567";

/// When node `number` of `count` renewed last, if the list is read at `read`: kubelets renew every
/// 10 s, each at a phase of its own.
pub fn renewed(number: usize, count: usize, read: DateTime<Utc>) -> DateTime<Utc> {
    let age = TimeDelta::microseconds(10_000_000 * number as i64 / count as i64);
    DateTime::from_timestamp_micros((read - age).timestamp_micros()).expect("a calendar date")
}

/// The messages of leases.
pub fn leases(count: usize, read: DateTime<Utc>) -> Vec<Bytes> {
    let metadata = numbered(&protobuf::lease(
        &json!({"metadata": full_size::lease(0)["metadata"]}),
    ));
    let spec = |at| {
        message(
            2,
            &[
                text(1, &name(at)),
                number(2, 40),
                time(4, renewed(at, count, read)),
            ],
        )
    };
    (0..count)
        .map(|at| [metadata(at), spec(at)].concat().into())
        .collect()
}

/// The messages of nodes: 500 come to about 5 MB, as on a real cluster, most of it the images.
pub fn nodes(count: usize) -> Vec<Bytes> {
    let node = numbered(&protobuf::node(&full_size::node(0)));
    (0..count).map(|at| node(at).into()).collect()
}

/// A LeaseList.
pub fn lease_list(count: usize, read: DateTime<Utc>) -> Vec<u8> {
    list("coordination.k8s.io/v1", "LeaseList", &leases(count, read))
}

/// A page of a NodeList.
pub fn node_list(count: usize) -> Vec<u8> {
    list("v1", "NodeList", &nodes(count))
}

fn list(version: &str, kind: &str, items: &[Bytes]) -> Vec<u8> {
    let mut list = message(1, &[text(1, ""), text(2, VERSION), text(3, "")]);
    items.iter().for_each(|item| push(&mut list, 2, item));
    envelope(version, kind, &list)
}

/// The same message for any number: all names are equally long, so that one takes the place of
/// another. To encode thousands of nodes one by one takes too long where a test does so.
fn numbered(first: &[u8]) -> impl Fn(usize) -> Vec<u8> + use<> {
    let first = first.to_vec();
    let old = name(0);
    let is_name = |(_, bytes): &(usize, &[u8])| *bytes == old.as_bytes();
    let places: Vec<usize> = first
        .windows(old.len())
        .enumerate()
        .filter(is_name)
        .map(|(place, _)| place)
        .collect();
    move |number| {
        let (mut message, name) = (first.clone(), name(number));
        places
            .iter()
            .for_each(|place| message[*place..][..name.len()].copy_from_slice(name.as_bytes()));
        message
    }
}
