//! Lists of leases and nodes as an API server writes them, whole, in pieces and damaged, and from
//! one that may be anything.

use std::sync::LazyLock;

use anyhow::{Error, Result, ensure};
use api_server::protobuf;
use api_server::protobuf::wire::{bytes, envelope, message, text};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use prober::shoot_client::wire::{DecodeError, NodeList, Page, read_pieces};
use prober_core::lease::LeaseList;
use serde_json::{Value, json};
use testbed::objects::items;

use crate::yaml::template;
use crate::{Choices, GoProgram, ReaderInput, is_one_line};

const POOL: &str = "worker.gardener.cloud/pool";
const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";

/// What matters of a list: where the next page begins, and what matters of each item.
fn page(next: Option<&str>, items: impl Iterator<Item = Value>) -> Value {
    json!({"continue": next.unwrap_or_default(), "items": items.collect::<Vec<_>>()})
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

static LEASES: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/leases.yaml")));
static NODES: LazyLock<Value> = LazyLock::new(|| template(include_str!("../templates/nodes.yaml")));

/// What matters of a lease.
fn lease(item: &Value) -> Value {
    let renewed = item["spec"]["renewTime"].as_str();
    // Go also writes years of more than four digits.
    let renewed = renewed.map(|text| {
        DateTime::parse_from_rfc3339(text).map_or(text.to_owned(), |at| moment(at.to_utc()))
    });
    json!({"name": word(&item["metadata"]["name"]), "duration": item["spec"]["leaseDurationSeconds"], "renewed": renewed})
}

/// A time as Go writes it, which cuts off what is less than a microsecond; no kubelet writes that.
fn moment(at: DateTime<Utc>) -> String {
    let written = at.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    written.trim_start_matches('+').to_owned()
}

/// What matters of a node. There is no room for conditions that do not matter: those that are not
/// True, but for that of an in-place update; texts that no controller writes; and more than 64.
fn node(item: &Value) -> Value {
    let metadata = &item["metadata"];
    let short = |text: &str| if text.len() > 1024 { "" } else { text }.to_owned();
    let conditions = items(&item["status"]["conditions"])
        .map(|one| ["type", "status", "reason"].map(|field| short(word(&one[field]))));
    let matters = |[kind, status, _]: &[String; 3]| status == "True" || kind == "InPlaceUpdate";
    json!({
        "name": word(&metadata["name"]),
        "pool": metadata["labels"][POOL],
        "notManaged": !metadata["annotations"][NOT_MANAGED].is_null(),
        "conditions": conditions.filter(matters).take(64).collect::<Vec<_>>(),
    })
}

/// What matters of a list, of nodes or else of leases, in JSON.
fn held(of_nodes: bool, list: &Value) -> Value {
    let held = if of_nodes { node } else { lease };
    page(
        list["metadata"]["continue"].as_str(),
        items(&list["items"]).map(held),
    )
}

/// What we read of such a list that comes in these pieces.
fn read<'a>(
    of_nodes: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Value, DecodeError> {
    if of_nodes {
        let Page { items, next } = read_pieces::<NodeList>(pieces)?;
        let held = items.nodes.iter().map(|node| {
            let conditions: Vec<_> = node.traits.conditions.iter().map(|c| [&c.kind, &c.status, &c.reason]).collect();
            json!({"name": *node.name, "pool": node.traits.pool, "notManaged": node.traits.not_managed_by_mcm, "conditions": conditions})
        });
        return Ok(page(next.as_deref(), held));
    }
    let Page { items, next } = read_pieces::<LeaseList>(pieces)?;
    let held = items.iter().map(|lease| {
        let renewed = lease.renew_time.map(moment);
        json!({"name": lease.name, "duration": lease.duration_seconds, "renewed": renewed})
    });
    Ok(page(next.as_deref(), held))
}

/// A list by what it holds, and how its bytes are damaged.
#[derive(Debug)]
pub struct DamagedList {
    of_nodes: bool,
    whole: Value,
    unknown: Vec<u8>,
    /// After how many bytes it is cut off.
    cut: usize,
    /// In pieces of how many bytes it comes.
    piece: usize,
    /// Where bytes are replaced, how many, and by which.
    damages: Vec<(usize, usize, Vec<u8>)>,
}

impl DamagedList {
    /// In protobuf; ends with what a cut would break.
    fn body(&self) -> Vec<u8> {
        let next = word(&self.whole["metadata"]["continue"]);
        let meta = message(1, &[text(2, "7"), text(3, next)]);
        let unknown = bytes(90, &self.unknown);
        let item = |item| {
            let known: Vec<u8> = match self.of_nodes {
                true => protobuf::node(item).into(),
                false => protobuf::lease(item).into(),
            };
            message(2, &[unknown.clone(), known, unknown.clone()])
        };
        let items: Vec<u8> = items(&self.whole["items"]).flat_map(item).collect();
        let [version, kind] = ["apiVersion", "kind"].map(|field| word(&self.whole[field]));
        let list = [unknown.clone(), meta, items].concat();
        let mut body = envelope(version, kind, &list);
        // Two empty fields, which nobody would miss.
        body.truncate(body.len() - 4);
        body
    }

    fn damaged(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = body.to_owned();
        for (at, removed, inserted) in &self.damages {
            let at = at % (bytes.len() + 1);
            let end = bytes.len().min(at + removed);
            bytes.splice(at..end, inserted.iter().copied());
        }
        bytes
    }
}

impl ReaderInput for DamagedList {
    fn make(source: &mut Choices<'_>) -> Self {
        let of_nodes = source.percent(50);
        Self {
            of_nodes,
            damages: source.list(5, |source| {
                let removed = source.pick(&[1, 0, 2, 40, usize::MAX >> 1]);
                (source.below(50_000), removed, source.list(4, Choices::any))
            }),
            whole: source.filled(if of_nodes { &NODES } else { &LEASES }),
            unknown: source.list(4, Choices::any),
            cut: source.below(10_000),
            piece: 1 + source.below(200),
        }
    }

    /// What a list holds is what is read of it, in whatever pieces it comes; cut anywhere, it is no
    /// list; damaged, it holds no more than its bytes.
    fn check(&self) -> Result<()> {
        let of_nodes = self.of_nodes;
        let (holds, body) = (held(of_nodes, &self.whole), self.body());
        let ours = read(of_nodes, [&*body])?;
        ensure!(holds == ours, "{ours} instead of {holds}");
        let cut = self.cut % body.len();
        let is_cut_off = read(of_nodes, [&body[..cut]]).is_err();
        ensure!(is_cut_off, "{cut} of {} bytes", body.len());
        let damaged = self.damaged(&body);
        for body in [&body, &damaged] {
            let whole = format!("{:?}", read(of_nodes, [&**body]));
            let in_pieces = format!("{:?}", read(of_nodes, body.chunks(self.piece)));
            ensure!(whole == in_pieces, "{in_pieces} instead of {whole}");
        }
        is_bounded(of_nodes, &damaged)
    }

    /// What Go writes is read as it was meant, and what the testbed writes Go reads so, too. A
    /// damaged list is refused or read as Go reads it: to refuse what Go takes is always safe, not
    /// knowing is never evidence. And Go looks into every field, we into those that are read here.
    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        let (of_nodes, meant) = (self.of_nodes, self.whole.to_string());
        let (holds, body) =
            rewritten(of_nodes, go, "json", meant.as_bytes())?.map_err(Error::msg)?;
        let of_the_bed = rewritten(of_nodes, go, "protobuf", &self.body())?;
        let (of_the_bed, _) = of_the_bed.map_err(Error::msg)?;
        ensure!(
            holds == of_the_bed,
            "Go holds {holds}, and {of_the_bed} from the testbed's protobuf"
        );
        let ours = read(of_nodes, [&*body])?;
        ensure!(holds == ours, "Go holds {holds}, we {ours}");
        let damaged = self.damaged(&body);
        let gos = rewritten(of_nodes, go, "protobuf", &damaged)?;
        if let (Ok((holds, _)), Ok(ours)) = (gos, read(of_nodes, [&*damaged])) {
            let damaged = String::from_utf8_lossy(&damaged);
            ensure!(
                holds == ours,
                "Go holds {holds}, we {ours} from {damaged:?}"
            );
        }
        Ok(())
    }
}

/// What Go holds of a list in one of its forms, and the list in protobuf; or the words in which it
/// refuses.
fn rewritten(
    of_nodes: bool,
    go: &mut GoProgram,
    form: &str,
    bytes: &[u8],
) -> Result<Result<(Value, Vec<u8>), String>> {
    let asked = json!({form: BASE64_STANDARD.encode(bytes)});
    Ok(match go.ask("list", asked)? {
        Err(refusal) => Err(refusal),
        Ok(forms) => {
            let [json, protobuf] =
                ["json", "protobuf"].map(|form| BASE64_STANDARD.decode(word(&forms[form])));
            Ok((held(of_nodes, &serde_json::from_slice(&json?)?), protobuf?))
        }
    })
}

/// An answer as it came.
#[derive(Debug)]
pub struct AnyAnswer(Vec<u8>);

impl ReaderInput for AnyAnswer {
    fn make(source: &mut Choices<'_>) -> Self {
        Self(source.rest().to_owned())
    }

    fn check(&self) -> Result<()> {
        let [leases, nodes] = ["LeaseList", "NodeList"].map(|kind| envelope("v1", kind, &self.0));
        for body in [&self.0, &leases, &nodes] {
            is_bounded(false, body)?;
            is_bounded(true, body)?;
        }
        Ok(())
    }
}

/// A list that is taken has no more in it than its bytes can say; one that is refused is refused in
/// a few words.
fn is_bounded(of_nodes: bool, body: &[u8]) -> Result<()> {
    let page = match read(of_nodes, [body]) {
        Ok(page) => page,
        Err(refusal) => return is_one_line(&refusal.to_string()),
    };
    let all = || items(&page["items"]);
    // An item needs two bytes at least.
    ensure!(all().count() <= body.len() / 2);
    let conditions = all().flat_map(|item| items(&item["conditions"]));
    let texts = conditions.flat_map(items);
    let texts = texts.chain(all().map(|item| &item["name"]));
    let length: usize = texts.map(|text| word(text).len()).sum();
    ensure!(length <= body.len(), "{length} of {} bytes", body.len());
    Ok(())
}
