//! Agents that may not list or watch one of the resources that they read. None has anything to
//! write.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use testbed::agent::RunningAgent;
use testbed::gardener::{seed_access, weeder_access};
use testbed::page::metrics;
use testbed::{Prober, SeedCluster, ShootCluster, ShootPlan, eventually, scenario};

use super::rights::Rights;
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::{answers, end_alone, shows, with_args};

/// A resource that the prober reads on the seed, with what `/readyz` says while it may not be
/// listed, and the series that shows its absence.
const READ: [(&str, Option<&str>, &str); 5] = [
    ("clusters", Some("Clusters are not known"), ""),
    (
        "machines",
        Some("Machines are not known"),
        "dwd_probes_total{stage=\"machines\",result=\"seed_unknown\"}",
    ),
    (
        "secrets",
        Some("Secrets are not known"),
        "dwd_probes_total{stage=\"kubeconfig\",result=\"seed_unknown\"}",
    ),
    (
        "deployments",
        None,
        "dwd_probes_total{stage=\"nodes\",result=\"complete\"}",
    ),
    (
        "namespaces",
        None,
        "dwd_probes_total{stage=\"leases\",result=\"complete\"}",
    ),
];
const COMPLETE: &str = "dwd_probes_total{stage=\"leases\",result=\"complete\"}";

/// Waits until an agent's log says which resource may not be listed or watched.
async fn says(agent: &RunningAgent, verb: &str, resource: &str) -> Result<()> {
    let forbidden = format!("cannot {verb} resource");
    let named = |line: &serde_json::Value| {
        line.to_string()
            .contains(&format!("resource \\\\\\\"{resource}"))
            || line["error"]
                .as_str()
                .is_some_and(|error| error.contains(&format!("{forbidden} \"{resource}\"")))
    };
    eventually("the log names it", async || {
        let lines = agent.log(&forbidden);
        ensure!(
            lines.iter().any(named),
            "no word of {verb} {resource}: {lines:?}\n{}",
            agent.tail(20)
        );
        Ok(())
    })
    .await
}

/// An account of the seed that may not do one thing with one resource.
struct Account<'a> {
    rights: &'a Rights<'a>,
    name: String,
    /// Lets an agent be this account, and lead at once.
    flags: [String; 2],
}

impl<'a> Account<'a> {
    async fn without(
        rights: &'a Rights<'a>,
        seed: &SeedCluster,
        verb: &str,
        resource: &str,
    ) -> Result<Self> {
        let name = format!("may-not-{verb}-{resource}");
        let token = rights.somebody_without(&name, resource, &[verb]).await?;
        let kubeconfig = seed.folder().join(&name);
        std::fs::write(
            &kubeconfig,
            seed.plane().kubeconfig(&seed.plane().url(), &token),
        )?;
        let flags = [
            "--enable-leader-election=false".into(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        Ok(Self {
            rights,
            name,
            flags,
        })
    }

    fn flags(&self) -> [&str; 2] {
        self.flags.each_ref().map(String::as_str)
    }

    /// Gives it all the rights that an agent should have.
    async fn grant(&self) -> Result<()> {
        let path = format!(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/{}",
            self.name
        );
        let role = self
            .rights
            .granted
            .iter()
            .find(|object| object["kind"] == "ClusterRole")
            .context("a role")?;
        self.rights
            .api
            .replace(&path, "/rules", &role["rules"])
            .await
    }
}

#[test]
fn what_a_prober_may_not_list_or_watch_it_says() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = ShootCluster::create(
            bed,
            &seed,
            "unread",
            ShootPlan {
                forbidden: true,
                ..ShootPlan::default()
            },
        )
        .await?;
        let rights = Rights {
            api: seed.api(),
            granted: seed_access(),
        };
        let begin = shoot.history().len();
        let lists = READ.map(async |(resource, unready, series)| {
            let account = Account::without(&rights, &seed, "list", resource).await?;
            let prober = Prober::start(&seed, with_args(&account.flags())).await?;
            says(&prober, "list", resource).await?;
            let log = prober.log_file();
            match unready {
                Some(word) => answers(log, "/readyz", 500, word).await?,
                None => answers(log, "/readyz", 200, "ok").await?,
            }
            shows(log, "dwd_seed_known", 0.0..=0.0)
                .await
                .context(resource)?;
            if !series.is_empty() {
                shows(log, series, 1.0..).await?;
            }
            let probed = metrics(log)
                .await?
                .value("dwd_shoots{state=\"probed\"}")
                .unwrap_or_default();
            ensure!(
                (probed == 1.0) == (resource != "clusters"),
                "{resource}: {probed}"
            );

            // Once it may, it goes on by itself.
            account.grant().await?;
            answers(log, "/readyz", 200, "ok").await?;
            shows(log, COMPLETE, 1.0..).await
        });
        try_join_all(lists).await?;
        // What it may not watch it lists again and again.
        let watches = READ.map(async |(resource, ..)| {
            let account = Account::without(&rights, &seed, "watch", resource).await?;
            let prober = Prober::start(&seed, with_args(&account.flags())).await?;
            says(&prober, "watch", resource).await?;
            answers(prober.log_file(), "/readyz", 200, "ok").await?;
            shows(prober.log_file(), COMPLETE, 1.0..).await
        });
        try_join_all(watches).await?;
        shoot.untouched_since(begin)?;
        end_alone(shoot, ()).await
    })
}

#[test]
fn what_a_weeder_may_not_list_or_watch_it_says() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let seed = ground.seed.clone();
        let rights = Rights {
            api: seed.api(),
            granted: weeder_access(),
        };
        let checks = ["pods", "endpointslices"].map(async |resource| {
            for (verb, status, word) in [
                ("list", 500, "have not been listed yet"),
                ("watch", 200, "ok"),
            ] {
                let account = Account::without(&rights, &seed, verb, resource).await?;
                let weeder = ground.weeder(&account.flags()).await?;
                says(&weeder, verb, resource).await?;
                let restarts =
                    format!("dwd_weeder_watch_restarts_total{{resource=\"{resource}\"}}");
                shows(weeder.log_file(), &restarts, 1.0..).await?;
                answers(weeder.log_file(), "/readyz", status, word).await?;
                account.grant().await?;
                answers(weeder.log_file(), "/readyz", 200, "ok").await?;
            }
            anyhow::Ok(())
        });
        try_join_all(checks).await?;
        Ok(())
    })
}
