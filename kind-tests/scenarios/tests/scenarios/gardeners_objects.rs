//! What Gardener deploys, at work: accounts, roles, config files, commands and the access to the
//! shoot as Gardener's own code renders them, and its care controller as the judge.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::audit::Asked;
use testbed::gardener::{PROBER, seed_access, shoot_access};
use testbed::gardenlet::Gardenlet;
use testbed::installation::{RunningAgent, install};
use testbed::objects::{Manifests, get, items, key};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ShootCluster, ShootPlan, scenario};

use crate::USUAL;
use crate::rbac::strip;

/// A grace that leaves time between the verdict and the moment from which order no longer counts,
/// also on a machine that does much at once.
const ORDERLY: Duration = Duration::from_secs(24);
/// What Gardener grants and what is not needed: all that follows is done without. "get" of the first
/// two is for a replica that protects in the leader's place.
const UNNEEDED_ON_SEED: [&str; 11] = [
    "clusters get",
    "namespaces get",
    "machines get",
    "deployments update",
    "deployments/scale get",
    "deployments/scale list",
    "deployments/scale watch",
    "deployments/scale update",
    "deployments/scale patch",
    "events get",
    "events update",
];

/// What was asked for that no role of Gardener's grants; none of it was refused.
pub fn beyond(objects: &Manifests, asked: &[Asked]) -> Result<BTreeSet<String>> {
    let mut refused = asked.to_vec();
    refused.retain(|asked| matches!(asked.code, 401 | 403));
    ensure!(!asked.is_empty() && refused.is_empty(), "{refused:#?}");
    let is_granted = |asked: &&Asked| {
        let mut rules = objects.values().flat_map(|object| items(&object["rules"]));
        rules.any(|rule| {
            items(&rule["resources"]).any(|resource| *resource == asked.resource)
                && items(&rule["verbs"]).any(|verb| *verb == asked.verb)
        })
    };
    let ungranted = asked.iter().filter(|asked| !is_granted(asked));
    let what = |asked: &Asked| format!("{} {}", asked.verb, asked.uri);
    Ok(ungranted.map(what).collect())
}

/// The prober's successful PATCHes of a shoot's Deployments so far, by name. It may write in no other
/// way.
fn patches(shoot: &ShootCluster) -> Vec<String> {
    let mut asked = shoot.asked_of_seed();
    asked.retain(|it| it.patches_deployment() && it.code == 200);
    let mut names = Vec::from_iter(asked.into_iter().map(|asked| asked.name));
    names.sort();
    names
}

#[test]
fn prober_of_gardener_scales_in_order() -> Result<()> {
    scenario(async |bed| {
        let gardenlet = Gardenlet::built()?;
        let seed = bed.own_seed().await?;
        let objects = gardenlet.seed().await?;
        install(seed.api(), &objects).await?;
        let plan = ShootPlan {
            grace: ORDERLY,
            secret: false,
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "gardeners", plan).await?;
        let access = gardenlet.give_access(&shoot).await?;
        // All other tests stand on these rules.
        for role in shoot_access().iter().filter(|it| it["rules"].is_array()) {
            assert_eq!(get(&access, &key(role)?)?["rules"], role["rules"]);
        }
        strip(seed.api(), &seed_access(), &UNNEEDED_ON_SEED).await?;
        let unneeded = ["nodes get", "leases get"];
        strip(shoot.plane.api(), &shoot_access(), &unneeded).await?;
        let prober = RunningAgent::installed(&seed, &objects, PROBER).await?;
        shoot.after_probes(1).await?;

        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        shoot.held_down(&USUAL).await?;
        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(order[2] == KCM, "{order:?}\n{}", shoot.story());
        let noticed = async || {
            let found = gardenlet.findings(&shoot).await?;
            let expired = found["expiredLeases"].as_str().unwrap_or_default();
            let are_all = expired.starts_with("100% of all Leases");
            ensure!(
                found["scaledDown"] == json!([KCM, MCM, CA]) && are_all,
                "{found}"
            );
            Ok(())
        };
        let what = "the care controller notices the outage";
        shoot.eventually(what, noticed).await?;

        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.free_at(&USUAL).await?;
        let order = shoot.order(begin, |state| state.replicas > 0);
        assert_eq!(order, [KCM, MCM, CA], "{}", shoot.story());
        let all = [CA, CA, KCM, KCM, MCM, MCM];
        assert_eq!(patches(&shoot), all, "{}", shoot.story());

        // From its start to its end.
        ensure!(prober.terminate().await?.success());
        assert_eq!(beyond(&objects, &seed.asked())?, BTreeSet::new());
        assert_eq!(beyond(&access, &shoot.asked())?, BTreeSet::new());
        shoot.nothing_was_forbidden()
    })
}
