//! What a probe allocates: counts, so that they hold on any machine.

#[path = "../../benches/probing.rs"]
mod probing;
#[path = "../../benches/work.rs"]
mod work;

use std::convert::Infallible;
use std::sync::Arc;

use allocation_counter::{AllocationInfo, measure};
use bytes::Bytes;
use common::metrics::LabelledCounters;
use common::view::View;
use futures::stream;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::api::ListParams;
use kube::client::Body;
use kube::{Api, Client};
use prober::gardener::Cluster;
use prober::seed::ClusterState;
use prober_core::lease::LeaseList;
use probing::ProbeBench;
use work::SteadyShoot;

use super::shoot;

/// What hyper reads of a connection at once.
const PIECE: usize = 16 << 10;

#[test]
fn a_probe_allocates_no_more_for_more_nodes() {
    for count in [10, 1000] {
        let mut shoot = SteadyShoot::new(count);
        let mut decoded = None;
        let info = measure(|| decoded = Some(work::decode::<LeaseList>(&shoot.leases)));
        let leases = decoded.expect("leases");
        // The names and entries, four texts of the list and its leases, and what is held, which
        // becomes as long as a piece and a lease; and now and then a head that is not complete.
        assert_eq!(leases.len(), count);
        assert!(info.count_total <= 10, "{info:?}");
        // Those that are known take nothing.
        let info = measure(|| shoot.judge.observe(shoot.times, leases.iter(), work::GRACE));
        assert_eq!(info, AllocationInfo::default());
        for shoot in [SteadyShoot::new(count), shoot.with_nodes()] {
            let info = measure(|| assert_eq!(shoot.judge().tally.candidates, count));
            // The names of the 20 oldest leases are kept for people.
            assert!(info.count_total <= 8 + 20, "{count} nodes: {info:?}");
        }
    }
    // Over TLS five are ours (the path, and those of decoding), all else is hyper's and rustls'.
    let [few, many] = [10, 100].map(|count| ProbeBench::new(count).allocations());
    assert!(few.count_total <= 45, "{few:?}");
    assert!(many.count_total <= few.count_total + 10, "{few:?} {many:?}");
}

/// A Cluster of this size, most of it many small maps that nobody reads.
fn cluster_of_small_maps(size: usize) -> String {
    let many = vec![r#"{"a":{"b":{}}}"#; size / 15].join(",");
    format!(
        r#"{{"apiVersion":"extensions.gardener.cloud/v1alpha1","kind":"Cluster","metadata":{{"name":"shoot--p--s","resourceVersion":"2"}},"spec":{{"shoot":{{"spec":{{"provider":{{"workers":[{{"name":"w","providerConfig":[{many}]}}]}}}}}}}}}}"#
    )
}

/// A client that is answered so, whatever it asks for, and then no more.
fn answering(answers: Vec<Bytes>) -> Client {
    let mut answers = answers.into_iter();
    let answer = move |_: Request<Body>| {
        let answer = answers.next();
        async move {
            let Some(mut body) = answer else {
                return std::future::pending().await;
            };
            let pieces = std::iter::from_fn(move || {
                let piece = body.split_to(body.len().min(PIECE));
                (!piece.is_empty()).then(|| Ok::<_, Infallible>(Frame::data(piece)))
            });
            let body = StreamBody::new(stream::iter(pieces));
            Ok::<_, Infallible>(Response::new(body))
        }
    };
    Client::new(tower::service_fn(answer), "default")
}

#[test]
fn a_cluster_of_many_small_maps_takes_three_times_its_size_at_most() {
    for size in [1_400_000, 10_000_000] {
        let cluster = cluster_of_small_maps(size);
        let list = format!(
            r#"{{"kind":"ClusterList","metadata":{{"resourceVersion":"1"}},"items":[{cluster}]}}"#
        );
        let event = format!("{{\"type\":\"MODIFIED\",\"object\":{cluster}}}\n");
        let answers = vec![Bytes::from(list), Bytes::from(event)];
        // These stay, so that what is freed was allocated here.
        let _bodies = answers.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let info = measure(|| {
            runtime.block_on(async {
                let (sender, mut changes) = tokio::sync::mpsc::channel(8);
                let view = View::new("clusters", &LabelledCounters::default());
                let work = Arc::clone(&view).run(
                    Api::all(answering(answers)),
                    ListParams::default(),
                    |cluster: Cluster| Some(ClusterState::from(cluster)),
                    Some(sender),
                );
                let seen = async {
                    for _ in 0..2 {
                        changes.recv().await.expect("a change");
                    }
                };
                tokio::select! {
                    () = work => unreachable!("it never ends"),
                    () = seen => {}
                }
                assert!(view.get("", "shoot--p--s").is_some());
            });
        });
        // Beside it there are the runtime and what is kept.
        let most = 3 * cluster.len() as u64 + (64 << 10);
        assert!(info.bytes_max <= most, "{info:?}");
        assert!(info.bytes_current < 64 << 10, "{info:?}");
    }
}
