//! Lists of leases and nodes from an API server that may be anything.

use arbitrary::Arbitrary;
use chrono::DateTime;
use prober::core::lease::LeaseList;
use prober::core::verdict::NodeRecord;
use prober::shoot_client::wire::{self, DecodeError};
use serde_json::{Map, Value, json};

use super::protobuf::{MEDIA_TYPE as PROTOBUF, bytes, entry, number, text, time};

const JSON: &str = "application/json";

/// An answer as it came.
#[derive(Arbitrary, Debug)]
pub struct Answer<'a> {
    is_protobuf: bool,
    /// Puts what every protobuf body begins with before the bytes, so that not every input has to find it.
    is_framed: bool,
    body: &'a [u8],
}

/// A list that is taken has no more in it than its bytes can say; one that is refused is refused in a few words.
pub fn check_answer(answer: &Answer<'_>) {
    let mut body = Vec::new();
    for kind in ["LeaseList", "NodeList"] {
        body.clear();
        if answer.is_framed {
            let type_meta = [text(1, "v1"), text(2, kind)].concat();
            body.extend([b"k8s\0".as_slice(), &bytes(1, &type_meta), &bytes(2, answer.body)].concat());
        } else {
            body.extend(answer.body);
        }
        let content_type = if answer.is_protobuf { PROTOBUF } else { JSON };
        let mut leases = LeaseList::default();
        match wire::leases(content_type, &body, &mut leases) {
            Ok(_) => {
                // An item needs two bytes at least.
                assert!(leases.iter().count() <= body.len() / 2);
                assert!(leases.iter().map(|lease| lease.name.len()).sum::<usize>() <= body.len());
            }
            Err(refusal) => must_be_short(&refusal),
        }
        let mut nodes = Vec::new();
        match wire::nodes(content_type, &body, &mut nodes) {
            Ok(_) => {
                assert!(nodes.len() <= body.len() / 2);
                let conditions = nodes.iter().flat_map(|node| &node.conditions);
                assert!(conditions.map(|c| c.kind.len() + c.status.len() + c.reason.len()).sum::<usize>() <= body.len());
            }
            Err(refusal) => must_be_short(&refusal),
        }
    }
}

fn must_be_short(refusal: &DecodeError) {
    super::must_be_one_line(&refusal.to_string());
}

/// A list by what it holds.
#[derive(Arbitrary, Debug)]
pub struct Lists {
    version: u32,
    next: String,
    leases: Vec<Lease>,
    nodes: Vec<Node>,
    /// A field that is not known here, between all that are.
    unknown: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct Lease {
    name: String,
    duration: Option<i32>,
    /// Microseconds, the precision that JSON carries.
    renewed: Option<u64>,
}

#[derive(Arbitrary, Debug)]
struct Node {
    name: String,
    pool: Option<String>,
    not_managed: bool,
    conditions: Vec<(Kind, bool, String)>,
}

#[derive(Arbitrary, Debug)]
enum Kind {
    InPlaceUpdate,
    DiskPressure,
    Other(String),
}

impl Kind {
    fn name(&self) -> &str {
        match self {
            Self::InPlaceUpdate => "InPlaceUpdate",
            Self::DiskPressure => "DiskPressure",
            Self::Other(name) => name,
        }
    }
}

/// 1,000 years, within any calendar.
const SPAN: u64 = 1_000 * 365 * 86_400 * 1_000_000;

/// What a list holds is what is read from either form of it; cut anywhere, it is no list.
pub fn check_lists(lists: &Lists) {
    let next = (!lists.next.is_empty()).then(|| lists.next.clone());
    let meta = json!({"resourceVersion": lists.version.to_string(), "continue": lists.next});
    let list_meta = bytes(1, &[text(2, &lists.version.to_string()), text(3, &lists.next)].concat());

    let items: Vec<Value> = lists.leases.iter().map(Lease::json).collect();
    let in_json = json!({"kind": "LeaseList", "metadata": meta, "items": items}).to_string();
    let items: Vec<Vec<u8>> = lists.leases.iter().map(|lease| lease.protobuf(&lists.unknown)).collect();
    let in_protobuf = envelope("LeaseList", &[bytes(90, &lists.unknown), list_meta.clone(), items.concat()].concat());
    for (content_type, body) in [(JSON, in_json.as_bytes()), (PROTOBUF, &in_protobuf)] {
        let mut read = LeaseList::default();
        assert_eq!(wire::leases(content_type, body, &mut read).expect("a whole list"), next, "{content_type}");
        let read: Vec<_> = read.iter().map(|lease| (lease.name.to_owned(), lease.duration_seconds, lease.renew_time)).collect();
        let held: Vec<_> = lists.leases.iter().map(|lease| (lease.name.clone(), lease.duration, lease.stamp())).collect();
        assert_eq!(read, held, "{content_type}");
        let cut = body.len() - 1 - lists.version as usize % body.len();
        let is_list = wire::leases(content_type, &body[..cut], &mut LeaseList::default()).is_ok();
        assert!(!is_list, "{cut} of {} bytes, {content_type}", body.len());
    }

    let items: Vec<Value> = lists.nodes.iter().map(Node::json).collect();
    let in_json = json!({"kind": "NodeList", "metadata": meta, "items": items}).to_string();
    let items: Vec<Vec<u8>> = lists.nodes.iter().map(|node| node.protobuf(&lists.unknown)).collect();
    let in_protobuf = envelope("NodeList", &[list_meta, items.concat(), bytes(90, &lists.unknown)].concat());
    let [mut from_json, mut from_protobuf] = [Vec::new(), Vec::new()];
    assert_eq!(wire::nodes(JSON, in_json.as_bytes(), &mut from_json).expect("a whole list"), next);
    assert_eq!(wire::nodes(PROTOBUF, &in_protobuf, &mut from_protobuf).expect("a whole list"), next);
    assert_eq!(from_json, from_protobuf);
    assert_eq!(from_json.len(), lists.nodes.len());
    lists.nodes.iter().zip(&from_json).for_each(|(node, read)| node.must_be(read));
}

impl Lease {
    fn stamp(&self) -> Option<DateTime<chrono::Utc>> {
        DateTime::from_timestamp_micros((self.renewed? % SPAN) as i64)
    }

    fn json(&self) -> Value {
        let stamp = self.stamp().map(|stamp| stamp.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
        json!({"metadata": {"name": self.name, "new": [1]}, "spec": {"leaseDurationSeconds": self.duration, "renewTime": stamp}})
    }

    fn protobuf(&self, unknown: &[u8]) -> Vec<u8> {
        let mut spec = vec![bytes(77, unknown)];
        spec.extend(self.duration.map(|seconds| number(2, i64::from(seconds))));
        spec.extend(self.stamp().map(|stamp| time(4, stamp)));
        bytes(2, &[bytes(1, &text(1, &self.name)), bytes(2, &spec.concat())].concat())
    }
}

const POOL: &str = "worker.gardener.cloud/pool";
const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";

impl Node {
    fn json(&self) -> Value {
        let labels: Map<String, Value> = self.pool.iter().map(|pool| (POOL.to_owned(), json!(pool))).collect();
        let annotations = if self.not_managed { json!({NOT_MANAGED: ""}) } else { json!({"other": "x"}) };
        let conditions: Vec<Value> = self
            .conditions
            .iter()
            .map(|(kind, is_true, reason)| json!({"type": kind.name(), "status": status(*is_true), "reason": reason}))
            .collect();
        json!({"metadata": {"name": self.name, "labels": labels, "annotations": annotations}, "status": {"conditions": conditions}})
    }

    fn protobuf(&self, unknown: &[u8]) -> Vec<u8> {
        let mut metadata = vec![text(1, &self.name)];
        metadata.extend(self.pool.as_ref().map(|pool| entry(11, POOL, pool)));
        metadata.push(if self.not_managed { entry(12, NOT_MANAGED, "") } else { entry(12, "other", "x") });
        let condition = |(kind, is_true, reason): &(Kind, bool, String)| {
            bytes(4, &[text(1, kind.name()), text(2, status(*is_true)), bytes(99, unknown), text(5, reason)].concat())
        };
        let status: Vec<u8> = self.conditions.iter().flat_map(condition).collect();
        bytes(2, &[bytes(1, &metadata.concat()), bytes(2, unknown), bytes(3, &status)].concat())
    }

    /// What is read is what there is, but for conditions that cannot matter.
    fn must_be(&self, read: &NodeRecord) {
        assert_eq!((&read.name, &read.pool, read.not_managed_by_mcm), (&self.name, &self.pool, self.not_managed));
        let matters = |(kind, is_true, reason): &&(Kind, bool, String)| {
            (*is_true || kind.name() == "InPlaceUpdate") && kind.name().len().max(reason.len()) <= 1024
        };
        let held: Vec<_> = self
            .conditions
            .iter()
            .filter(matters)
            .take(64)
            .map(|(kind, is_true, reason)| [kind.name(), status(*is_true), reason])
            .collect();
        let read: Vec<_> = read.conditions.iter().map(|c| [c.kind.as_str(), &c.status, &c.reason]).collect();
        assert_eq!(read, held);
    }
}

fn status(is_true: bool) -> &'static str {
    if is_true { "True" } else { "False" }
}

/// Kubernetes' envelope: magic, then runtime.Unknown with typeMeta (1) and raw (2). Ends with what a cut would break.
fn envelope(kind: &str, object: &[u8]) -> Vec<u8> {
    [b"k8s\0".as_slice(), &bytes(1, &[text(1, "v1"), text(2, kind)].concat()), &bytes(2, object)].concat()
}
