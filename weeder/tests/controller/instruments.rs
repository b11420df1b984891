//! What the rest of the process observes of the work.

use std::time::Duration;

use api_server::{Fault, Network, When};
use common::leader_election::Role;
use serde_json::json;

use crate::seed::{ETCD, WeederSeed, pod, soon};

#[tokio::test]
async fn windows_and_deletions_are_counted() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let of = |name: &'static str| {
        When::matches(move |record| record.verb == "delete" && record.name == name)
    };
    seed.server.faults().add(of("p").once(), Fault::status(503));
    seed.server.faults().add(of("q"), Fault::status(403));
    seed.apply(pod("a", "p", "apiserver"));
    seed.apply(pod("b", "q", "apiserver"));
    seed.recover("a", ETCD);
    seed.recover("b", ETCD);
    // The answers, not the pods' being gone: the window must not close before them.
    weeder
        .counts(r#"dwd_weeder_deletions_total{result="deleted"}"#, 1)
        .await;
    weeder
        .counts(r#"dwd_weeder_deletions_total{result="forbidden"}"#, 1)
        .await;
    weeder.counts("dwd_weeder_windows_open", 2).await;
    seed.slice("a", ETCD, &[]);
    seed.slice("b", ETCD, &[]);
    weeder
        .counts(r#"dwd_weeder_windows_closed_total{reason="not_ready"}"#, 2)
        .await;
    let no_window_is_open = async {
        while weeder
            .shown()
            .iter()
            .any(|line| line.starts_with("dwd_weeder_windows_open "))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("no open window", no_window_is_open).await;
    let mut shown = weeder.shown();
    shown.sort();
    let expected = [
        r#"dwd_weeder_deletions_total{result="deleted"} 1"#,
        r#"dwd_weeder_deletions_total{result="forbidden"} 1"#,
        r#"dwd_weeder_deletions_total{result="server"} 1"#,
        "dwd_weeder_namespaces 2",
        r#"dwd_weeder_windows_closed_total{reason="not_ready"} 2"#,
        r#"dwd_weeder_windows_opened_total{reason="recovery"} 2"#,
    ];
    assert_eq!(shown, expected);
    weeder.end().await;
}

#[tokio::test]
async fn broken_watches_and_unreadable_objects_are_counted() {
    let seed = WeederSeed::start().await;
    let mut broken = pod("a", "broken", "apiserver");
    broken["status"] = json!(8);
    seed.apply(broken);
    let weeder = seed.start_weeder().await;
    weeder
        .counts(r#"dwd_weeder_unreadable_objects_total{resource="pods"}"#, 1)
        .await;
    seed.server.store().compact();
    seed.server
        .faults()
        .add(When::verb("watch", "pods").once(), Fault::status(410));
    seed.server.store().break_watches();
    weeder
        .counts(r#"dwd_weeder_watch_restarts_total{resource="pods"}"#, 1)
        .await;
    weeder.end().await;
}

#[tokio::test]
async fn it_is_ready_once_all_is_known_and_live_without_any_api_server() {
    let seed = WeederSeed::start().await;
    seed.server.set_network(Network::Refused);
    let weeder = seed.start_weeder_with("", Role::Alone).await;
    let heartbeat = &weeder.instruments.heartbeat;
    weeder
        .counts(r#"dwd_weeder_watch_restarts_total{resource="pods"}"#, 1)
        .await;
    assert!((heartbeat.ready().ask)().is_err());
    assert_eq!((heartbeat.live().ask)(), Ok(()));
    seed.server.set_network(Network::Up);
    let ready = async {
        while (heartbeat.ready().ask)().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("readiness", ready).await;
    weeder.end().await;
}
