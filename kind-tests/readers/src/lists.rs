//! Lists of leases and nodes as an API server writes them, whole, in pieces and damaged, and from
//! one that may be anything.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::LazyLock;

use anyhow::{Error, Result, ensure};
use api_server::protobuf;
use api_server::protobuf::wire::{bytes, text};
use arbitrary::Arbitrary;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use prober::shoot_client::wire::{
    DecodeError, ItemList, ListReader, ListRoom, NodeList, Page, ReadBody,
};
use prober_core::lease::LeaseList;
use serde_json::{Value, json};
use testbed::objects::items;

use crate::yaml::template;
use crate::{Choices, GoProgram, ReaderInput, is_one_line};

const POOL: &str = "worker.gardener.cloud/pool";
const NOT_MANAGED: &str = "node.machine.sapcloud.io/not-managed-by-mcm";

/// A kind of lists.
pub trait ListedKind: Debug {
    /// A list with one item, whose texts are patterns.
    fn template() -> &'static Value;

    /// An item in protobuf, as the testbed's API server in memory writes it, with much that is not
    /// known here.
    fn protobuf(item: &Value) -> Vec<u8>;

    /// What matters of an item.
    fn held(item: &Value) -> Value;

    /// Reads a list that comes in these pieces, as a [`page`].
    ///
    /// # Errors
    /// When it is none.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Value, DecodeError>;
}

fn read_page<'a, L: ItemList>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Page<L>, DecodeError> {
    let room = ListRoom::after(&L::default());
    let mut reader = ListReader::new(0, &room);
    for piece in pieces {
        reader.feed(piece)?;
    }
    reader.finish()
}

/// What matters of a list: where the next page begins, and what matters of each item.
fn page(next: Option<&str>, items: impl Iterator<Item = Value>) -> Value {
    json!({"continue": next.unwrap_or_default(), "items": items.collect::<Vec<_>>()})
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Lists of leases.
#[derive(Debug)]
pub struct LeaseLists;

/// Lists of nodes.
#[derive(Debug)]
pub struct NodeLists;

static LEASES: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/leases.yaml")));
static NODES: LazyLock<Value> = LazyLock::new(|| template(include_str!("../templates/nodes.yaml")));

impl ListedKind for LeaseLists {
    fn template() -> &'static Value {
        &LEASES
    }

    fn protobuf(item: &Value) -> Vec<u8> {
        protobuf::lease(item).into()
    }

    fn held(item: &Value) -> Value {
        let renewed = item["spec"]["renewTime"].as_str();
        // Go also writes years of more than four digits.
        let renewed = renewed.map(|text| {
            DateTime::parse_from_rfc3339(text).map_or(text.to_owned(), |at| moment(at.to_utc()))
        });
        json!({"name": word(&item["metadata"]["name"]), "duration": item["spec"]["leaseDurationSeconds"], "renewed": renewed})
    }

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Value, DecodeError> {
        let Page { items, next } = read_page::<LeaseList>(pieces)?;
        let held = items.iter().map(|lease| {
            let renewed = lease.renew_time.map(moment);
            json!({"name": lease.name, "duration": lease.duration_seconds, "renewed": renewed})
        });
        Ok(page(next.as_deref(), held))
    }
}

/// A time as Go writes it, which cuts off what is less than a microsecond; no kubelet writes that.
fn moment(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.6fZ")
        .to_string()
        .trim_start_matches('+')
        .to_owned()
}

impl ListedKind for NodeLists {
    fn template() -> &'static Value {
        &NODES
    }

    fn protobuf(item: &Value) -> Vec<u8> {
        protobuf::node(item).into()
    }

    /// There is no room for conditions that do not matter: those that are not True, but for that of
    /// an in-place update; texts that no controller writes; and more than 64.
    fn held(item: &Value) -> Value {
        let metadata = &item["metadata"];
        let conditions = items(&item["status"]["conditions"])
            .map(|one| ["type", "status", "reason"].map(|field| short(word(&one[field]))));
        let matters = |[kind, status, _]: &[&str; 3]| *status == "True" || *kind == "InPlaceUpdate";
        json!({
            "name": word(&metadata["name"]),
            "pool": metadata["labels"][POOL],
            "notManaged": !metadata["annotations"][NOT_MANAGED].is_null(),
            "conditions": conditions.filter(matters).take(64).collect::<Vec<_>>(),
        })
    }

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Value, DecodeError> {
        let Page { items, next } = read_page::<NodeList>(pieces)?;
        let held = items.nodes.iter().map(|node| {
            let conditions: Vec<_> = node.traits.conditions.iter().map(|c| [&c.kind, &c.status, &c.reason]).collect();
            json!({"name": node.name, "pool": node.traits.pool, "notManaged": node.traits.not_managed_by_mcm, "conditions": conditions})
        });
        Ok(page(next.as_deref(), held))
    }
}

/// A text, unless it is longer than any that matters.
fn short(text: &str) -> &str {
    if text.len() > 1024 { "" } else { text }
}

/// A list by what it holds, and how its bytes are damaged.
#[derive(Debug)]
pub struct DamagedList<T> {
    whole: Value,
    unknown: Vec<u8>,
    /// After how many bytes it is cut off.
    cut: usize,
    /// The lengths of the first pieces in which it comes.
    pieces: Vec<u8>,
    damages: Vec<(u16, Damage)>,
    read_as: PhantomData<T>,
}

#[derive(Arbitrary, Debug, Default)]
enum Damage {
    #[default]
    Remove,
    Set(u8),
    Flip(u8),
    Insert(u8),
    Cut,
    Repeat(u8),
}

impl<T: ListedKind> DamagedList<T> {
    /// In protobuf.
    fn body(&self) -> Vec<u8> {
        let meta = bytes(
            1,
            &[
                text(2, "7"),
                text(3, word(&self.whole["metadata"]["continue"])),
            ]
            .concat(),
        );
        let unknown = bytes(90, &self.unknown);
        let item = |item: &Value| {
            bytes(
                2,
                &[unknown.clone(), T::protobuf(item), unknown.clone()].concat(),
            )
        };
        let items: Vec<u8> = items(&self.whole["items"]).flat_map(item).collect();
        let [version, kind] = ["apiVersion", "kind"].map(|field| word(&self.whole[field]));
        envelope(version, kind, &[unknown.clone(), meta, items].concat())
    }

    /// In the pieces in which it comes.
    fn in_pieces<'a>(&self, mut body: &'a [u8]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        for length in &self.pieces {
            let (piece, rest) = body.split_at(body.len().min(usize::from(*length)));
            pieces.push(piece);
            body = rest;
        }
        pieces.push(body);
        pieces
    }

    fn damaged(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = body.to_owned();
        for (at, damage) in &self.damages {
            if bytes.is_empty() {
                break;
            }
            let at = usize::from(*at) % bytes.len();
            match damage {
                Damage::Set(byte) => bytes[at] = *byte,
                Damage::Flip(bit) => bytes[at] ^= 1 << (bit % 8),
                Damage::Insert(byte) => bytes.insert(at, *byte),
                Damage::Remove => drop(bytes.remove(at)),
                Damage::Cut => bytes.truncate(at),
                Damage::Repeat(length) => {
                    let piece = bytes[at..bytes.len().min(at + usize::from(length % 40))].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    }
}

/// Kubernetes' envelope: magic, then runtime.Unknown with typeMeta (1) and raw (2). Ends with what
/// a cut would break.
fn envelope(version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    [
        b"k8s\0".as_slice(),
        &bytes(1, &[text(1, version), text(2, kind)].concat()),
        &bytes(2, object),
    ]
    .concat()
}

impl<T: ListedKind> ReaderInput for DamagedList<T> {
    fn make(source: &mut Choices<'_>) -> Self {
        let damages = (0..=source.below(3)).map(|_| source.any()).collect();
        let whole = source.filled(T::template());
        Self {
            damages,
            whole,
            unknown: source.list(4, Choices::any),
            cut: source.below(10_000),
            pieces: source.list(100, Choices::any),
            read_as: PhantomData,
        }
    }

    /// What a list holds is what is read of it, in whatever pieces it comes; cut anywhere, it is no
    /// list; damaged, it holds no more than its bytes.
    fn check(&self) -> Result<()> {
        let holds = held::<T>(&self.whole);
        let body = self.body();
        let ours = T::read([&*body])?;
        ensure!(holds == ours, "{ours} instead of {holds}");
        let cut = self.cut % body.len();
        ensure!(
            T::read([&body[..cut]]).is_err(),
            "{cut} of {} bytes",
            body.len()
        );
        let damaged = self.damaged(&body);
        for body in [&body, &damaged] {
            let [whole, in_pieces] = [vec![&**body], self.in_pieces(body)].map(T::read);
            let [whole, in_pieces] = [whole, in_pieces].map(|read| format!("{read:?}"));
            ensure!(whole == in_pieces, "{in_pieces} instead of {whole}");
        }
        is_bounded::<T>(&damaged)
    }

    /// What Go writes is read as it was meant, and what the testbed writes Go reads so, too. A
    /// damaged list is refused or read as Go reads it: to refuse what Go takes is always safe, not
    /// knowing is never evidence. And Go looks into every field, we into those that are read here.
    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        let [json, body] =
            rewritten(go, "json", self.whole.to_string().as_bytes())?.map_err(Error::msg)?;
        let holds = held::<T>(&serde_json::from_slice(&json)?);
        let [of_the_bed, _] = rewritten(go, "protobuf", &self.body())?.map_err(Error::msg)?;
        let of_the_bed = held::<T>(&serde_json::from_slice(&of_the_bed)?);
        ensure!(
            holds == of_the_bed,
            "Go holds {holds}, and {of_the_bed} from the testbed's protobuf"
        );
        let ours = T::read([&*body])?;
        ensure!(holds == ours, "Go holds {holds}, we {ours}");
        let damaged = self.damaged(&body);
        if let (Ok([json, _]), Ok(ours)) =
            (rewritten(go, "protobuf", &damaged)?, T::read([&*damaged]))
        {
            let holds = held::<T>(&serde_json::from_slice(&json)?);
            ensure!(
                holds == ours,
                "Go holds {holds}, we {ours} from {:?}",
                String::from_utf8_lossy(&damaged)
            );
        }
        Ok(())
    }
}

/// What matters of a list in JSON.
fn held<T: ListedKind>(list: &Value) -> Value {
    page(
        list["metadata"]["continue"].as_str(),
        items(&list["items"]).map(T::held),
    )
}

/// Both forms of the list that Go reads in one of them, or the words in which it refuses.
fn rewritten(go: &mut GoProgram, form: &str, bytes: &[u8]) -> Result<Result<[Vec<u8>; 2], String>> {
    let body = |text: &Value| BASE64_STANDARD.decode(word(text)).unwrap_or_default();
    let answer = go.ask("list", json!({form: BASE64_STANDARD.encode(bytes)}))?;
    Ok(answer.map(|forms| [body(&forms["json"]), body(&forms["protobuf"])]))
}

/// An answer as it came.
#[derive(Debug)]
pub struct AnyAnswer(Vec<u8>);

impl ReaderInput for AnyAnswer {
    fn make(source: &mut Choices<'_>) -> Self {
        Self(source.rest().to_owned())
    }

    fn check(&self) -> Result<()> {
        for body in [
            &self.0,
            &envelope("v1", "LeaseList", &self.0),
            &envelope("v1", "NodeList", &self.0),
        ] {
            is_bounded::<LeaseLists>(body)?;
            is_bounded::<NodeLists>(body)?;
        }
        Ok(())
    }
}

/// A list that is taken has no more in it than its bytes can say; one that is refused is refused in
/// a few words.
fn is_bounded<T: ListedKind>(body: &[u8]) -> Result<()> {
    let page = match T::read([body]) {
        Ok(page) => page,
        Err(refusal) => return is_one_line(&refusal.to_string()),
    };
    let all = || items(&page["items"]);
    // An item needs two bytes at least.
    ensure!(all().count() <= body.len() / 2);
    ensure!(all().map(|item| word(&item["name"]).len()).sum::<usize>() <= body.len());
    let conditions = all().flat_map(|item| items(&item["conditions"]));
    let texts = conditions.flat_map(items);
    ensure!(texts.map(|text| word(text).len()).sum::<usize>() <= body.len());
    Ok(())
}
