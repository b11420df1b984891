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
use testbed::{ProberConfig, Shoot, ShootPlan};
use tokio::time::sleep;

use super::lane::{are_fresh, plan};
use super::replicas::ProberReplicas;
use super::{GRACE_S, seeded};
use crate::course::Course;
use crate::report::{BenchmarkReport, Goal, progress};
use crate::writes::{DeploymentWrite, writes};

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
                ..plan(Duration::from_secs(GRACE_S))
            };
            let mut shoot = Shoot::create_at(plane.clone(), bed, &seed, &name, plan).await?;
            let (count, beat) = (random.random_range(NODES), shoot.nodes.beat());
            shoot
                .set_nodes(count, || beat.mul_f64(random.random()))
                .await?;
            shoots.push(shoot);
        }
        let probed: Vec<&Shoot> = shoots.iter().collect();
        let mut replicas =
            ProberReplicas::create(&seed, &probed, &ProberConfig::gardener(), REPLICAS).await?;
        replicas.start(REPLICAS).await?;
        progress("waiting until every stamp has been seen to change");
        sleep(WATCHED).await;

        let (mut expired, mut wrong, mut durations) = (0, 0, Vec::new());
        for round in 1..=options.rounds {
            try_join_all(shoots.iter().map(are_fresh)).await?;
            sleep(Duration::from_secs(GRACE_S).mul_f64(random.random())).await;
            let mark = seed.plane().mark();
            let stamps = try_join_all(shoots.iter().map(|shoot| shoot.nodes.stamps())).await?;
            let away = random.random_range(AWAY);
            progress(format!(
                "round {round}: the API server is away for {away:.1} s"
            ));
            etcd.kill().await?;
            sleep(Duration::from_secs_f64(away)).await;
            etcd.start_again().await?;
            let back = Utc::now();
            let courses = stamps
                .iter()
                .filter_map(|stamps| Course::of(stamps, TimeDelta::seconds(GRACE_S as i64)));
            expired += courses.filter(|course| course.verdict <= back).count();
            durations.push(away);
            try_join_all(shoots.iter().map(are_fresh)).await?;
            sleep(SETTLED).await;
            for DeploymentWrite {
                namespace,
                name,
                by,
                answered,
            } in writes(&seed.plane().asked(&mark))?
            {
                progress(format!(
                    "{namespace}/{name} was written at {answered} by {}",
                    by.replica
                ));
                wrong += 1;
            }
        }
        let what = format!(
            "{} rounds under {SHOOTS} shoots, grace {GRACE_S} s, seed {random_seed}",
            options.rounds
        );
        let mut report = BenchmarkReport::new("away", what);
        report.rows([
            (
                "trials",
                "healthy shoots whose API server was away",
                (durations.len() * SHOOTS) as f64,
                "",
                None,
            ),
            (
                "expired",
                "enough leases older than the threshold on its return",
                expired as f64,
                "",
                None,
            ),
            (
                "writes",
                "writes to these shoots",
                f64::from(wrong),
                "",
                Some(Goal::Exactly(0.0)),
            ),
        ]);
        report.spread(
            "away",
            "how long etcd was away",
            &durations.into_iter().collect(),
            None,
        );
        report.print()
    })
}
