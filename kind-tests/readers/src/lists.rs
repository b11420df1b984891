//! Lists of leases and nodes as an API server writes them, in either form, whole and damaged, and from one that may be anything.

use std::fmt::Debug;
use std::marker::PhantomData;

use anyhow::{Context, Error, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::DateTime;
use prober::core::lease::LeaseList;
use prober::core::verdict::NodeRecord;
use prober::shoot_client::wire::{self, DecodeError, Next};
use serde_json::{Value, json};

use crate::protobuf::{MEDIA_TYPE as PROTOBUF, bytes, entry, number, text, time};
use crate::{Go, Input, Source, is_one_line};

const JSON: &str = "application/json";
const POOL: &str = "worker.gardener.cloud/pool";
const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";

/// What a list of leases is read into.
pub type Leases = LeaseList;
/// What a list of nodes is read into.
pub type Nodes = Vec<NodeRecord>;

/// What a list is read into.
pub trait Listed: Debug + Default {
    /// The list's `kind`.
    const KIND: &'static str;
    /// The list's `apiVersion`.
    const API_VERSION: &'static str;

    /// An item whose texts are patterns.
    fn template() -> Value;

    /// An item in protobuf, with a field that is not known here between all that are.
    fn protobuf(item: &Value, unknown: &[u8]) -> Vec<u8>;

    /// What an item holds, in the words of the Go program.
    fn held(item: &Value) -> Value;

    /// Reads a list in either form.
    ///
    /// # Errors
    /// When it is none.
    fn read(&mut self, content_type: &str, body: &[u8]) -> Result<Next, DecodeError>;

    /// What was read, in the words of the Go program.
    fn shown(&self) -> Vec<Value>;
}

/// Patterns of names, of which some are odd, and of the moments of renewals.
const NAME: &str = "([a-z][a-z0-9-]{0,8}|[a-z][a-z0-9-]{0,8}|[a-z][a-z0-9-]{0,8}|\\PC{0,20})";
const RENEWED: &str = "((2026|2026|2026|2026|2026|2026|19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])-([01][1-9]|2[0-8])\
    T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}(Z|Z|Z|Z|[-+]0[0-9]:[0-5]0)\
    |19[0-6][0-9]-01-01T00:00:00\\.[0-9]{6}Z|1970-01-01T00:00:00\\.000000Z)";

impl Listed for Leases {
    const KIND: &'static str = "LeaseList";
    const API_VERSION: &'static str = "coordination.k8s.io/v1";

    fn template() -> Value {
        json!({
            "metadata": {"name": NAME, "namespace": "kube-node-lease", "new": [1],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "[a-z]{1,4}", "uid": "u"}]},
            "spec": {"~leaseDurationSeconds": 0, "~renewTime": RENEWED, "acquireTime": "2026-03-01T12:00:07\\.000001Z",
                "~holderIdentity": "[a-z]{0,4}", "~leaseTransitions": 0},
        })
    }

    fn protobuf(item: &Value, unknown: &[u8]) -> Vec<u8> {
        let mut spec = vec![bytes(77, unknown)];
        spec.extend(item["spec"]["leaseDurationSeconds"].as_i64().map(|seconds| number(2, seconds)));
        spec.extend(renewed(item).map(|stamp| time(4, stamp)));
        bytes(2, &[bytes(1, &text(1, word(&item["metadata"]["name"]))), bytes(2, &spec.concat())].concat())
    }

    fn held(item: &Value) -> Value {
        let stamp = renewed(item).map(|at| json!({"seconds": at.timestamp(), "nanos": at.timestamp_subsec_nanos()}));
        json!({"name": item["metadata"]["name"], "duration": item["spec"]["leaseDurationSeconds"], "renewed": stamp})
    }

    fn read(&mut self, content_type: &str, body: &[u8]) -> Result<Next, DecodeError> {
        wire::leases(content_type, body, self)
    }

    fn shown(&self) -> Vec<Value> {
        let shown = self.iter().map(|lease| {
            // Go cuts off what is less than a microsecond, which no kubelet writes.
            let micros = |nanos: u32| nanos / 1000 * 1000;
            let stamp = lease.renew_time;
            let stamp = stamp.map(|at| json!({"seconds": at.timestamp(), "nanos": micros(at.timestamp_subsec_nanos())}));
            json!({"name": lease.name, "duration": lease.duration_seconds, "renewed": stamp})
        });
        shown.collect()
    }
}

fn renewed(item: &Value) -> Option<DateTime<chrono::FixedOffset>> {
    DateTime::parse_from_rfc3339(word(&item["spec"]["renewTime"])).ok()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Listed for Nodes {
    const KIND: &'static str = "NodeList";
    const API_VERSION: &'static str = "v1";

    fn template() -> Value {
        let optional = |name: &str| format!("~{name}");
        json!({
            "metadata": {"name": NAME, "creationTimestamp": "2026-03-01T12:00:07Z", "new": [1],
                "labels": {optional(POOL): "\\PC{0,4}", "~[a-z]{0,3}": "\\PC{0,4}"},
                "annotations": {optional(NOT_MANAGED): "\\PC{0,4}", "~[a-z]{0,3}": "\\PC{0,4}"}},
            "spec": {"providerID": "local:///x", "podCIDRs": ["10\\.0\\.0\\.0/24"], "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4", "memory": "16Gi"},
                "addresses": [{"type": "InternalIP", "address": "10\\.0\\.0\\.1"}],
                "images": [{"names": ["a"], "sizeBytes": 5}], "nodeInfo": {"kubeletVersion": "v1\\.35\\.1"},
                "conditions": [{
                    "type": "(Ready|DiskPressure|InPlaceUpdate|\\PC{0,3})",
                    "status": "(True|False|Unknown|)",
                    // At times longer than any controller writes.
                    "reason": "(UpdateFailed|ReadyForUpdate|\\PC{0,3})(||||||||||||||||||||(long){300})",
                    "message": "\\PC{0,6}",
                    "lastHeartbeatTime": "2026-03-01T12:00:07Z",
                }]},
        })
    }

    fn protobuf(item: &Value, unknown: &[u8]) -> Vec<u8> {
        let mut metadata = text(1, word(&item["metadata"]["name"]));
        for (field, name) in [(11, "labels"), (12, "annotations")] {
            let entries = item["metadata"][name].as_object().into_iter().flatten();
            metadata.extend(entries.flat_map(|(key, value)| entry(field, key, word(value))));
        }
        let condition = |one: &Value| {
            let [kind, status, reason] = ["type", "status", "reason"].map(|field| word(&one[field]));
            bytes(4, &[text(1, kind), text(2, status), bytes(99, unknown), text(5, reason)].concat())
        };
        let status: Vec<u8> = item["status"]["conditions"].as_array().into_iter().flatten().flat_map(condition).collect();
        bytes(2, &[bytes(1, &metadata), bytes(2, unknown), bytes(3, &status)].concat())
    }

    fn held(item: &Value) -> Value {
        let (metadata, conditions) = (&item["metadata"], item["status"]["conditions"].as_array());
        let conditions = conditions.into_iter().flatten().map(|one| json!([one["type"], one["status"], one["reason"]]));
        let not_managed = !metadata["annotations"][NOT_MANAGED].is_null();
        let conditions: Value = conditions.collect();
        json!({"name": metadata["name"], "pool": metadata["labels"][POOL], "notManaged": not_managed, "conditions": conditions})
    }

    fn read(&mut self, content_type: &str, body: &[u8]) -> Result<Next, DecodeError> {
        wire::nodes(content_type, body, self)
    }

    fn shown(&self) -> Vec<Value> {
        let shown = self.iter().map(|node| {
            let conditions: Vec<_> = node.conditions.iter().map(|c| [&c.kind, &c.status, &c.reason]).collect();
            json!({"name": node.name, "pool": node.pool, "notManaged": node.not_managed_by_mcm, "conditions": conditions})
        });
        shown.collect()
    }
}

/// A list by what it holds.
#[derive(Debug)]
pub struct Whole<T> {
    list: Value,
    unknown: Vec<u8>,
    /// After how many bytes it is cut off.
    cut: usize,
    read_as: PhantomData<T>,
}

impl<T: Listed> Whole<T> {
    fn items(&self) -> impl Iterator<Item = &Value> {
        self.list["items"].as_array().into_iter().flatten()
    }

    /// In either form.
    fn bodies(&self) -> [(&'static str, Vec<u8>); 2] {
        let meta = bytes(1, &[text(2, "7"), text(3, word(&self.list["metadata"]["continue"]))].concat());
        let items: Vec<u8> = self.items().flat_map(|item| T::protobuf(item, &self.unknown)).collect();
        let in_protobuf = envelope(T::KIND, &[bytes(90, &self.unknown), meta, items].concat());
        [(JSON, self.list.to_string().into_bytes()), (PROTOBUF, in_protobuf)]
    }
}

/// Kubernetes' envelope: magic, then runtime.Unknown with typeMeta (1) and raw (2). Ends with what a cut would break.
fn envelope(kind: &str, object: &[u8]) -> Vec<u8> {
    [b"k8s\0".as_slice(), &bytes(1, &[text(1, "v1"), text(2, kind)].concat()), &bytes(2, object)].concat()
}

impl<T: Listed> Input for Whole<T> {
    fn make(source: &mut Source<'_>) -> Self {
        let meta = json!({"resourceVersion": "[0-9]{1,6}", "continue": "(|||[a-zA-Z0-9+/=]{1,12})", "remainingItemCount": 7});
        let mut list = source.filled(&json!({"metadata": meta, "items": [T::template()]}));
        (list["kind"], list["apiVersion"]) = (json!(T::KIND), json!(T::API_VERSION));
        Self { list, unknown: source.list(4, Source::any), cut: source.below(10_000), read_as: PhantomData }
    }

    /// What a list holds is what is read from either form of it; cut anywhere, it is no list.
    fn check(&self) -> Result<()> {
        let items: Vec<Value> = self.items().map(T::held).collect();
        let holds = held(json!({"continue": self.list["metadata"]["continue"], "items": items}));
        for (content_type, body) in self.bodies() {
            let ours = read::<T>(content_type, &body)?;
            ensure!(holds == ours, "{content_type}: {ours} instead of {holds}");
            let cut = self.cut % body.len();
            ensure!(read::<T>(content_type, &body[..cut]).is_err(), "{cut} of {} bytes, {content_type}", body.len());
        }
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        let Encoded { bodies, holds } = Encoded::by(go, &self.list)?;
        for (form, content_type, body) in bodies {
            let ours = read::<T>(content_type, &body).with_context(|| format!("as {form}"))?;
            ensure!(holds == ours, "as {form}: Go holds {holds}, we {ours}");
        }
        Ok(())
    }
}

/// Reads a list; all that it says.
fn read<T: Listed>(content_type: &str, body: &[u8]) -> Result<Value, DecodeError> {
    let mut items = T::default();
    let next = items.read(content_type, body)?;
    Ok(json!({"continue": next.unwrap_or_default(), "items": items.shown()}))
}

/// What a list holds, in the words of the Go program, without that for which we have no room. Conditions that are not True do not
/// matter, but for that of an in-place update; nor do those that no controller writes, and more than 64 of a node.
fn held(mut go: Value) -> Value {
    if let Some(page) = go.as_object_mut() {
        page.remove("version");
    }
    for item in go["items"].as_array_mut().into_iter().flatten() {
        // The zero time stands for none, and is written as null in JSON.
        if let Some(stamp) = item.get_mut("renewed")
            && let Some(zero) = stamp.as_object_mut().and_then(|stamp| stamp.remove("zero"))
            && zero == json!(true)
        {
            *stamp = Value::Null;
        }
        if let Some(conditions) = item.get_mut("conditions").and_then(Value::as_array_mut) {
            conditions.retain(|one| {
                let [kind, status, reason] = [0, 1, 2].map(|at| word(&one[at]));
                (status == "True" || kind == "InPlaceUpdate") && kind.len().max(reason.len()) <= 1024
            });
            conditions.truncate(64);
        }
    }
    go
}

/// A list as Go encodes it: its body in either form, and what Go says that it holds.
struct Encoded {
    bodies: [(&'static str, &'static str, Vec<u8>); 2],
    holds: Value,
}

impl Encoded {
    fn by(go: &mut Go, list: &Value) -> Result<Self> {
        let encoded = go.ask(&json!({"encode": list}))?.map_err(Error::msg)?;
        let body = |form| BASE64_STANDARD.decode(word(&encoded[form]));
        let bodies = [("json", JSON, body("json")?), ("protobuf", PROTOBUF, body("protobuf")?)];
        Ok(Self { bodies, holds: held(encoded["holds"].clone()) })
    }
}

/// A list whose bodies are damaged in some places.
#[derive(Debug)]
pub struct Damaged<T> {
    whole: Whole<T>,
    damages: Vec<(usize, Damage)>,
}

#[derive(Clone, Debug)]
enum Damage {
    Set(u8),
    Flip(u8),
    Insert(u8),
    Remove,
    Cut,
    Repeat(usize),
}

impl Damage {
    /// What is damaged, and how.
    fn make(source: &mut Source<'_>) -> (usize, Self) {
        let damage = match source.below(14) {
            0..4 => Self::Set(source.any()),
            4..8 => Self::Flip(1 << source.below(8)),
            8..10 => Self::Insert(source.any()),
            10..12 => Self::Remove,
            12 => Self::Cut,
            _ => Self::Repeat(1 + source.below(39)),
        };
        (source.below(10_000), damage)
    }
}

impl<T: Listed> Damaged<T> {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        for (at, damage) in &self.damages {
            if bytes.is_empty() {
                break;
            }
            let at = at % bytes.len();
            match damage {
                Damage::Set(byte) => bytes[at] = *byte,
                Damage::Flip(bits) => bytes[at] ^= bits,
                Damage::Insert(byte) => bytes.insert(at, *byte),
                Damage::Remove => drop(bytes.remove(at)),
                Damage::Cut => bytes.truncate(at),
                Damage::Repeat(length) => {
                    let piece = bytes[at..bytes.len().min(at + length)].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    }
}

impl<T: Listed> Input for Damaged<T> {
    fn make(source: &mut Source<'_>) -> Self {
        let first = Damage::make(source);
        let damages = [vec![first], source.list(3, Damage::make)].concat();
        Self { damages, whole: Whole::make(source) }
    }

    fn check(&self) -> Result<()> {
        self.whole.check()?;
        self.whole.bodies().into_iter().try_for_each(|(content_type, body)| is_bounded(content_type, &self.apply(body)))
    }

    /// A damaged list is refused or read as Go reads it. To refuse what Go takes is always safe: not knowing is never evidence. And
    /// Go looks into every field, we into those that are read here.
    fn compare(&self, go: &mut Go) -> Result<()> {
        for (form, content_type, body) in Encoded::by(go, &self.whole.list)?.bodies {
            let bytes = self.apply(body);
            let answer = go.ask(&json!({"decode": {"as": form, "bytes": BASE64_STANDARD.encode(&bytes)}}))?;
            if let (Ok(answer), Ok(ours)) = (answer, read::<T>(content_type, &bytes)) {
                let answer = held(answer);
                ensure!(answer == ours, "as {form}: Go holds {answer}, we {ours} from {:?}", String::from_utf8_lossy(&bytes));
            }
        }
        Ok(())
    }
}

/// An answer as it came.
#[derive(Debug)]
pub struct Answer {
    is_protobuf: bool,
    /// Puts what every protobuf body begins with before the bytes, so that not every input has to find it.
    is_framed: bool,
    body: Vec<u8>,
}

impl Input for Answer {
    fn make(source: &mut Source<'_>) -> Self {
        Self { is_protobuf: source.any(), is_framed: source.any(), body: source.rest().to_owned() }
    }

    fn check(&self) -> Result<()> {
        let content_type = if self.is_protobuf { PROTOBUF } else { JSON };
        if !self.is_framed {
            return is_bounded(content_type, &self.body);
        }
        ["LeaseList", "NodeList"].into_iter().try_for_each(|kind| is_bounded(content_type, &envelope(kind, &self.body)))
    }

    /// A whole or a damaged list is compared.
    fn compare(&self, _: &mut Go) -> Result<()> {
        Ok(())
    }
}

/// A list that is taken has no more in it than its bytes can say; one that is refused is refused in a few words.
fn is_bounded(content_type: &str, body: &[u8]) -> Result<()> {
    let mut leases = LeaseList::default();
    match wire::leases(content_type, body, &mut leases) {
        Ok(_) => {
            // An item needs two bytes at least.
            ensure!(leases.iter().count() <= body.len() / 2);
            ensure!(leases.iter().map(|lease| lease.name.len()).sum::<usize>() <= body.len());
        }
        Err(refusal) => is_one_line(&refusal.to_string())?,
    }
    let mut nodes = Vec::new();
    match wire::nodes(content_type, body, &mut nodes) {
        Ok(_) => {
            ensure!(nodes.len() <= body.len() / 2);
            let conditions = nodes.iter().flat_map(|node| &node.conditions);
            ensure!(conditions.map(|one| one.kind.len() + one.status.len() + one.reason.len()).sum::<usize>() <= body.len());
        }
        Err(refusal) => is_one_line(&refusal.to_string())?,
    }
    Ok(())
}
