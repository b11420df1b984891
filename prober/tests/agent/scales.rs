//! Dependents whose replicas are read by their scale subresource.

use api_server::{Fault, Resource, Rule, When};
use serde_json::json;
use testbed::PATIENCE;
use testbed::gardener::{self, REPLICAS};
use tokio::time::timeout;

use super::log::SEED_TOKEN;
use super::world::{CONFIG, KCM, MCM, NAMESPACE, ProberWorld, held};

const SCALERS: &str = "scalers.bed.example.org";
/// In the order of lists it comes before the shoot.
const OTHER: &str = "shoot--p--a";

/// Reads of the scale in a namespace.
fn reads(namespace: &'static str) -> When {
    When::matches(move |record| {
        let path = format!("/{namespace}/scalers/scaler/scale");
        record.verb == "get" && record.path.ends_with(&path)
    })
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_cannot_be_read_holds_up_no_other_shoot() {
    let mut world = ProberWorld::new().await;
    let scalers = Resource::custom("bed.example.org/v1", "scalers", "Scaler").with_status();
    world.seed.store().register(scalers.with_scale());
    let mut user = gardener::seed_prober();
    let resources = format!("{SCALERS},{SCALERS}/scale");
    let more = Rule::new("get,list,watch,update,patch", &resources);
    user.rules.get_or_insert_default().push(more);
    world.seed.access().grant(SEED_TOKEN, user);
    for namespace in [OTHER, NAMESPACE] {
        world.apply(json!({"apiVersion": "bed.example.org/v1", "kind": "Scaler",
            "metadata": {"name": "scaler", "namespace": namespace}, "spec": {"replicas": 4}}));
    }
    let stalled = world.fails(reads(OTHER), Fault::Stall);
    let refused = world.fails(reads(NAMESPACE), Fault::status(500));
    world.start(&format!(
        "{CONFIG}- ref: {{kind: Scaler, name: scaler, apiVersion: bed.example.org/v1}}\n  scaleUp: {{level: 3}}\n  scaleDown: {{level: 0}}\n"
    ));
    world.met(stalled, 1).await;
    // It is read again although nothing changes.
    world.met(refused, 5).await;
    world.probes(3).await;
    world.nodes.cut_all();
    for name in [KCM, MCM] {
        world.until_it_is(name, held("1")).await;
    }
    let scaler = |store: &api_server::Store| store.get(SCALERS, NAMESPACE, "scaler");
    let unknown = scaler(world.seed.store()).expect("it exists");
    assert_eq!(
        unknown["spec"]["replicas"], 4,
        "what is it to come back to?"
    );
    world.seed.faults().remove(refused);
    let down = world
        .seed
        .store()
        .wait_for(|store| scaler(store).filter(|scaler| scaler["spec"]["replicas"] == 0));
    let down = timeout(PATIENCE, down).await.expect("it goes down");
    assert_eq!(down["metadata"]["annotations"][REPLICAS], "4");
    world.end().await;
}
