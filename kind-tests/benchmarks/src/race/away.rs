//! A shoot's API server that is away for everyone and comes back: its etcd is killed and started
//! again under healthy shoots, whose nodes could not renew meanwhile. Nothing may be written.
//!
//! ```text
//!  etcd (killed, started again) <-- kube-apiserver <--renew-- the kubelets of all shoots
//!                                        ^ probes
//!               two replicas of dependency-watchdog ---writes?---> seed's API server --audit log--> how many
//! ```
//!
//! All shoots share one control plane: each has nodes, probes and phases of its own, so that each
//! meets a different moment.

use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use futures::future::try_join_all;
use rand::{RngExt, random};
use testbed::{ProberConfig, ShootCluster, ShootPlan, Testbed, start_prober};
use tokio::time::sleep;

use super::shoot::{are_fresh, plan};
use crate::outage::{Course, writes};
use crate::report::{BenchmarkReport, progress};

/// Kubernetes' default nodeMonitorGracePeriod.
const GRACE: Duration = Duration::from_secs(40);
/// Shoots under one API server.
const SHOOTS: usize = 10;
/// Each is a trial of all shoots.
const ROUNDS: usize = 10;
/// Time after which nothing is left of it: kubelets renew within 7 s of its return, and expired
/// leases are undecided for 11 s.
const SETTLED: Duration = Duration::from_secs(45);
/// Time in which the initial delay passes, and every stamp is seen to change.
const WATCHED: Duration = Duration::from_secs(60);

/// Runs all rounds.
pub async fn run(bed: &'static Testbed) -> Result<()> {
    let seed = bed.own_seed().await?;
    let (plane, mut etcd) = bed.start_with_own_etcd("away").await?;
    let mut shoots = Vec::new();
    for number in 0..SHOOTS {
        let name = format!("away-{number}");
        let plan = ShootPlan {
            node_prefix: name.clone(),
            ..plan(GRACE)
        };
        let mut shoot = ShootCluster::create_at(plane.clone(), &seed, &name, plan).await?;
        let (nodes, beat) = (rand::rng().random_range(3..=10), shoot.nodes.beat());
        shoot.set_nodes(nodes, || beat.mul_f64(random())).await?;
        shoots.push(shoot);
    }
    let start = async || start_prober(&seed, ProberConfig::gardener()).await;
    let _probers = [start().await?, start().await?];
    progress("waiting until every stamp has been seen to change");
    sleep(WATCHED).await;

    let (mark, mut expired) = (seed.plane().mark(), 0);
    for round in 1..=ROUNDS {
        try_join_all(shoots.iter().map(are_fresh)).await?;
        sleep(GRACE.mul_f64(random())).await;
        let stamps = try_join_all(shoots.iter().map(|shoot| shoot.nodes.stamps())).await?;
        let away = rand::rng().random_range(10.0..=60.0);
        progress(format!(
            "round {round}: the API server is away for {away:.1} s"
        ));
        etcd.kill().await?;
        sleep(Duration::from_secs_f64(away)).await;
        etcd.start_again().await?;
        let (back, grace) = (Utc::now(), TimeDelta::from_std(GRACE)?);
        let courses = stamps.into_iter().flat_map(|all| Course::of(all, grace));
        expired += courses.filter(|course| course.verdict <= back).count();
        try_join_all(shoots.iter().map(are_fresh)).await?;
        sleep(SETTLED).await;
    }
    let written = writes(&seed, &mark)?;
    if !written.is_empty() {
        progress(format!("written: {written:#?}"));
    }
    let mut report = BenchmarkReport::default();
    let trials = (ROUNDS * SHOOTS) as f64;
    report.add("healthy shoots whose API server was away", trials);
    let old = "enough leases older than the threshold on its return";
    report.add(old, expired as f64);
    let wrong = "writes to these shoots";
    report.at_most(wrong, written.len() as f64, 0.0);
    report.print(&format!(
        "{ROUNDS} rounds under {SHOOTS} shoots, away for 10 to 60 s"
    ));
    Ok(())
}
