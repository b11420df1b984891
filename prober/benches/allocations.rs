//! How often a probe allocates, and how much: the lists as a kube-apiserver sends them, on a kept
//! connection, all leases known.

mod bodies;
mod probing;
mod work;

use probing::ProbeBench;
use serde_json::json;

fn main() {
    println!(
        "{:<28} {:>8} {:>12} {:>14} {:>12}",
        "a probe over TLS", "nodes", "allocations", "bytes", "at once"
    );
    let mut figures = Vec::new();
    for count in [10, 100, 1_000, 5_000] {
        let mut probing = ProbeBench::new(count);
        for (name, work) in [
            (
                "leases, healthy",
                ProbeBench::leases as fn(&mut ProbeBench) -> usize,
            ),
            ("nodes, one page", ProbeBench::nodes),
        ] {
            let info = probing.allocations(work);
            let (allocations, bytes, at_once) =
                (info.count_total, info.bytes_total, info.bytes_max);
            println!("{name:<28} {count:>8} {allocations:>12} {bytes:>14} {at_once:>12}");
            figures.push(
                json!({"work": name, "nodes": count, "allocations": allocations, "bytes": bytes, "bytes_at_once": at_once}),
            );
        }
    }
    println!(
        "{}",
        json!({"benchmark": "allocations", "figures": figures})
    );
}
