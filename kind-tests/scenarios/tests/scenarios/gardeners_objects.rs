//! What Gardener deploys, at work: accounts, roles, config files, commands and the access to the
//! shoot as Gardener's own code renders them, and its care controller as the judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::agent::AgentKind;
use testbed::audit::Asked;
use testbed::gardener::{PROBER, seed_access, shoot_access, weeder_access};
use testbed::gardenlet::{CareFindings, Gardenlet};
use testbed::installation::{RunningAgent, command, config, install};
use testbed::objects::{Manifests, items, key};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ShootCluster, ShootPlan, scenario};
use tokio::time::Instant;

use crate::rbac::strip;
use crate::{ORDERLY, USUAL, comes_back, goes_down};

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
/// machine-controller-manager's initialDelay in Gardener's config.
const DELAY: Duration = Duration::from_secs(30);

/// What was asked for that no role of Gardener's grants; none of it was refused.
pub fn beyond(objects: &Manifests, asked: &[Asked]) -> Result<Vec<String>> {
    let mut refused = asked.to_vec();
    refused.retain(|asked| matches!(asked.code, 401 | 403));
    ensure!(!asked.is_empty() && refused.is_empty(), "{refused:#?}");
    let is_granted = |asked: &Asked| {
        let mut rules = objects.values().flat_map(|object| items(&object["rules"]));
        rules.any(|rule| {
            items(&rule["resources"]).any(|resource| *resource == asked.resource)
                && items(&rule["verbs"]).any(|verb| *verb == asked.verb)
        })
    };
    let what = |asked: &Asked| match asked.resource.as_str() {
        "" => format!("{} {}", asked.verb, asked.uri),
        resource => format!("{} {resource}", asked.verb),
    };
    let ungranted = asked.iter().filter(|asked| !is_granted(asked));
    Ok(ungranted
        .map(what)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect())
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
        strip(seed.api(), &seed_access(), &UNNEEDED_ON_SEED).await?;
        let (unneeded, granted) = (["nodes get", "leases get"], shoot_access());
        strip(shoot.plane.api(), &granted, &unneeded).await?;
        let prober = RunningAgent::installed(&seed, &objects, PROBER, str::to_owned).await?;
        shoot.after_probes(1).await?;
        finds_nothing(&gardenlet.findings(&shoot).await?);

        let begin = shoot.history().len();
        goes_down(&shoot).await?;
        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(order[2] == KCM, "{order:?}\n{}", shoot.story());
        let noticed = async || {
            let found = gardenlet.findings(&shoot).await?;
            let scaled_down = found.scaled_down.iter().flatten();
            let all_expired = found.expired_leases.starts_with("100% of all Leases");
            ensure!(scaled_down.eq([KCM, MCM, CA]) && all_expired, "{found:?}");
            Ok(())
        };
        let what = "the care controller notices the outage";
        shoot.eventually(what, noticed).await?;
        assert_eq!(patches(&shoot), [CA, KCM, MCM], "{}", shoot.story());

        let begin = shoot.history().len();
        comes_back(&shoot).await?;
        let order = shoot.order(begin, |state| state.replicas > 0);
        assert_eq!(order, [KCM, MCM, CA], "{}", shoot.story());
        finds_nothing(&gardenlet.findings(&shoot).await?);
        // The delay of a level that has nothing to scale is not waited for.
        let since = Instant::now();
        shoot.scale(CA, 0).await?;
        shoot.free_at(&USUAL).await?;
        ensure!(since.elapsed() < DELAY, "{:?}", since.elapsed());
        let all = [CA, CA, CA, KCM, KCM, MCM, MCM];
        assert_eq!(patches(&shoot), all, "{}", shoot.story());

        // From its start to its end.
        ensure!(prober.terminate().await?.success());
        assert_eq!(beyond(&objects, &seed.asked())?, [""; 0]);
        assert_eq!(beyond(&access, &shoot.asked())?, [""; 0]);
        shoot.end().await
    })
}

fn finds_nothing(found: &CareFindings) {
    assert_eq!(found.scaled_down.iter().flatten().count(), 0, "{found:?}");
    assert_eq!(found.expired_leases, "", "{found:?}");
}

/// These roles and bindings of ours are Gardener's, and Gardener has no others.
fn same_roles(gardeners: &Manifests, ours: &[Value]) -> Result<()> {
    let grants = |object: &&Value| object["rules"].is_array() || object["roleRef"].is_object();
    let granted = |object: &Value| {
        let fields = ["rules", "roleRef", "subjects"].map(|field| object[field].clone());
        Ok((key(object)?, fields))
    };
    let ours = ours.iter().filter(grants).map(granted);
    let gardeners = gardeners.values().filter(grants).map(granted);
    let ours = ours.collect::<Result<BTreeMap<_, _>>>()?;
    assert_eq!(ours, gardeners.collect::<Result<_>>()?);
    Ok(())
}

#[test]
fn files_and_roles_are_gardeners() -> Result<()> {
    scenario(async |_| {
        let gardenlet = Gardenlet::built()?;
        let objects = gardenlet.seed().await?;
        for kind in [AgentKind::Prober, AgentKind::Weeder] {
            let name = format!("dependency-watchdog-{}", kind.name());
            assert_eq!(config(&objects, &name)?, kind.config());
            let program = "/usr/local/bin/dependency-watchdog";
            let file = "--config-file=/etc/dependency-watchdog/config/dep-config.yaml";
            let expected = [&[program, kind.name(), file], kind.args()].concat();
            assert_eq!(command(&objects, &name)?, expected);
        }
        same_roles(&objects, &[seed_access(), weeder_access()].concat())?;
        let access = gardenlet.access("shoot--bed--x", "kube-apiserver", "a certificate");
        same_roles(&access.await?, &shoot_access())
    })
}
