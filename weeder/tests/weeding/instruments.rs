//! What the rest of the process sees of the work.

use std::time::Duration;

use common::leader_election::Fence;
use common::metrics::Registry;
use memory_api::{Fault, Network, When};
use serde_json::json;

use crate::seed::{ETCD, Seed, Weeder, pod, soon};

/// The lines of the weeder's metrics that are not 0.
async fn shown(weeder: &Weeder) -> Vec<String> {
    let mut registry = Registry::default();
    weeder.instruments.metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text.lines().filter(|line| line.starts_with("dwd_weeder_") && !line.ends_with(" 0")).map(str::to_owned).collect()
}

/// Waits until a line is shown.
async fn shows(weeder: &Weeder, line: &str) {
    let shown = async {
        while !shown(weeder).await.iter().any(|shown| shown == line) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(line, shown).await;
}

#[tokio::test]
async fn windows_and_deletions_are_counted() {
    let seed = Seed::start().await;
    let weeder = seed.weed().await;
    let of = |name: &'static str| When::matches(move |record| record.verb == "delete" && record.name == name);
    seed.server.faults().add(of("p").once(), Fault::status(503));
    seed.server.faults().add(of("q"), Fault::status(403));
    seed.apply(pod("a", "p", "apiserver"));
    seed.apply(pod("a", "q", "apiserver"));
    seed.recover("a", ETCD);
    seed.gone("a", "p").await;
    seed.slice("a", ETCD, &[]);
    shows(&weeder, r#"dwd_weeder_windows_closed_total{reason="not_ready"} 1"#).await;
    let mut shown = shown(&weeder).await;
    shown.sort();
    let expected = [
        r#"dwd_weeder_deletions_total{result="deleted"} 1"#,
        r#"dwd_weeder_deletions_total{result="forbidden"} 1"#,
        r#"dwd_weeder_deletions_total{result="server"} 1"#,
        "dwd_weeder_namespaces 1",
        r#"dwd_weeder_windows_closed_total{reason="not_ready"} 1"#,
        r#"dwd_weeder_windows_opened_total{reason="recovery"} 1"#,
    ];
    assert_eq!(shown, expected);
    weeder.end().await;
}

#[tokio::test]
async fn broken_watches_and_unreadable_objects_are_counted() {
    let seed = Seed::start().await;
    let mut broken = pod("a", "broken", "apiserver");
    broken["status"] = json!(8);
    seed.apply(broken);
    let weeder = seed.weed().await;
    shows(&weeder, r#"dwd_weeder_unreadable_objects_total{resource="pods"} 1"#).await;
    seed.server.store().compact();
    seed.server.faults().add(When::verb("watch", "pods").once(), Fault::status(410));
    seed.server.store().break_watches();
    shows(&weeder, r#"dwd_weeder_watch_restarts_total{resource="pods"} 1"#).await;
    weeder.end().await;
}

#[tokio::test]
async fn it_is_ready_once_all_is_known_and_live_without_any_api_server() {
    let seed = Seed::start().await;
    seed.server.set_network(Network::Refused);
    let weeder = seed.weed_with("", Fence::always_open()).await;
    let pulse = &weeder.instruments.pulse;
    shows(&weeder, r#"dwd_weeder_watch_restarts_total{resource="pods"} 1"#).await;
    assert!((pulse.ready().ask)().is_err());
    assert_eq!((pulse.live().ask)(), Ok(()));
    seed.server.set_network(Network::Up);
    let ready = async {
        while (pulse.ready().ask)().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("readiness", ready).await;
    weeder.end().await;
}
