//! What a probe costs on this side, but for the network: the time that its pure part takes, beside a
//! copy of the same bytes, and what all of it allocates.

mod probing;
#[allow(dead_code, reason = "most of it is for the tests of the client")]
#[path = "../tests/shoot_client/shoot.rs"]
mod shoot;
mod work;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prober::shoot_client::wire::{ItemList, NodeList};
use prober_core::lease::LeaseList;

use crate::probing::ProbeBench;
use crate::work::{SteadyShoot, decode};

/// The largest cluster that Kubernetes supports.
const LARGE: usize = 5_000;

fn pieces(criterion: &mut Criterion) {
    let large = SteadyShoot::new(LARGE);
    read::<LeaseList>(criterion, "5,000 leases", &large.leases);
    let page = work::list("NodeList", &work::nodes(500));
    read::<NodeList>(criterion, "a page of 500 nodes", &page);
    criterion.bench_function("verdict on 5,000 leases and Machines", |bench| {
        bench.iter(|| large.judge());
    });
    let with_nodes = SteadyShoot::new(LARGE).with_nodes();
    criterion.bench_function("verdict on 5,000 leases, Machines, nodes", |bench| {
        bench.iter(|| with_nodes.judge());
    });
    for count in [100, LARGE] {
        let mut shoot = SteadyShoot::new(count);
        let name = format!("healthy probe computed, {count} nodes");
        criterion.bench_function(&name, |bench| bench.iter(|| shoot.probe()));
    }
}

/// Decodes a list, and does what memory allows at best: copies it.
fn read<L: ItemList>(criterion: &mut Criterion, name: &str, body: &[u8]) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("decode", |bench| {
        bench.iter(|| decode::<L>(black_box(body)));
    });
    let mut to = Vec::with_capacity(body.len());
    group.bench_function("copy", |bench| {
        bench.iter(|| {
            to.clear();
            to.extend_from_slice(black_box(body));
        });
    });
    group.finish();
}

/// Counts what a probe over TLS allocates, on a kept connection, all leases known.
fn allocations(_: &mut Criterion) {
    for count in [10, 100, 1_000, LARGE] {
        let info = ProbeBench::new(count).allocations();
        println!("{count} nodes: a healthy probe {info:?}");
    }
}

criterion_group! {
    name = core;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    targets = pieces, allocations
}
criterion_main!(core);
