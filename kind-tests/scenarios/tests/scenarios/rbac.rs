//! What happens, and what is said, when a right that Gardener grants (rules 81 to 84) is taken
//! away. Each is taken away by itself, but for those that nothing needs: the scenarios with
//! Gardener's objects do without all of them.
//!
//! docs/security.md has the table that these scenarios prove.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::agent::{AgentKind, AgentStart, RunningAgent};
use testbed::crash_loop::PodHealth;
use testbed::gardener::{GARDEN, PROBER, WEEDER, seed_access, shoot_access, weeder_access};
use testbed::objects::{items, path};
use testbed::shoot::KCM;
use testbed::{
    KubeApi, Prober, ProberConfig, SeedCluster, ShootCluster, ShootPlan, eventually, scenario,
};

use crate::election::{ends_with_1, leading};
use crate::weeder::{ETCD, Plane};
use crate::{DOWN, LEASES, QUICK, alone, answers, comes_back, end_alone, logs, shows, with_args};

const COMPLETE: &str = "dwd_probes_total{stage=\"leases\",result=\"complete\"}";
/// The resources that agents read on a seed, each with what `/readyz` says while it may not be
/// listed, and a series that shows it.
const READ: [(AgentKind, &str, Option<&str>, Option<&str>); 7] = [
    (
        AgentKind::Prober,
        "clusters",
        Some("Clusters are not known"),
        None,
    ),
    (
        AgentKind::Prober,
        "machines",
        Some("Machines are not known"),
        Some("dwd_probes_total{stage=\"machines\",result=\"seed_unknown\"}"),
    ),
    (
        AgentKind::Prober,
        "secrets",
        Some("Secrets are not known"),
        Some("dwd_probes_total{stage=\"kubeconfig\",result=\"seed_unknown\"}"),
    ),
    (
        AgentKind::Prober,
        "deployments",
        None,
        Some("dwd_probes_total{stage=\"nodes\",result=\"complete\"}"),
    ),
    (AgentKind::Prober, "namespaces", None, Some(COMPLETE)),
    (
        AgentKind::Weeder,
        "pods",
        Some("have not been listed yet"),
        Some("dwd_weeder_watch_restarts_total{resource=\"pods\"}"),
    ),
    (
        AgentKind::Weeder,
        "endpointslices",
        Some("have not been listed yet"),
        Some("dwd_weeder_watch_restarts_total{resource=\"endpointslices\"}"),
    ),
];

/// Takes these away from the roles of these manifests: by resource, then verbs.
pub async fn strip(api: &KubeApi, granted: &[Value], taken: &[(&str, &[&str])]) -> Result<()> {
    for role in granted.iter().filter(|object| object["rules"].is_array()) {
        let rules = without(&role["rules"], taken);
        api.replace(&path(role)?, "/rules", &rules).await?;
    }
    Ok(())
}

fn without(rules: &Value, taken: &[(&str, &[&str])]) -> Value {
    let mut left = Vec::new();
    for rule in items(rules) {
        for resource in items(&rule["resources"]) {
            let of_it = taken.iter().filter(|(name, _)| resource == name);
            let lost: Vec<&str> = of_it.flat_map(|(_, verbs)| verbs.iter().copied()).collect();
            let kept = items(&rule["verbs"]).filter(|verb| lost.iter().all(|lost| verb != lost));
            let mut rule = rule.clone();
            (rule["verbs"], rule["resources"]) = (kept.cloned().collect(), json!([resource]));
            left.push(rule);
        }
    }
    left.retain(|rule| rule["verbs"] != json!([]));
    left.into()
}

/// An agent that may not do this says so, is ready or not meanwhile, and goes on once it may.
async fn agent_without(
    seed: &SeedCluster,
    verb: &str,
    (kind, resource, unready, shown): (AgentKind, &str, Option<&str>, Option<&str>),
) -> Result<()> {
    let (account, granted, config) = match kind {
        AgentKind::Prober => (PROBER, seed_access(), ProberConfig::default().text()),
        AgentKind::Weeder => (WEEDER, weeder_access(), kind.config().to_owned()),
    };
    let (api, name) = (seed.api(), format!("may-not-{verb}-{resource}"));
    let granted = json!(granted).to_string().replace(account, &name);
    let granted: Vec<Value> = serde_json::from_str(&granted)?;
    let mut lacking = granted.clone();
    for role in lacking
        .iter_mut()
        .filter(|object| object["rules"].is_array())
    {
        role["rules"] = without(&role["rules"], &[(resource, &[verb])]);
    }
    api.create_all(&lacking).await?;
    let token = api.token(GARDEN, &name).await?;
    let kubeconfig = seed.plane().kubeconfig(&seed.plane().url(), &token);
    let start = AgentStart::new(kind, seed.folder(), &name, &kubeconfig, &config)?;
    let agent = start.with(["--enable-leader-election=false"]).run()?;
    let log = agent.log_file();

    let forbidden = format!("cannot {verb} resource \"{resource}\"");
    eventually(&forbidden, async || {
        // Quoted once or twice.
        let said = agent.log("cannot").iter().any(|line| {
            let line = line.to_string().replace('\\', "");
            line.contains(&forbidden)
        });
        ensure!(said, "{}", agent.tail(20));
        Ok(())
    })
    .await?;
    if verb == "list" {
        shows(log, "dwd_seed_known", 0.0..=0.0).await?;
    }
    match unready.filter(|_| verb == "list") {
        Some(word) => answers(log, "/readyz", 500, word).await?,
        None => answers(log, "/readyz", 200, "ok").await?,
    }
    // What it may not watch it lists again and again.
    let shown = shown.filter(|_| verb == "list" || kind == AgentKind::Weeder);
    if let Some(series) = shown.or((verb == "watch").then_some(COMPLETE)) {
        shows(log, series, 1.0..).await?;
    }
    strip(api, &granted, &[]).await?;
    answers(log, "/readyz", 200, "ok").await?;
    if kind == AgentKind::Prober {
        shows(log, COMPLETE, 1.0..).await?;
    }
    Ok(())
}

#[test]
fn unreadable_resources_are_told() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let plan = ShootPlan {
            forbidden: true,
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "unread", plan).await?;
        let begin = shoot.history().len();
        for verb in ["list", "watch"] {
            let agents = READ.map(async |row| {
                let outcome = agent_without(&seed, verb, row).await;
                outcome.with_context(|| format!("{verb} {}", row.1))
            });
            try_join_all(agents).await?;
        }
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}

#[test]
fn lost_rights_are_told_and_used_again() -> Result<()> {
    scenario(async |bed| {
        let plan = ShootPlan {
            forbidden: true,
            ..ShootPlan::default()
        };
        let (shoot, mut prober) = alone(bed, "rights", plan, with_args(&QUICK)).await?;
        let (seed, plane) = (shoot.seed.clone(), shoot.plane.clone());
        let (on_seed, on_shoot) = (seed_access(), shoot_access());
        let on_seed = async |taken: &[(&str, &[&str])]| strip(seed.api(), &on_seed, taken).await;
        let on_shoot = async |taken: &[(&str, &[&str])]| strip(plane.api(), &on_shoot, taken).await;
        let log = prober.log_file().to_owned();
        let counted = async |series: &str| shows(&log, series, 1.0..).await;
        let begin = shoot.history().len();

        // Secrets: new credentials are those that the watch brings.
        on_seed(&[("secrets", &["get"])]).await?;
        shoot.revoke_tokens().await?;
        logs(
            &prober,
            "probe not complete",
            "\"category\":\"seed_unknown\"",
        )
        .await?;
        shoot.renew_secret().await?;
        shoot.after_probes(2).await?;

        // The shoot: leases, then nodes, which are asked for in an outage only. What is not known
        // is no outage.
        on_shoot(&[("leases", &["list"])]).await?;
        counted("dwd_probes_total{stage=\"leases\",result=\"forbidden\"}").await?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(Duration::from_secs(12)).await?;
        on_seed(&[("deployments", &["patch"])]).await?;
        on_shoot(&[("nodes", &["list"])]).await?;
        counted("dwd_probes_total{stage=\"nodes\",result=\"forbidden\"}").await?;

        // The seed: writes.
        on_shoot(&[]).await?;
        counted(&format!(
            "dwd_scale_operations_total{{direction=\"down\",kind=\"Deployment\",name=\"{KCM}\",result=\"forbidden\"}}"
        ))
        .await?;
        logs(
            &prober,
            "resource cannot be scaled",
            "cannot patch resource",
        )
        .await?;
        shoot.untouched_since(begin)?;
        on_seed(&[]).await?;
        shoot.held_down(&DOWN).await?;

        // Events: what is done does not depend on them.
        on_seed(&[("events", &["create", "patch"])]).await?;
        comes_back(&shoot).await?;
        counted("dwd_events_lost_total").await?;
        logs(&prober, "Event could not be written", "is forbidden").await?;

        // The Lease: whoever cannot renew it ends.
        on_seed(&[("leases", &["update"])]).await?;
        ends_with_1(&mut prober).await?;
        logs(
            &prober,
            "Lease could not be renewed",
            "cannot update resource",
        )
        .await?;
        // Whoever cannot take it probes without leading.
        for verb in ["create", "get"] {
            let lease = format!("{LEASES}/dwd-prober-leader-election");
            seed.api().delete(&lease).await?;
            on_seed(&[("leases", &[verb])]).await?;
            prober = Prober::start(&seed, with_args(&QUICK)).await?;
            let cannot = format!("cannot {verb} resource");
            logs(&prober, "Lease cannot be read or written", &cannot).await?;
            shoot.after_probes(1).await?;
            on_seed(&[]).await?;
            leading(&prober).await?;
        }
        end_alone(shoot, prober).await
    })
}

#[test]
fn right_to_delete_is_missed_and_used() -> Result<()> {
    scenario(async |bed| {
        let plane = Plane::create(bed, "rights").await?;
        let (api, token) = (plane.api(), plane.api().token(GARDEN, WEEDER).await?);
        let kubeconfig = plane
            .seed
            .plane()
            .kubeconfig(&plane.seed.plane().url(), &token);
        let weeder = RunningAgent::alone(AgentKind::Weeder, &kubeconfig, None, &[])?;
        plane.watched(&weeder).await?;
        strip(api, &weeder_access(), &[("pods", &["delete"])]).await?;
        plane.crash(ETCD, PodHealth::Waiting).await?;
        plane.recover(ETCD).await?;
        let refused = "dwd_weeder_deletions_total{result=\"forbidden\"}";
        shows(weeder.log_file(), refused, 1.0..).await?;
        logs(
            &weeder,
            "pod could not be deleted",
            "\"result\":\"forbidden\"",
        )
        .await?;
        let missing = "the right to delete pods is missing in all namespaces";
        logs(&weeder, missing, "").await?;
        ensure!(plane.is_there(ETCD).await?, "deleted all the same");
        strip(api, &weeder_access(), &[]).await?;
        // No pod changes and no Service recovers: it tries again by itself, seldom.
        plane.deleted(ETCD).await?;
        let answers = plane.deletions().await?;
        ensure!(
            answers.ends_with(&[403, 200]) && answers.len() <= 4,
            "{answers:?}"
        );
        ensure!(weeder.log(missing).len() == 1, "once is enough");
        Ok(())
    })
}
