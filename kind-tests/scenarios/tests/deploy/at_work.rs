//! The installation as rendered, at work on a real seed: with its own permissions, configs and
//! commands, scraped by a real Prometheus with the rendered rules.

use crate::prometheus::{Prometheus, alerts, rules};
use crate::run_books::documented_queries;
use crate::tools::{chart, overlay};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::audit::Asked;
use testbed::installation::{RunningAgent, install};
use testbed::objects::{get, items};
use testbed::page::{address, metrics};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{SeedCluster, ShootCluster, ShootPlan, eventually, scenario};

/// The usual three, at their usual replicas, held down.
const DOWN: [(&str, &str); 3] = [(KCM, "2"), (MCM, "1"), (CA, "1")];
/// The usual three with nothing held down.
const UP: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];
/// Window of rates of what is scraped every second.
const RATE: &str = "20s";

/// Gardener's config with times for shoots whose grace is short.
fn quick(config: &str) -> String {
    let config = config
        .replace("probeInterval: 30s", "probeInterval: 1s")
        .replace("initialDelay: 30s", "initialDelay: 2s");
    // The weeder's has neither.
    if config.contains("kubeConfigSecretName") {
        format!("{config}\ninitialDelay: 2s\nprobeTimeout: 4s\n")
    } else {
        config
    }
}

/// Requests of an agent, none of which was refused.
fn requests_within_rights(seed: &SeedCluster, account: &str) -> Result<Vec<Asked>> {
    let user = format!("system:serviceaccount:garden:{account}");
    let asked = seed.asked_by(&user);
    ensure!(!asked.is_empty(), "{account} has asked for nothing");
    for asked in &asked {
        ensure!(!matches!(asked.code, 401 | 403), "{asked:?}");
    }
    Ok(asked)
}

/// The queries of a dashboard's panels, with their titles.
fn panels(dashboard: &Value) -> Result<Vec<(String, String)>> {
    let mut queries = Vec::new();
    for panel in items(&dashboard["panels"]) {
        for target in items(&panel["targets"]) {
            let query = target["expr"].as_str().context("no expr")?;
            let query = query
                .replace("$job", ".*")
                .replace("$__rate_interval", RATE);
            ensure!(!query.contains('$'), "unknown variable: {query}");
            queries.push((panel["title"].to_string(), query));
        }
    }
    Ok(queries)
}

/// Parts of an alert's expression, taken apart at what compares, so that something is seen
/// whether or not it fires.
fn looks_at(expr: &str) -> Vec<String> {
    let mut parts = vec![expr.to_owned()];
    for comparison in [
        " unless on (job) ",
        " unless on (job, instance) ",
        " > ",
        " == ",
    ] {
        parts = parts
            .iter()
            .flat_map(|part| part.split(comparison))
            .map(ToOwned::to_owned)
            .collect();
    }
    // What encloses a comparison falls apart with it.
    let open = |part: &str| part.matches('(').count() > part.matches(')').count();
    let whole = parts.iter().map(|part| {
        part.rsplit_once('(')
            .filter(|_| open(part))
            .map_or(part.as_str(), |(_, inner)| inner)
    });
    whole
        .filter(|part| part.contains(['{', '(', '_']))
        .map(ToOwned::to_owned)
        .collect()
}

/// Those of some queries, each with whose it is, that find nothing.
async fn without_data(
    prometheus: &Prometheus,
    queries: &[(String, String)],
) -> Result<Vec<(String, String)>> {
    let mut missing = Vec::new();
    for (whose, query) in queries {
        if prometheus.query(query).await?.is_empty() {
            missing.push((whose.clone(), query.clone()));
        }
    }
    Ok(missing)
}

/// No label of ours is one that a ServiceMonitor gives its targets: Prometheus would rename it.
async fn keeps_its_labels(prometheus: &Prometheus) -> Result<()> {
    for series in prometheus.query("{job=~\".+\"}").await? {
        let labels = series["metric"].as_object().context("no labels")?;
        let renamed = labels.keys().find(|label| label.starts_with("exported_"));
        ensure!(renamed.is_none(), "{series}");
    }
    Ok(())
}

#[test]
fn every_query_finds_data() -> Result<()> {
    scenario(async |bed| {
        let objects = chart(
            &json!({"monitoring": {"enabled": true}, "prober": {"extraArgs": ["--metrics-per-shoot"]}}),
        )?;
        let seed = bed.own_seed().await?;
        install(seed.api(), &objects).await?;
        let shoot = ShootCluster::create(bed, &seed, "installed", ShootPlan::default()).await?;
        // One that cannot be probed, one whose Cluster says nothing, one that lacks a controller.
        let mute = ShootPlan {
            secret: false,
            ..ShootPlan::default()
        };
        let mute = ShootCluster::create(bed, &seed, "mute", mute).await?;
        let blank = json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": "shoot--bed--blank"},
            "spec": {"cloudProfile": {}, "seed": {}},
        });
        seed.api().create(&blank).await?;
        let partial = ShootPlan {
            deployments: vec![(KCM, 1)],
            ..ShootPlan::default()
        };
        let partial = ShootCluster::create(bed, &seed, "partial", partial).await?;
        // A lease without a node, a node without a good Machine: these do not count.
        shoot
            .set_machine_phase(&shoot.nodes.names()[2], "Failed")
            .await?;

        let jobs = ["dependency-watchdog-prober", "dependency-watchdog-weeder"];
        let prober = RunningAgent::installed(&seed, &objects, jobs[0], quick, &[]).await?;
        let weeder = RunningAgent::installed(&seed, &objects, jobs[1], quick, &[]).await?;
        let mut targets = Vec::new();
        for (job, agent) in [(jobs[0], &prober), (jobs[1], &weeder)] {
            let address = eventually("metrics are served", async || {
                address(agent.log_file(), "/metrics")
            })
            .await?;
            targets.push((job, vec![address]));
        }
        let folder = testbed::reaper::folder("prometheus")?;
        let prometheus = Prometheus::start(&folder, &targets, rules(&objects)?)?;
        eventually("both agents are scraped", async || {
            ensure!(prometheus.query("up == 1").await?.len() == 2);
            Ok(())
        })
        .await?;

        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        partial.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        let firing = async |name: &str, fires: bool| {
            eventually(&format!("{name} fires: {fires}"), async || {
                let firing = prometheus.firing().await?;
                ensure!(
                    firing.iter().any(|alert| alert == name) == fires,
                    "{firing:?}"
                );
                Ok(())
            })
            .await
        };
        firing("DependencyWatchdogProtectionActive", true).await?;
        firing("DependencyWatchdogProtectionBlocked", true).await?;

        let dashboard = &get(&objects, "ConfigMap garden/dependency-watchdog-dashboard")?["data"]["dependency-watchdog.json"];
        let dashboard: Value = serde_json::from_str(dashboard.as_str().context("no dashboard")?)?;
        let mut queries = panels(&dashboard)?;
        for alert in alerts(&objects)? {
            let (name, expr) = (
                alert["alert"].as_str().unwrap_or_default(),
                alert["expr"].as_str().context("no expr")?,
            );
            let parts = looks_at(expr);
            ensure!(!parts.is_empty(), "{name} looks at nothing: {expr}");
            queries.extend(parts.into_iter().map(|part| (name.to_owned(), part)));
        }
        ensure!(queries.len() > 50, "only {} queries", queries.len());
        eventually("every query finds data", async || {
            let missing = without_data(&prometheus, &queries).await?;
            ensure!(missing.is_empty(), "{missing:#?}");
            Ok(())
        })
        .await?;
        let documented = documented_queries(&shoot.namespace)?;
        let left = without_data(&prometheus, &documented).await?;

        shoot.nodes.heal_all();
        partial.nodes.heal_all();
        shoot.free_at(&UP).await?;
        partial.free_at(&[(KCM, 1)]).await?;
        eventually("every documented query finds data", async || {
            let missing = without_data(&prometheus, &left).await?;
            ensure!(missing.is_empty(), "{missing:#?}");
            Ok(())
        })
        .await?;
        keeps_its_labels(&prometheus).await?;
        firing("DependencyWatchdogProtectionActive", false).await?;
        for job in jobs {
            requests_within_rights(&seed, job)?;
        }
        for shoot in [shoot, mute, partial] {
            shoot.end().await?;
        }
        Ok(())
    })
}

#[test]
fn trial_reports_and_writes_nothing() -> Result<()> {
    scenario(async |bed| {
        let objects = overlay("trial")?;
        let seed = bed.own_seed().await?;
        install(seed.api(), &objects).await?;
        let shoot = ShootCluster::create(bed, &seed, "trial", ShootPlan::default()).await?;
        let jobs = [
            "dependency-watchdog-prober-trial",
            "dependency-watchdog-weeder-trial",
        ];
        let prober = RunningAgent::installed(&seed, &objects, jobs[0], quick, &[]).await?;
        let weeder = RunningAgent::installed(&seed, &objects, jobs[1], quick, &[]).await?;
        shoot.after_probes(2).await?;
        let from = shoot.history().len();
        shoot.nodes.cut_all();
        for name in [KCM, MCM, CA] {
            let series = format!(
                "dwd_dry_run_writes_total{{direction=\"down\",kind=\"Deployment\",name=\"{name}\"}}"
            );
            shoot
                .eventually("it counts what it would write", async || {
                    let value = metrics(prober.log_file()).await?.value(&series)?;
                    ensure!(value >= 1.0, "{value}");
                    Ok(())
                })
                .await?;
        }
        eventually("the weeder serves", async || {
            address(weeder.log_file(), "/metrics")
        })
        .await?;
        shoot.untouched_since(from)?;
        for job in jobs {
            for asked in requests_within_rights(&seed, job)? {
                let reads = ["get", "list", "watch"].contains(&asked.verb.as_str());
                ensure!(reads, "{asked:?}");
            }
        }
        shoot.nodes.heal_all();
        shoot.end().await
    })
}
