//! A seed that is a shoot which hosts itself (GEP-28): its Cluster `kube-system` is the only one.

use std::time::Duration;

use serde_json::json;
use testbed::gardener;
use tokio::time::sleep;

use super::owner::{IMPATIENT, config};
use super::world::{KCM, MCM, ProberWorld};

#[tokio::test(start_paused = true)]
async fn a_shoot_that_hosts_itself_is_neither_probed_nor_asked_about_nor_reported() {
    let mut world = ProberWorld::new().await;
    world.delete_cluster();
    let mut cluster = gardener::cluster("kube-system", None);
    cluster["spec"]["shoot"]["spec"]["provider"]["workers"][0]["controlPlane"] = json!({});
    world.apply(cluster);
    for dependent in [KCM, MCM] {
        world.apply(gardener::deployment("kube-system", dependent, 1));
    }
    // The checks of this config would report an owner record after 2 s.
    world.start(&config(IMPATIENT));
    let hosted = "dwd_shoots{state=\"self_hosted\"}";
    world.until_metric(hosted, 1.0).await;
    world.until_metric("dwd_seed_known", 1.0).await;
    sleep(Duration::from_secs(4)).await;
    assert_eq!(world.shoot.requests().total(), 0);
    for series in [
        "dwd_owner_shoots{standing=\"unresolved\"}",
        "dwd_oldest_complete_probe_seconds",
    ] {
        assert_eq!(world.metric(series).await, Some(0.0), "{series}");
    }
    let (_, asked) = *world.owner.borrow();
    assert_eq!((asked, world.seed.requests().writes()), (0, 0));
    world.end().await;
}
