//! The cost of a probe on this side, but for the network: the time that its pure part takes, beside a
//! copy of the same bytes, and what all of it allocates.

mod probing;
#[allow(dead_code, reason = "most of it is for the tests of the client")]
#[path = "../tests/shoot_client/shoot.rs"]
mod shoot;
mod work;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prober_core::lease::LeaseList;

use crate::probing::ProbeBench;
use crate::work::{SteadyShoot, decode};

/// The largest cluster that Kubernetes supports.
const LARGE: usize = 5_000;

fn pieces(criterion: &mut Criterion) {
    let large = SteadyShoot::new(LARGE).with_nodes();
    criterion.bench_function("verdict on 5,000 leases, Machines, nodes", |bench| {
        bench.iter(|| large.judge());
    });
    let mut usual = SteadyShoot::new(100);
    criterion.bench_function("healthy probe computed, 100 nodes", |bench| {
        bench.iter(|| usual.probe());
    });

    // Decodes a list, and does what memory allows at best: copies it.
    let body = &large.leases;
    let mut group = criterion.benchmark_group("5,000 leases");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("decode", |bench| {
        bench.iter(|| decode::<LeaseList>(black_box(body)));
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
    let info = ProbeBench::new(100).allocations();
    println!("100 nodes: a healthy probe {info:?}");
}

criterion_group! {
    name = core;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    targets = pieces, allocations
}
criterion_main!(core);
