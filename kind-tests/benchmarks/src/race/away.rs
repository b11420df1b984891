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
use clap::Args;
use futures::future::try_join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testbed::{ProberConfig, ShootCluster, ShootPlan};
use tokio::time::sleep;

use super::replicas::ProberReplicas;
use super::shoot::{are_fresh, plan};
use super::{GRACE, seeded};
use crate::course::Course;
use crate::report::{BenchmarkReport, Spread, progress};
use crate::writes::writes;

/// Shoots under one API server.
const SHOOTS: usize = 10;
const REPLICAS: usize = 2;
const NODES: std::ops::RangeInclusive<usize> = 3..=10;
/// The API server is away for so long, in seconds.
const AWAY: std::ops::RangeInclusive<f64> = 10.0..=60.0;
/// After this time nothing is left of it: kubelets renew within 7 s of its return, and expired
/// leases are undecided for 11 s.
const SETTLED: Duration = Duration::from_secs(45);
/// Until then the initial delay is over, and every stamp has been seen to change.
const WATCHED: Duration = Duration::from_secs(60);

/// Kill the etcd under healthy shoots and start it again, round after round
#[derive(Args, Clone, Debug)]
pub struct AwayOptions {
    /// Rounds; each is a trial of all ten shoots
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Where the random numbers begin; drawn when absent
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs all rounds.
pub fn run(options: AwayOptions) -> Result<()> {
    seeded(options.seed, async move |bed, random_seed| {
        let mut random = StdRng::seed_from_u64(random_seed);
        let seed = bed.own_seed().await?;
        let (plane, mut etcd) = bed.start_with_own_etcd("away").await?;
        let mut shoots = Vec::new();
        for name in (1..=SHOOTS).map(|number| format!("away-{number}")) {
            let plan = ShootPlan {
                node_prefix: name.clone(),
                ..plan(GRACE)
            };
            let mut shoot = ShootCluster::create_at(plane.clone(), &seed, &name, plan).await?;
            let (count, beat) = (random.random_range(NODES), shoot.nodes.beat());
            let phase = || beat.mul_f64(random.random());
            shoot.set_nodes(count, phase).await?;
            shoots.push(shoot);
        }
        let probed: Vec<&ShootCluster> = shoots.iter().collect();
        let config = ProberConfig::gardener();
        let mut replicas = ProberReplicas::create(&seed, &probed, &config, REPLICAS).await?;
        replicas.start(REPLICAS).await?;
        progress("waiting until every stamp has been seen to change");
        sleep(WATCHED).await;

        let (mut expired, mut wrong, mut durations) = (0, 0, Vec::new());
        for round in 1..=options.rounds {
            try_join_all(shoots.iter().map(are_fresh)).await?;
            sleep(GRACE.mul_f64(random.random())).await;
            let mark = seed.plane().mark();
            let stamps = try_join_all(shoots.iter().map(|shoot| shoot.nodes.stamps())).await?;
            let away = random.random_range(AWAY);
            progress(format!(
                "round {round}: the API server is away for {away:.1} s"
            ));
            etcd.kill().await?;
            sleep(Duration::from_secs_f64(away)).await;
            etcd.start_again().await?;
            let (back, grace) = (Utc::now(), TimeDelta::from_std(GRACE)?);
            let courses = stamps.iter().filter_map(|stamps| Course::of(stamps, grace));
            expired += courses.filter(|course| course.verdict <= back).count();
            durations.push(away);
            try_join_all(shoots.iter().map(are_fresh)).await?;
            sleep(SETTLED).await;
            let writes = writes(&seed.plane().asked(&mark))?;
            wrong += writes.len();
            for write in writes {
                progress(format!("written: {write:?}"));
            }
        }
        let grace = GRACE.as_secs();
        let rounds = options.rounds;
        let mut report = BenchmarkReport::new(
            "away",
            format!("{rounds} rounds under {SHOOTS} shoots, grace {grace} s, seed {random_seed}"),
        );
        report.add([
            ("trials", (durations.len() * SHOOTS) as f64),
            ("expired", expired as f64),
            ("writes", wrong as f64),
        ]);
        report.spread("away", &Spread::from_iter(durations), true);
        report.print()
    })
}
