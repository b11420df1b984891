//! The installation as rendered, at work on a real seed: with its own permissions, configs and
//! commands, scraped by a real Prometheus with the rendered rules.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::agent::AgentKind;
use testbed::installation::{RunningAgent, install};
use testbed::page::address;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ShootCluster, ShootPlan, eventually, scenario};

use crate::prometheus::{Prometheus, alerts, rules};
use crate::tools::{chart, quick, shell};

/// Window of rates of what is scraped every second.
const RATE: &str = "20s";

/// Parts of an alert's expression, taken apart at what compares, so that something is seen
/// whether or not it fires.
fn looks_at(expr: &str) -> Vec<String> {
    let mut apart = expr.to_owned();
    for comparison in [
        " unless on (job) ",
        " unless on (job, instance) ",
        " > ",
        " == ",
    ] {
        apart = apart.replace(comparison, "\n");
    }
    // What encloses a comparison falls apart with it.
    let open = |part: &str| part.matches('(').count() > part.matches(')').count();
    let whole = apart.lines().map(|part| match part.rsplit_once('(') {
        Some((_, inner)) if open(part) => inner,
        _ => part,
    });
    let asks = whole.filter(|part| part.contains(['{', '(', '_']));
    asks.map(str::to_owned).collect()
}

/// The queries that pages tell people to ask Prometheus; they are about a shoot if they name one.
fn documented_queries(shoot: &str) -> Result<Vec<String>> {
    let text = shell("cat docs/metrics.md docs/monitor.md docs/run-books/*", &[])?;
    let mut queries = Vec::new();
    for line in text.lines() {
        let spans = line.split('`').skip(1).step_by(2);
        for text in spans.chain(line.split(" # ").take(1)) {
            // A table names a metric with its labels alone.
            let asks = text.contains("dwd_") && text.contains(['(', '"']);
            if asks && !text.contains(['`', '|']) {
                queries.push(text.trim().replace("shoot--project--name", shoot));
            }
        }
    }
    ensure!(queries.len() >= 8, "only {queries:#?}");
    Ok(queries)
}

/// Those of some queries that find nothing.
async fn without_data(prometheus: &Prometheus, queries: &[String]) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for query in queries {
        if prometheus.query(query).await?.is_empty() {
            missing.push(query.clone());
        }
    }
    Ok(missing)
}

/// Waits until each of some queries finds something.
async fn find_data(prometheus: &Prometheus, queries: &[String]) -> Result<()> {
    eventually("every query finds data", async || {
        let missing = without_data(prometheus, queries).await?;
        ensure!(missing.is_empty(), "{missing:#?}");
        Ok(())
    })
    .await
}

/// Finds an alert that fires.
fn firing(alert: &str) -> String {
    format!("ALERTS{{alertstate=\"firing\", alertname=\"DependencyWatchdog{alert}\"}}")
}

#[test]
fn every_query_finds_data() -> Result<()> {
    scenario(async |bed| {
        let [prober, weeder] =
            [&*quick(), AgentKind::Weeder.config()].map(serde_saphyr::from_str::<Value>);
        let values = format!(
            "monitoring: {{enabled: true}}\nprober: {{config: {}}}\nweeder: {{config: {}}}",
            prober?, weeder?
        );
        let objects = chart(&values)?;
        let seed = bed.own_seed().await?;
        install(seed.api(), &objects).await?;
        let shoot = ShootCluster::create(bed, &seed, "installed", ShootPlan::default()).await?;
        // One that cannot be probed, one whose Cluster says nothing, one that lacks a controller.
        let mute = ShootPlan {
            secret: false,
            ..ShootPlan::default()
        };
        let mute = ShootCluster::create(bed, &seed, "mute", mute).await?;
        let blank = "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Cluster,
            metadata: {name: shoot--bed--blank}, spec: {cloudProfile: {}, seed: {}}}";
        seed.api().create(&serde_saphyr::from_str(blank)?).await?;
        let partial = ShootPlan {
            deployments: vec![(KCM, 1)],
            ..ShootPlan::default()
        };
        let partial = ShootCluster::create(bed, &seed, "partial", partial).await?;
        // A lease without a node, a node without a good Machine: these do not count.
        shoot
            .set_machine_phase(&shoot.nodes.names()[2], "Failed")
            .await?;

        let (mut agents, mut targets) = (Vec::new(), Vec::new());
        let jobs = ["dependency-watchdog-prober", "dependency-watchdog-weeder"];
        for job in jobs {
            let agent = RunningAgent::installed(&seed, &objects, job, str::to_owned).await?;
            let served = async || address(agent.log_file(), "/metrics");
            targets.push((job, eventually("metrics are served", served).await?));
            agents.push(agent);
        }
        let folder = testbed::reaper::folder("prometheus")?;
        let prometheus = Prometheus::start(&folder, &targets, rules(&objects)?)?;
        find_data(&prometheus, &["count(up == 1) == 2".to_owned()]).await?;

        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        partial.nodes.cut_all();
        shoot
            .held_down(&[(KCM, "2"), (MCM, "1"), (CA, "1")])
            .await?;
        find_data(
            &prometheus,
            &["ProtectionActive", "ProtectionBlocked"].map(firing),
        )
        .await?;

        let panels = "jq -r '.panels[].targets[]?.expr' deploy/kustomize/components/monitoring/dashboard.json";
        let panels = shell(panels, &[])?.replace("$job", ".*");
        let panels = panels.replace("$__rate_interval", RATE);
        ensure!(!panels.contains('$'), "unknown variable: {panels}");
        let mut queries: Vec<_> = panels.lines().map(str::to_owned).collect();
        for alert in alerts(&objects)? {
            let parts = looks_at(alert["expr"].as_str().context("no expr")?);
            ensure!(!parts.is_empty(), "it looks at nothing: {alert}");
            queries.extend(parts);
        }
        ensure!(queries.len() > 50, "only {} queries", queries.len());
        find_data(&prometheus, &queries).await?;
        // Some of the pages' are about what comes after an outage.
        let documented = documented_queries(&shoot.namespace)?;
        let left = without_data(&prometheus, &documented).await?;

        shoot.nodes.heal_all();
        partial.nodes.heal_all();
        shoot.free_at(&[(KCM, 2), (MCM, 1), (CA, 1)]).await?;
        partial.free_at(&[(KCM, 1)]).await?;
        find_data(&prometheus, &left).await?;
        let is_over = format!("absent({})", firing("ProtectionActive"));
        find_data(&prometheus, &[is_over]).await?;
        // No label of ours is one that a ServiceMonitor gives its targets: Prometheus would rename it.
        for series in prometheus.query("{job=~\".+\"}").await? {
            ensure!(
                !series["metric"].to_string().contains("\"exported_"),
                "{series}"
            );
        }
        for job in jobs {
            let asked = seed.asked_by(&format!("system:serviceaccount:garden:{job}"));
            let refused = asked.iter().find(|asked| matches!(asked.code, 401 | 403));
            ensure!(!asked.is_empty() && refused.is_none(), "{job}: {refused:?}");
        }
        for shoot in [shoot, mute, partial] {
            shoot.end().await?;
        }
        Ok(())
    })
}
