//! What happens, and what is said, when a right that Gardener grants (rules 81 to 84) is taken
//! away. Each is taken away by itself, but for those that nothing needs: the scenarios with
//! Gardener's objects do without all of them.
//!
//! docs/security.md has the table that these scenarios prove.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use testbed::agent::{AgentKind, AgentStart};
use testbed::gardener::{PROBE, PROBER, WEEDER, seed_access, shoot_access, weeder_access};
use testbed::objects::{items, path};
use testbed::shoot::KCM;
use testbed::{
    KubeApi, PATIENCE, ProberConfig, SeedCluster, ShootCluster, ShootPlan, scenario, start_prober,
};

use crate::election::leading;
use crate::{LEASES, LONG, QUICK, USUAL, alone, comes_back, is_ready, logs, shows, with_args};

const COMPLETE: &str = "dwd_probes_total{stage=\"leases\",result=\"complete\"}";
/// The resources that agents read on a seed, each with what `/readyz` says while it may not be
/// listed and a series that shows it, where there is any.
const READ: [&str; 7] = [
    r#"prober | clusters       | Clusters are not known    |"#,
    r#"prober | machines       | Machines are not known    | dwd_probes_total{stage="machines",result="seed_unknown"}"#,
    r#"prober | secrets        | Secrets are not known     | dwd_probes_total{stage="kubeconfig",result="seed_unknown"}"#,
    r#"prober | deployments    |                           | dwd_probes_total{stage="nodes",result="complete"}"#,
    r#"prober | namespaces     |                           | dwd_probes_total{stage="leases",result="complete"}"#,
    r#"weeder | pods           | have not been listed yet  | dwd_weeder_watch_restarts_total{resource="pods"}"#,
    r#"weeder | endpointslices | have not been listed yet  | dwd_weeder_watch_restarts_total{resource="endpointslices"}"#,
];

/// Takes these away from the roles of these manifests, each a resource and a verb.
pub async fn strip(api: &KubeApi, granted: &[Value], taken: &[&str]) -> Result<()> {
    for role in granted.iter().filter(|object| object["rules"].is_array()) {
        let rules = without(&role["rules"], taken);
        api.replace(&path(role)?, "/rules", &rules).await?;
    }
    Ok(())
}

fn without(rules: &Value, taken: &[&str]) -> Value {
    let mut left = Vec::new();
    for rule in items(rules) {
        for resource in items(&rule["resources"]).filter_map(Value::as_str) {
            let verbs = items(&rule["verbs"]).filter_map(Value::as_str);
            let kept = |verb: &&str| !taken.contains(&format!("{resource} {verb}").as_str());
            let verbs: Vec<&str> = verbs.filter(kept).collect();
            let mut rule = rule.clone();
            (rule["verbs"], rule["resources"]) = (json!(verbs), json!([resource]));
            left.extend((!verbs.is_empty()).then_some(rule));
        }
    }
    left.into()
}

/// An agent that may not do this says so, is ready or not meanwhile, and goes on once it may.
async fn agent_without(seed: &SeedCluster, verb: &str, row: &str) -> Result<()> {
    let row: Vec<&str> = row.split('|').map(str::trim).collect();
    let [agent, resource, unready, series] = row[..] else {
        anyhow::bail!("{row:?}")
    };
    let is_prober = agent == "prober";
    let (kind, account, granted, config) = if is_prober {
        let config = ProberConfig::default().text();
        (AgentKind::Prober, PROBER, seed_access(), config)
    } else {
        let kind = AgentKind::Weeder;
        (kind, WEEDER, weeder_access(), kind.config().to_owned())
    };
    // An account of its own.
    let (api, name) = (seed.api(), format!("may-not-{verb}-{resource}"));
    let granted = json!(granted).to_string().replace(account, &name);
    let granted: Vec<Value> = serde_json::from_str(&granted)?;
    let mut lacking = granted.clone();
    for role in lacking.iter_mut().filter(|it| it["rules"].is_array()) {
        role["rules"] = without(&role["rules"], &[&format!("{resource} {verb}")]);
    }
    api.create_all(&lacking).await?;
    let kubeconfig = seed.kubeconfig(&name).await?;
    let start = AgentStart::new(kind, seed.folder(), &name, &kubeconfig, &config)?;
    let agent = start.with(["--enable-leader-election=false"]).run()?;
    let log = agent.log_file();

    let forbidden = format!("cannot {verb} resource \"{resource}\"");
    logs(&agent, "cannot", &forbidden).await?;
    if verb == "list" {
        shows(log, "dwd_seed_known", 0.0..=0.0).await?;
    }
    match unready {
        word if verb == "list" && !word.is_empty() => is_ready(log, 500, word).await?,
        _ => is_ready(log, 200, "ok").await?,
    }
    // What it may not watch it lists again and again.
    match series {
        _ if is_prober && verb == "watch" => shows(log, COMPLETE, 1.0..).await?,
        "" => {}
        series => shows(log, series, 1.0..).await?,
    }
    strip(api, &granted, &[]).await?;
    is_ready(log, 200, "ok").await?;
    if is_prober {
        shows(log, COMPLETE, 1.0..).await?;
    }
    Ok(())
}

#[test]
fn unreadable_resources_are_told() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = ShootCluster::create(bed, &seed, "unread", ShootPlan::default()).await?;
        let begin = shoot.history().len();
        for verb in ["list", "watch"] {
            let agents = READ.map(async |row| {
                let outcome = agent_without(&seed, verb, row).await;
                outcome.with_context(|| format!("{verb} {row}"))
            });
            try_join_all(agents).await?;
        }
        shoot.untouched_since(begin)?;
        seed.search_events().await
    })
}

#[test]
fn lost_rights_are_told_and_used_again() -> Result<()> {
    scenario(async |bed| {
        let (shoot, mut prober) = alone(bed, "rights", ShootPlan::default(), &QUICK).await?;
        let (seed, plane) = (shoot.seed.clone(), shoot.plane.clone());
        let (on_seed, on_shoot) = (seed_access(), shoot_access());
        let on_seed = async |taken: &[&str]| strip(seed.api(), &on_seed, taken).await;
        let on_shoot = async |taken: &[&str]| strip(plane.api(), &on_shoot, taken).await;
        let log = prober.log_file().to_owned();
        let counted = async |series: &str| shows(&log, series, 1.0..).await;
        let begin = shoot.history().len();

        // Secrets: new credentials are those that the watch brings, without a right to get. It takes the API server up to
        // 10 s to forget a token that it has already accepted.
        on_seed(&["secrets get"]).await?;
        let account = format!("/api/v1/namespaces/kube-system/serviceaccounts/{PROBE}");
        plane.api().delete(&account).await?;
        plane.api().create_all(&shoot_access()).await?;
        let refused = "\"category\":\"unauthorized\"";
        logs(&prober, "probe not complete", refused).await?;
        shoot.renew_secret().await?;
        shoot.after_probes(2).await?;

        // The shoot: leases, then nodes, which are asked for in an outage only. What is not known
        // is no outage.
        on_shoot(&["leases list"]).await?;
        counted("dwd_probes_total{stage=\"leases\",result=\"forbidden\"}").await?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(LONG).await?;
        on_seed(&["deployments patch"]).await?;
        on_shoot(&["nodes list"]).await?;
        counted("dwd_probes_total{stage=\"nodes\",result=\"forbidden\"}").await?;

        // The seed: writes.
        on_shoot(&[]).await?;
        counted(&format!(
            "dwd_scale_operations_total{{direction=\"down\",kind=\"Deployment\",name=\"{KCM}\",result=\"forbidden\"}}"
        ))
        .await?;
        let cannot = "cannot patch resource";
        logs(&prober, "resource cannot be scaled", cannot).await?;
        shoot.untouched_since(begin)?;
        on_seed(&[]).await?;
        shoot.held_down(&USUAL).await?;

        // Events: what is done does not depend on them.
        on_seed(&["events create", "events patch"]).await?;
        comes_back(&shoot).await?;
        counted("dwd_events_lost_total").await?;
        logs(&prober, "Event could not be written", "is forbidden").await?;

        // The Lease: whoever cannot renew it ends.
        on_seed(&["leases update"]).await?;
        let status = prober.end(PATIENCE).await?;
        ensure!(status.code() == Some(1), "{status}\n{}", prober.tail(5));
        let cannot = "cannot update resource";
        logs(&prober, "Lease could not be renewed", cannot).await?;
        // Whoever cannot take it probes without leading.
        for verb in ["create", "get"] {
            let lease = format!("{LEASES}/dwd-prober-leader-election");
            seed.api().delete(&lease).await?;
            on_seed(&[&format!("leases {verb}")]).await?;
            prober = start_prober(&seed, with_args(&QUICK)).await?;
            let cannot = format!("cannot {verb} resource");
            logs(&prober, "Lease cannot be read or written", &cannot).await?;
            shoot.after_probes(1).await?;
            on_seed(&[]).await?;
            leading(&prober).await?;
        }
        seed.search_events().await
    })
}
