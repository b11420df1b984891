//! How long the pure part of a probe takes.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

mod bodies;
mod work;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

use crate::work::Shoot;

/// The largest cluster that Kubernetes supports.
const LARGEST: usize = 5_000;

fn decoding(criterion: &mut Criterion) {
    let shoot = Shoot::new(LARGEST);
    let mut group = criterion.benchmark_group("decode 5,000 leases");
    for (format, content_type, body) in [("protobuf", bodies::PROTOBUF, &shoot.protobuf), ("JSON", bodies::JSON, &shoot.json)] {
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(format, |bench| bench.iter(|| work::decode(content_type, black_box(body))));
        let mut copy = Vec::with_capacity(body.len());
        group.bench_function(format!("{format}, merely copied"), |bench| {
            bench.iter(|| work::copy(black_box(body), &mut copy));
        });
    }
    group.finish();
    let page = bodies::nodes_protobuf(500);
    let mut group = criterion.benchmark_group("decode a page of 500 nodes");
    group.throughput(Throughput::Bytes(page.len() as u64));
    group.bench_function("protobuf", |bench| bench.iter(|| work::decode_nodes(black_box(&page))));
    let mut copy = Vec::with_capacity(page.len());
    group.bench_function("protobuf, merely copied", |bench| bench.iter(|| work::copy(black_box(&page), &mut copy)));
    group.finish();
}

fn judging(criterion: &mut Criterion) {
    let (shoot, with_nodes) = (Shoot::new(LARGEST), Shoot::new(LARGEST).with_nodes());
    let mut group = criterion.benchmark_group("verdict on 5,000 nodes");
    group.bench_function("by leases and Machines", |bench| bench.iter(|| work::judge(black_box(&shoot))));
    group.bench_function("by leases, Machines and nodes", |bench| bench.iter(|| work::judge(black_box(&with_nodes))));
    group.finish();
}

fn probing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a healthy probe, computed");
    for count in [100, LARGEST] {
        let mut shoot = Shoot::new(count);
        // The body alternates, so that every probe shows renewed leases.
        let other = bodies::leases_protobuf(count, shoot.times.wall - chrono::TimeDelta::seconds(20));
        let mut bodies = [shoot.protobuf.clone(), other].into_iter().cycle();
        group.bench_function(format!("{count} nodes"), |bench| {
            bench.iter_batched(
                || bodies.next(),
                |body| {
                    shoot.protobuf = body.unwrap_or_default();
                    work::probe(&mut shoot)
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = core;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    targets = decoding, judging, probing
}
criterion_main!(core);
