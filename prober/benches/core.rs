//! How long the pure part of a probe takes.

mod bodies;
mod work;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn pieces(criterion: &mut Criterion) {
    for (name, ground) in work::PIECES {
        let mut piece = ground();
        let mut group = criterion.benchmark_group(name);
        if piece.bytes > 0 {
            group.throughput(Throughput::Bytes(piece.bytes as u64));
        }
        group.bench_function("once", |bench| bench.iter(|| (piece.work)()));
        group.finish();
    }
}

criterion_group! {
    name = core;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    targets = pieces
}
criterion_main!(core);
