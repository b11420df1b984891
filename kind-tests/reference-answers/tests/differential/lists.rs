//! Lists of leases and nodes as an API server writes them, in either form, whole and damaged.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prober::core::lease::LeaseList;
use prober::core::verdict::NodeRecord;
use prober::shoot_client::wire::{self, DecodeError, Next};
use proptest::prelude::*;
use reference_answers::{Answer, Reference, campaign, campaign_of_talks};
use serde_json::{Map, Value, json};

const FORMS: [(&str, &str); 2] = [("json", "application/json"), ("protobuf", "application/vnd.kubernetes.protobuf")];

fn list(kind: &'static str, api_version: &'static str, item: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let meta = ("[0-9]{1,6}", prop_oneof![3 => Just(String::new()), 1 => "[a-zA-Z0-9+/=]{1,12}"]);
    (meta, prop::collection::vec(item, 0..4)).prop_map(move |((version, next), items)| {
        json!({"kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": version, "continue": next, "remainingItemCount": 7}, "items": items})
    })
}

fn leases() -> impl Strategy<Value = Value> {
    let stamp = (0..253_402_300_799_000_000_i64).prop_map(micros);
    let recent = (1_767_225_600_000_000_i64..1_798_761_600_000_000).prop_map(micros);
    let stamp = prop_oneof![6 => recent, 2 => stamp, 1 => Just("0001-01-01T00:00:00.000000Z".to_owned()),
        1 => Just("1970-01-01T00:00:00.000000Z".to_owned()), 1 => "(19|20)[0-9]{2}-0[1-9]-[12][0-8]T1[0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}[-+]0[0-9]:[0-5]0"];
    let spec = (prop::option::of(any::<i32>()), prop::option::weighted(0.8, stamp), prop::option::of("[a-z]{0,4}")).prop_map(
        |(duration, renewed, holder)| {
            object([
                ("leaseDurationSeconds", duration.map(Value::from)),
                ("renewTime", renewed.map(Value::from)),
                ("acquireTime", Some(json!("2026-03-01T12:00:07.000001Z"))),
                ("holderIdentity", holder.map(Value::from)),
                ("leaseTransitions", duration.map(Value::from)),
            ])
        },
    );
    let item = (name(), spec).prop_map(|(name, spec)| {
        json!({"metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": "u"}]}, "spec": spec})
    });
    list("LeaseList", "coordination.k8s.io/v1", item.boxed())
}

fn nodes() -> impl Strategy<Value = Value> {
    let labels = prop::collection::btree_map(prop_oneof!["worker\\.gardener\\.cloud/pool", "[a-z]{0,3}"], "\\PC{0,4}", 0..4);
    let annotations = prop::collection::btree_map(
        prop_oneof!["node\\.machine\\.sapcloud\\.io/not-managed-by-mcm", "[a-z]{0,3}"],
        "\\PC{0,4}",
        0..4,
    );
    let condition = ("(Ready|DiskPressure|InPlaceUpdate|\\PC{0,3})", "(True|False|Unknown|)", "(UpdateFailed|ReadyForUpdate|\\PC{0,3})", "\\PC{0,6}")
        .prop_map(|(kind, status, reason, message)| {
            json!({"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": "2026-03-01T12:00:07Z", "lastTransitionTime": null})
        });
    let item = (name(), labels, annotations, prop::collection::vec(condition, 0..4)).prop_map(|(name, labels, annotations, conditions)| {
        json!({
            "metadata": {"name": name, "labels": labels, "annotations": annotations, "creationTimestamp": "2026-03-01T12:00:07Z"},
            "spec": {"providerID": "local:///x", "podCIDRs": ["10.0.0.0/24"], "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"conditions": conditions, "capacity": {"cpu": "4", "memory": "16Gi"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "images": [{"names": ["a", "b"], "sizeBytes": 5}], "nodeInfo": {"kubeletVersion": "v1.35.1"}},
        })
    });
    list("NodeList", "v1", item.boxed())
}

fn name() -> BoxedStrategy<String> {
    prop_oneof![8 => "[a-z][a-z0-9-]{0,8}", 1 => "\\PC{0,4}"].boxed()
}

fn micros(micros: i64) -> String {
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let stamp = chrono::DateTime::from_timestamp(seconds, micros as u32 * 1000).unwrap_or_default();
    stamp.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect::<Map<_, _>>())
}

/// What we read, in the words of the Go program.
trait Shown: Default {
    fn read(&mut self, content_type: &str, body: &[u8]) -> Result<Next, DecodeError>;
    fn shown(&self) -> Vec<Value>;
}

impl Shown for LeaseList {
    fn read(&mut self, content_type: &str, body: &[u8]) -> Result<Next, DecodeError> {
        wire::leases(content_type, body, self)
    }

    fn shown(&self) -> Vec<Value> {
        let shown = self.iter().map(|lease| {
            let stamp = lease.renew_time.map(|time| {
                let nanos = i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos());
                // Go cuts off what is less than a microsecond, which no kubelet writes.
                json!({"seconds": nanos.div_euclid(1_000_000_000) as i64, "nanos": nanos.rem_euclid(1_000_000_000) as u32 / 1000 * 1000})
            });
            json!({"name": lease.name, "duration": lease.duration_seconds, "renewed": stamp})
        });
        shown.collect()
    }
}

impl Shown for Vec<NodeRecord> {
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

/// Reads a list; all that it says.
fn read<T: Shown>(content_type: &str, body: &[u8]) -> Result<Value, DecodeError> {
    let mut items = T::default();
    let next = items.read(content_type, body)?;
    Ok(json!({"continue": next.unwrap_or_default(), "items": items.shown()}))
}

/// The Go program's words without those that we have no room for.
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
        // Conditions that are not True do not matter, but for that of an in-place update.
        if let Some(conditions) = item.get_mut("conditions").and_then(Value::as_array_mut) {
            conditions.retain(|condition| condition[1] == "True" || condition[0] == "InPlaceUpdate");
        }
    }
    go
}

/// The body in one form, out of the Go program's answer.
fn body(encoded: &Value, form: &str) -> Result<Vec<u8>> {
    Ok(BASE64_STANDARD.decode(encoded[form].as_str().context("no body")?)?)
}

fn encode(list: &Value) -> Value {
    json!({"encode": list})
}

fn whole<T: Shown>(_: &Value, encoded: Answer) -> Result<()> {
    let encoded = encoded.map_err(anyhow::Error::msg)?;
    let go = held(encoded["holds"].clone());
    for (form, content_type) in FORMS {
        let ours = read::<T>(content_type, &body(&encoded, form)?).with_context(|| format!("as {form}"))?;
        ensure!(go == ours, "as {form}: Go holds {go}, we {ours}");
    }
    Ok(())
}

#[test]
fn lists_of_leases_are_read_as_go_writes_them() -> Result<()> {
    campaign(1_000, leases(), encode, whole::<LeaseList>)
}

#[test]
fn lists_of_nodes_are_read_as_go_writes_them() -> Result<()> {
    campaign(1_000, nodes(), encode, whole::<Vec<NodeRecord>>)
}

/// Where a body is damaged, and how.
#[derive(Clone, Debug)]
enum Damage {
    Set(u8),
    Flip(u8),
    Insert(u8),
    Remove,
    Cut,
    Repeat(u8),
}

type Damaged = (Value, Vec<(prop::sample::Index, Damage)>);

fn damaged(list: impl Strategy<Value = Value>) -> impl Strategy<Value = Damaged> {
    let damage = prop_oneof![
        4 => any::<u8>().prop_map(Damage::Set),
        4 => (0..8_u8).prop_map(|bit| Damage::Flip(1 << bit)),
        2 => any::<u8>().prop_map(Damage::Insert),
        2 => Just(Damage::Remove),
        1 => Just(Damage::Cut),
        1 => (1..40_u8).prop_map(Damage::Repeat),
    ];
    (list, prop::collection::vec((any::<prop::sample::Index>(), damage), 1..4))
}

fn apply(mut bytes: Vec<u8>, damages: &[(prop::sample::Index, Damage)]) -> Vec<u8> {
    for (at, damage) in damages {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match damage {
            Damage::Set(byte) => bytes[at] = *byte,
            Damage::Flip(bits) => bytes[at] ^= bits,
            Damage::Insert(byte) => bytes.insert(at, *byte),
            Damage::Remove => drop(bytes.remove(at)),
            Damage::Cut => bytes.truncate(at),
            Damage::Repeat(length) => {
                let end = bytes.len().min(at + usize::from(*length));
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

/// A damaged list is refused or read as Go reads it. To refuse what Go takes is always safe: not knowing is never evidence.
fn broken<T: Shown>(reference: &mut Reference, (list, damages): &Damaged) -> Result<()> {
    let encoded = reference.ask(&encode(list))?.map_err(anyhow::Error::msg)?;
    for (form, content_type) in FORMS {
        let bytes = apply(body(&encoded, form)?, damages);
        let go = reference.ask(&json!({"decode": {"as": form, "bytes": BASE64_STANDARD.encode(&bytes)}}))?;
        match (go, read::<T>(content_type, &bytes)) {
            (_, Err(_)) => {}
            (Ok(go), Ok(ours)) => {
                let go = held(go);
                ensure!(go == ours, "as {form}: Go holds {go}, we {ours} from {:?}", String::from_utf8_lossy(&bytes));
            }
            // Go looks into every field, we into those that are read here.
            (Err(_), Ok(_)) => {}
        }
    }
    Ok(())
}

#[test]
fn a_damaged_list_of_leases_is_refused_or_read_as_go_reads_it() -> Result<()> {
    campaign_of_talks(400, damaged(leases()), broken::<LeaseList>)
}

#[test]
fn a_damaged_list_of_nodes_is_refused_or_read_as_go_reads_it() -> Result<()> {
    campaign_of_talks(400, damaged(nodes()), broken::<Vec<NodeRecord>>)
}
