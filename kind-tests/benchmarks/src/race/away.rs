//! A shoot's API server that is away for everyone and comes back: its etcd is killed and started again under healthy shoots, whose
//! nodes could not renew meanwhile. Nothing may be written.
//!
//! ```text
//!  etcd (killed, started again) <-- kube-apiserver <--renew-- the kubelets of all shoots
//!                                        ^ probes
//!               two replicas of dependency-watchdog ---writes?---> seed's API server --audit log--> how many
//! ```
//!
//! All shoots share one control plane: each has nodes, probes and phases of its own, so that each meets a different moment.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{TimeDelta, Utc};
use clap::Args;
use futures::future::try_join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testbed::control_plane::Etcd;
use testbed::{Bed, ProberConfig, Seed, Shoot, ShootPlan};
use tokio::time::sleep;

use super::GRACE_S;
use super::lane::{are_fresh, plan};
use super::replicas::Replicas;
use super::seeded::seeded;
use crate::course::Course;
use crate::report::{Goal, Report, progress};
use crate::writes::writes;

const REPLICAS: usize = 2;
const NODES: std::ops::RangeInclusive<usize> = 3..=10;
/// The API server is away for so long, in seconds.
const AWAY: std::ops::RangeInclusive<f64> = 10.0..=60.0;
/// After this time nothing is left of it: kubelets renew within 7 s of its return, and expired leases are undecided for 11 s.
const SETTLED: Duration = Duration::from_secs(45);
/// Until then the initial delay is over, and every stamp has been seen to change.
const WATCHED: Duration = Duration::from_secs(60);

/// Kill the etcd under healthy shoots and start it again, round after round
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rounds; each is a trial of every shoot
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Shoots under one API server
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    shoots: u32,
    /// Where the random numbers begin; drawn when absent
    #[arg(long)]
    seed: Option<u64>,
}

/// What came of all rounds.
#[derive(Debug, Default)]
struct Findings {
    trials: usize,
    /// In which the leases of enough nodes were older than the threshold when the API server was back.
    expired: usize,
    away: Vec<f64>,
    writes: usize,
}

/// Runs all rounds.
pub fn run(options: Options) -> Result<()> {
    seeded(options.seed, async move |bed, random_seed| {
        let mut random = StdRng::seed_from_u64(random_seed);
        let mut ground = Ground::prepare(bed, &options, &mut random).await?;
        let mut findings = Findings::default();
        for round in 1..=options.rounds {
            ground.round(round, &mut findings, &mut random).await?;
        }
        let what = format!("{} rounds under {} shoots, grace {GRACE_S} s, seed {random_seed}", options.rounds, options.shoots);
        findings.report(what).print();
        Ok(())
    })
}

struct Ground {
    seed: Arc<Seed>,
    etcd: Etcd,
    shoots: Vec<Shoot>,
    _replicas: Replicas,
}

impl Ground {
    async fn prepare(bed: &'static Bed, options: &Options, random: &mut StdRng) -> Result<Self> {
        let seed = bed.own_seed().await?;
        let (plane, etcd) = bed.start_with_own_etcd("away").await?;
        let grace = Duration::from_secs(GRACE_S);
        let mut shoots = Vec::new();
        for name in (1..=options.shoots).map(|number| format!("away-{number}")) {
            let plan = ShootPlan { node_prefix: name.clone(), ..plan(grace) };
            shoots.push(Shoot::create_at(plane.clone(), bed, &seed, &name, plan).await?);
        }
        for shoot in &mut shoots {
            let (count, beat) = (random.random_range(NODES), shoot.nodes.beat());
            shoot.set_nodes(count, || beat.mul_f64(random.random())).await?;
        }
        let probed: Vec<&Shoot> = shoots.iter().collect();
        let mut replicas = Replicas::create(&seed, &probed, &ProberConfig::gardener(), REPLICAS).await?;
        replicas.start(&seed, REPLICAS).await?;
        progress("waiting until every stamp has been seen to change");
        sleep(WATCHED).await;
        Ok(Self { seed, etcd, shoots, _replicas: replicas })
    }

    async fn round(&mut self, round: u32, findings: &mut Findings, random: &mut StdRng) -> Result<()> {
        try_join_all(self.shoots.iter().map(are_fresh)).await?;
        sleep(Duration::from_secs(GRACE_S).mul_f64(random.random())).await;
        let mark = self.seed.plane().mark();
        let stamps = try_join_all(self.shoots.iter().map(|shoot| shoot.nodes.stamps())).await?;
        let away = random.random_range(AWAY);
        progress(format!("round {round}: the API server is away for {away:.1} s"));
        self.etcd.kill().await?;
        sleep(Duration::from_secs_f64(away)).await;
        self.etcd.start_again().await?;
        let back = Utc::now();
        for stamps in stamps {
            let course = Course::of(&stamps, TimeDelta::seconds(GRACE_S as i64)).context("fewer than two nodes")?;
            findings.trials += 1;
            findings.expired += usize::from(course.verdict <= back);
        }
        findings.away.push(away);
        try_join_all(self.shoots.iter().map(are_fresh)).await?;
        sleep(SETTLED).await;
        let wrong = writes(&self.seed.plane().asked(&mark))?;
        for write in &wrong {
            progress(format!("{}/{} was written at {} by {}", write.namespace, write.name, write.answered, write.by.replica));
        }
        findings.writes += wrong.len();
        Ok(())
    }
}

impl Findings {
    fn report(self, what: String) -> Report {
        let mut report = Report::new("away", what);
        report.rows([
            ("trials", "healthy shoots whose API server was away", self.trials as f64, "", None),
            ("expired", "enough leases older than the threshold on its return", self.expired as f64, "", None),
            ("writes", "writes to these shoots", self.writes as f64, "", Some(Goal::Exactly(0.0))),
        ]);
        report.spread("away", "how long etcd was away", &self.away.into_iter().collect(), "s", None);
        report
    }
}
