//! Lists of leases and nodes in protobuf.

use anyhow::{Result, ensure};
use api_server::protobuf::wire::envelope;
use prober::shoot_client::wire::{ItemList, NodeList, Page, read_pieces};
use prober_core::lease::LeaseList;

use crate::is_one_line;

/// A reading in pieces of so many bytes is held against one of the whole.
const PIECE: usize = 7;

/// Bytes as an answer, and as what is in one.
pub fn check(bytes: &[u8]) -> Result<()> {
    let [leases, nodes] = ["LeaseList", "NodeList"].map(|kind| envelope("v1", kind, bytes));
    for body in [bytes, &leases, &nodes] {
        check_list(body, |list: &LeaseList| {
            let names = list.iter().map(|lease| lease.name.len());
            (list.iter().count(), names.sum())
        })?;
        check_list(body, |NodeList { nodes, .. }| {
            let texts = nodes.iter().map(|node| {
                let conditions = node.traits.conditions.iter();
                let texts = conditions.flat_map(|one| [&one.kind, &one.status, &one.reason]);
                node.name.len() + texts.map(|text| text.len()).sum::<usize>()
            });
            (nodes.len(), texts.sum())
        })?;
    }
    Ok(())
}

/// A list is read alike in whatever pieces it comes, and holds no more items and text than its
/// bytes can say.
fn check_list<L: ItemList>(body: &[u8], size: impl Fn(&L) -> (usize, usize)) -> Result<()> {
    let sizes = |page: &Page<L>| (size(&page.items), page.next.clone());
    let whole = read_pieces::<L>([body]);
    let in_pieces = read_pieces::<L>(body.chunks(PIECE));
    match (&whole, &in_pieces) {
        (Ok(whole), Ok(in_pieces)) => ensure!(sizes(whole) == sizes(in_pieces)),
        (Err(whole), Err(in_pieces)) => ensure!(whole.to_string() == in_pieces.to_string()),
        _ => ensure!(whole.is_ok() == in_pieces.is_ok(), "differs in pieces"),
    }
    match whole {
        Err(refusal) => is_one_line(&refusal.to_string()),
        Ok(page) => {
            let (items, text) = size(&page.items);
            // An item needs two bytes at least.
            ensure!(items <= body.len() / 2, "{items} items");
            ensure!(text <= body.len(), "{text} bytes of text");
            Ok(())
        }
    }
}
