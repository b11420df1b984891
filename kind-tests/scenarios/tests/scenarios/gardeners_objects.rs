//! What Gardener deploys, at work: accounts, roles, config files, commands and the access to the
//! shoot as Gardener's own code renders them, and its care controller as the judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::agent::AgentKind;
use testbed::audit::Asked;
use testbed::crash_loop::PodHealth;
use testbed::gardener::{PROBER, WEEDER, seed_access, shoot_access, weeder_access};
use testbed::gardenlet::{CareFindings, Gardenlet};
use testbed::installation::{RunningAgent, command, config, install};
use testbed::objects::{Manifests, items, key};
use testbed::page::metrics;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ShootCluster, ShootPlan, scenario};
use tokio::time::Instant;

use crate::metrics::are_as_documented;
use crate::rbac::strip;
use crate::weeder::{ETCD, Plane, SERVER};
use crate::{ORDERLY, UP, comes_back, goes_down};

/// What Gardener grants and what is not needed, by resource and verbs: all that follows is done
/// without. "get" of the first two is for a replica that protects in the leader's place.
const UNNEEDED_ON_SEED: [(&str, &[&str]); 6] = [
    ("clusters", &["get"]),
    ("namespaces", &["get"]),
    ("machines", &["get"]),
    ("deployments", &["update"]),
    (
        "deployments/scale",
        &["get", "list", "watch", "update", "patch"],
    ),
    ("events", &["get", "update"]),
];
/// machine-controller-manager's initialDelay in Gardener's config.
const DELAY: Duration = Duration::from_secs(30);
const UNNEEDED_BY_WEEDER: [(&str, &[&str]); 3] = [
    ("pods", &["get"]),
    ("endpointslices", &["get"]),
    ("events", &["get", "update"]),
];

/// What was asked for that no role of Gardener's grants; none of it was refused.
fn beyond(objects: &Manifests, asked: &[Asked]) -> Result<BTreeSet<String>> {
    let refused: Vec<_> = asked
        .iter()
        .filter(|asked| matches!(asked.code, 401 | 403))
        .collect();
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
    Ok(ungranted.map(what).collect())
}

/// What Kubernetes' own roles allow to everybody; docs/swap-image.md names it.
fn granted_to_all() -> BTreeSet<String> {
    BTreeSet::from(["create selfsubjectaccessreviews".to_owned()])
}

/// The prober's PATCHes of a shoot's Deployments so far, by name; there are no other writes. One that
/// met a controller's write of the status was decided again.
fn patches(shoot: &ShootCluster) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for asked in shoot.asked_of_seed() {
        let writes = !["get", "list", "watch"].contains(&asked.verb.as_str());
        if asked.resource.starts_with("deployments") && writes && asked.code != 409 {
            ensure!(
                asked.verb == "patch" && asked.resource == "deployments" && asked.code == 200,
                "{asked:?}"
            );
            names.push(asked.name);
        }
    }
    names.sort();
    Ok(names)
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
        let unneeded: [(&str, &[&str]); 2] = [("nodes", &["get"]), ("leases", &["get"])];
        strip(shoot.plane.api(), &shoot_access(), &unneeded).await?;
        let prober = RunningAgent::installed(&seed, &objects, PROBER, str::to_owned, &[]).await?;
        shoot.after_probes(1).await?;
        finds_nothing(&gardenlet.findings(&shoot).await?);

        let begin = shoot.history().len();
        goes_down(&shoot).await?;
        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(order[2] == KCM, "{order:?}\n{}", shoot.story());
        shoot
            .eventually("the care controller notices the outage", async || {
                let found = gardenlet.findings(&shoot).await?;
                let scaled_down = found.scaled_down.iter().flatten();
                ensure!(scaled_down.eq([KCM, MCM, CA]), "{found:?}");
                ensure!(
                    found.expired_leases.starts_with("100% of all Leases"),
                    "{found:?}"
                );
                Ok(())
            })
            .await?;
        assert_eq!(patches(&shoot)?, [CA, KCM, MCM], "{}", shoot.story());

        let begin = shoot.history().len();
        comes_back(&shoot).await?;
        let order = shoot.order(begin, |state| state.replicas > 0);
        assert_eq!(order, [KCM, MCM, CA], "{}", shoot.story());
        finds_nothing(&gardenlet.findings(&shoot).await?);
        // The delay of a level that has nothing to scale is not waited for.
        let since = Instant::now();
        shoot.scale(CA, 0).await?;
        shoot.free_at(&UP).await?;
        ensure!(since.elapsed() < DELAY, "{:?}", since.elapsed());
        let all = [CA, CA, CA, KCM, KCM, MCM, MCM];
        assert_eq!(patches(&shoot)?, all, "{}", shoot.story());

        // From its start to its end.
        let lost = metrics(prober.log_file())
            .await?
            .value("dwd_events_lost_total")?;
        ensure!(
            lost == 0.0 && prober.terminate().await?.success(),
            "{lost} lost"
        );
        assert_eq!(beyond(&objects, &seed.asked())?, granted_to_all());
        let on_shoot = BTreeSet::from(["get /version".to_owned()]);
        assert_eq!(beyond(&access, &shoot.asked())?, on_shoot);
        shoot.end().await
    })
}

#[test]
fn weeder_of_gardener_restarts_a_chain() -> Result<()> {
    scenario(async |bed| {
        let objects = Gardenlet::built()?.seed().await?;
        let plane = Plane::create(bed, "gardeners").await?;
        install(plane.api(), &objects).await?;
        strip(plane.api(), &weeder_access(), &UNNEEDED_BY_WEEDER).await?;
        let weeder =
            RunningAgent::installed(&plane.seed, &objects, WEEDER, str::to_owned, &[]).await?;
        plane.watched(&weeder).await?;
        // A disruption budget is no obstacle to a pod that serves nobody anyway.
        let selector = json!({"matchLabels": {"role": ETCD.1}});
        let metadata = json!({"name": "none", "namespace": plane.namespace});
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": {"maxUnavailable": 0, "selector": selector}});
        plane.api().create(&budget).await?;
        plane.crash(SERVER, PodHealth::Terminated).await?;
        plane.crash(ETCD, PodHealth::Waiting).await?;
        plane.recover(ETCD).await?;
        plane.deleted(ETCD).await?;
        ensure!(plane.is_there(SERVER).await?, "what it needs is not back");
        plane.recover(SERVER).await?;
        plane.deleted(SERVER).await?;
        are_as_documented(weeder.log_file(), "Weeder").await?;
        ensure!(weeder.terminate().await?.success());
        assert_eq!(beyond(&objects, &plane.asked())?, granted_to_all());
        assert_eq!(plane.deletions().await?, [200, 200]);
        Ok(())
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
            let command = command(&objects, &name)?;
            let file = "--config-file=/etc/dependency-watchdog/config/dep-config.yaml";
            assert_eq!(
                command[..3],
                ["/usr/local/bin/dependency-watchdog", kind.name(), file]
            );
            assert_eq!(command[3..], *kind.args());
        }
        same_roles(&objects, &[seed_access(), weeder_access()].concat())?;
        let access = gardenlet.access("shoot--bed--x", "kube-apiserver", "a certificate");
        same_roles(&access.await?, &shoot_access())
    })
}
