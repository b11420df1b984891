//! What Gardener deploys, at work: accounts, roles, config files, commands and the access to the
//! shoot as Gardener's own code renders them, and its care controller as the judge.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::agent::AgentKind;
use testbed::audit::Asked;
use testbed::gardener::{PROBER, WEEDER, seed_access, shoot_access, weeder_access};
use testbed::gardenlet::{CareFindings, Gardenlet};
use testbed::installation::{RunningAgent, command, config, install};
use testbed::objects::{Manifests, get, key};
use testbed::page::metrics;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ShootCluster, ShootPlan, eventually, own_scenario};

use crate::rbac::rights::strip;
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::weeder::plane::Plane;
use crate::{comes_back, goes_down};

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
const UNNEEDED_BY_WEEDER: [(&str, &[&str]); 3] = [
    ("pods", &["get"]),
    ("endpointslices", &["get"]),
    ("events", &["get", "update"]),
];

/// Whether a role that Gardener deploys grants this.
fn is_granted(objects: &Manifests, asked: &Asked) -> bool {
    let names = |rule: &Value, field: &str, word: &str| {
        rule[field]
            .as_array()
            .into_iter()
            .flatten()
            .any(|name| name == word)
    };
    let mut rules = objects
        .values()
        .filter_map(|object| object["rules"].as_array())
        .flatten();
    rules.any(|rule| names(rule, "resources", &asked.resource) && names(rule, "verbs", &asked.verb))
}

/// What was asked for that no role of Gardener's grants.
fn beyond(objects: &Manifests, asked: &[Asked]) -> BTreeSet<String> {
    let ungranted = asked.iter().filter(|asked| !is_granted(objects, asked));
    let what = |asked: &Asked| {
        if asked.resource.is_empty() {
            asked.uri.clone()
        } else {
            asked.resource.clone()
        }
    };
    ungranted
        .map(|asked| format!("{} {}", asked.verb, what(asked)))
        .collect()
}

/// Something was asked for, and none of it was refused.
fn requests_within_rights(asked: &[Asked]) -> Result<()> {
    let refused: Vec<_> = asked
        .iter()
        .filter(|asked| matches!(asked.code, 401 | 403))
        .collect();
    ensure!(!asked.is_empty() && refused.is_empty(), "{refused:#?}");
    Ok(())
}

/// The prober's PATCHes of a shoot's Deployments so far, by name; there are no other writes.
fn patches(shoot: &ShootCluster) -> Result<Vec<String>> {
    let asked = shoot
        .asked_of_seed()
        .into_iter()
        .filter(|asked| asked.resource.starts_with("deployments"));
    let mut names = Vec::new();
    for asked in asked.filter(|asked| !matches!(asked.verb.as_str(), "get" | "list" | "watch")) {
        ensure!(
            asked.verb == "patch" && asked.resource == "deployments" && asked.code == 200,
            "{asked:?}"
        );
        names.push(asked.name);
    }
    names.sort();
    Ok(names)
}

#[test]
fn with_gardeners_own_objects_the_prober_patches_once_a_scaling_and_gardeners_care_controller_sees_it()
-> Result<()> {
    own_scenario(
        "needs audit logs, and control planes of the testbed's own",
        async |bed| {
            let gardenlet = Gardenlet::built().await?;
            let seed = bed.own_seed().await?;
            let objects = gardenlet.seed().await?;
            install(seed.api(), &objects).await?;
            let shoot = ShootCluster::create(
                bed,
                &seed,
                "gardeners",
                ShootPlan {
                    secret: false,
                    ..ShootPlan::default()
                },
            )
            .await?;
            let access = gardenlet.give_access(&shoot).await?;
            strip(seed.api(), &seed_access(), &UNNEEDED_ON_SEED).await?;
            strip(
                shoot.plane.api(),
                &shoot_access(),
                &[("nodes", &["get"]), ("leases", &["get"])],
            )
            .await?;
            let prober = RunningAgent::installed(&seed, &objects, PROBER, str::to_owned).await?;
            shoot.after_probes(1).await?;
            finds_nothing(&gardenlet.findings(&shoot).await?);

            goes_down(&shoot).await?;
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

            comes_back(&shoot).await?;
            finds_nothing(&gardenlet.findings(&shoot).await?);
            assert_eq!(
                patches(&shoot)?,
                [CA, CA, KCM, KCM, MCM, MCM],
                "{}",
                shoot.story()
            );

            // From its start to its end.
            ensure!(
                metrics(prober.log_file())
                    .await?
                    .value("dwd_events_lost_total")?
                    == 0.0
            );
            ensure!(prober.terminate().await?.success());
            let (on_seed, on_shoot) = (seed.asked(), shoot.asked());
            requests_within_rights(&on_seed)?;
            requests_within_rights(&on_shoot)?;
            // What Kubernetes' own roles allow to everybody; docs/swap-image.md names it.
            assert_eq!(
                beyond(&objects, &on_seed),
                BTreeSet::from(["create selfsubjectaccessreviews".to_owned()])
            );
            assert_eq!(
                beyond(&access, &on_shoot),
                BTreeSet::from(["get /version".to_owned()])
            );
            shoot.end().await
        },
    )
}

#[test]
fn with_gardeners_own_objects_the_weeder_deletes_and_is_refused_nothing() -> Result<()> {
    on_ground(async |bed| {
        let gardenlet = Gardenlet::built().await?;
        let ground = Ground::own(bed).await?;
        let objects = gardenlet.seed().await?;
        install(ground.seed.api(), &objects).await?;
        strip(ground.seed.api(), &weeder_access(), &UNNEEDED_BY_WEEDER).await?;
        let weeder = RunningAgent::installed(&ground.seed, &objects, WEEDER, str::to_owned).await?;
        eventually("the weeder leads", async || {
            ensure!(!weeder.log("\"leading\"").is_empty(), "{}", weeder.tail(5));
            Ok(())
        })
        .await?;
        ground.watched().await?;
        let plane = Plane::on(&ground, "gardeners", 1).await?;
        let servers = plane.outage(None).await?;
        plane.recovery(&servers).await?;
        ensure!(weeder.terminate().await?.success());
        let asked = ground.asked();
        requests_within_rights(&asked)?;
        assert_eq!(beyond(&objects, &asked), BTreeSet::from([]));
        plane.end(1).await
    })
}

fn finds_nothing(found: &CareFindings) {
    assert_eq!(found.scaled_down.iter().flatten().count(), 0, "{found:?}");
    assert_eq!(found.expired_leases, "", "{found:?}");
}

/// These roles and bindings of ours are Gardener's, and Gardener has no others.
fn same_roles(gardeners: &Manifests, ours: &[Value]) -> Result<()> {
    let grants = |object: &Value| object["rules"].is_array() || object["roleRef"].is_object();
    let ours: Vec<&Value> = ours.iter().filter(|object| grants(object)).collect();
    for object in &ours {
        let key = key(object)?;
        for field in ["rules", "roleRef", "subjects"] {
            assert_eq!(
                object[field],
                get(gardeners, &key)?[field],
                "{key}: {field}"
            );
        }
    }
    assert_eq!(
        ours.len(),
        gardeners.values().filter(|object| grants(object)).count(),
        "{:#?}",
        gardeners.keys()
    );
    Ok(())
}

#[test]
fn what_the_test_bed_and_the_folder_config_take_for_gardeners_is_gardeners() -> Result<()> {
    own_scenario("needs Go, and is the same on all clusters", async |_| {
        let gardenlet = Gardenlet::built().await?;
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
        same_roles(
            &gardenlet
                .access("shoot--bed--x", "kube-apiserver", "a certificate")
                .await?,
            &shoot_access(),
        )
    })
}
