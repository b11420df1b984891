//! A seed that is a shoot which hosts itself (GEP-28): its Cluster `kube-system` is the only one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::Utc;
use common::logging::{LevelFilter, ZapLayer};
use serde_json::{Value, json};
use testbed::dns::Reply;
use testbed::gardener;
use tokio::time::timeout;
use tracing_subscriber::layer::SubscriberExt;

use super::operations::Served;
use super::owner::{self, config, dns};
use super::world::ProberWorld;

#[tokio::test]
async fn a_shoot_that_hosts_itself_is_neither_probed_nor_asked_about_nor_reported() {
    let world = ProberWorld::new().await;
    world.delete_cluster();
    let mut cluster = gardener::cluster("kube-system", None);
    cluster["spec"]["shoot"]["spec"]["provider"]["workers"][0]["controlPlane"] = json!({});
    world.apply(cluster);
    for dependent in ["kube-controller-manager", "machine-controller-manager"] {
        world.apply(gardener::deployment("kube-system", dependent, 1));
    }
    let lines = Arc::new(Mutex::new(Vec::<Value>::new()));
    let heard = Arc::clone(&lines);
    let sink = move |line: Vec<u8>| {
        heard
            .lock()
            .unwrap()
            .push(serde_json::from_slice(&line).unwrap())
    };
    // All of this test runs in this thread.
    let log =
        tracing_subscriber::registry().with(ZapLayer::new(LevelFilter::DEBUG, sink, Utc::now));
    let _log = tracing::subscriber::set_default(log);
    let dns = dns(Reply::Failure).await;
    // The checks of this config would report an owner record after 2 s.
    let served = Served::serve_with(world, &config(&dns, owner::IMPATIENT), &[]).await;
    served
        .until_metric("dwd_shoots{state=\"self_hosted\"}", |count| count == 1.0)
        .await;
    served
        .until_metric("dwd_seed_known", |known| known == 1.0)
        .await;
    let asked = served
        .world
        .shoot
        .requests()
        .wait_for(|all| (!all.is_empty()).then_some(()));
    assert!(
        timeout(Duration::from_secs(4), asked).await.is_err(),
        "the shoot is asked"
    );

    assert_eq!(
        served
            .metric("dwd_owner_shoots{standing=\"unresolved\"}")
            .await,
        0.0
    );
    assert_eq!(
        served.metric("dwd_oldest_complete_probe_seconds").await,
        0.0
    );
    let (_, metrics) = served.get(&served.metrics, "text/plain").await;
    assert!(!metrics.contains("\ndwd_probes_total{"), "{metrics}");
    assert_eq!((dns.asked(), served.world.written()), (vec![], vec![]));
    let lines = lines.lock().unwrap().clone();
    assert!(lines.len() > 3, "{lines:?}");
    let bad: Vec<_> = lines
        .iter()
        .filter(|line| line["level"] != "info")
        .collect();
    assert!(bad.is_empty(), "{bad:?}");
    served.world.end().await;
}
