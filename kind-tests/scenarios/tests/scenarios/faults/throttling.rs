//! Requests that API priority and fairness rejects, on the shoot and on the seed.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::gardener::{PROBE_USER, PROBER_USER};
use testbed::kube_api::KubeApi;
use testbed::{ProberConfig, ShootCluster, ShootPlan, eventually, own_scenario};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{DOWN, alone, end_alone, end_of_outage, has_turned, healthy, turn};

const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const OCCUPANT: &str = "occupant";
/// Twice the grace: every lease would have been expired for long.
const LONG: Duration = Duration::from_secs(12);

/// A priority level without a share, which lets a single request in: the occupant's, whose
/// admission takes as long as this lives. All others are rejected with 429.
pub struct Rejection<'a> {
    api: &'a KubeApi,
    _occupant: JoinSet<()>,
}

impl<'a> Rejection<'a> {
    /// From now on an API server rejects these requests of a user.
    pub async fn begin(
        api: &'a KubeApi,
        user: &str,
        verbs: Value,
        resources: Value,
    ) -> Result<Self> {
        // An admission webhook that never answers keeps a request in its priority level.
        let nowhere = TcpListener::bind(("127.0.0.1", 0)).await?;
        let hook = json!({
            "name": "nobody.bed.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
            "failurePolicy": "Fail", "clientConfig": {"url": format!("https://{}", nowhere.local_addr()?)},
            "objectSelector": {"matchLabels": {"bed": OCCUPANT}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        });
        api.delete(&format!("{HOOKS}/{OCCUPANT}")).await?;
        let hooks = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": OCCUPANT}, "webhooks": [hook],
        });
        api.create(&hooks).await?;
        let limited = json!({
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"},
        });
        let level = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
            "metadata": {"name": "none"}, "spec": {"type": "Limited", "limited": limited},
        });
        api.create(&level).await?;
        let subject = |user: &str| json!({"kind": "User", "user": {"name": user}});
        let rule = |verbs: Value, resources: Value| json!({"verbs": verbs, "apiGroups": ["*"], "resources": resources, "namespaces": ["*"], "clusterScope": true});
        let spec = json!({
            "priorityLevelConfiguration": {"name": "none"}, "matchingPrecedence": 2,
            "rules": [
                {"subjects": [subject(user)], "resourceRules": [rule(verbs, resources)]},
                {"subjects": [subject(OCCUPANT)], "resourceRules": [rule(json!(["create"]), json!(["configmaps"]))]},
            ],
        });
        let schema = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
            "metadata": {"name": "rejected"}, "spec": spec,
        });
        api.create(&schema).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": OCCUPANT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OCCUPANT}],
        });
        api.create(&binding).await?;
        // API priority and fairness knows a new schema when its condition is there.
        eventually("the schema is in force", async || {
            let schema = api.get(&format!("{FLOW}/flowschemas/rejected")).await?;
            let dangling = schema["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|c| c["type"] == "Dangling");
            ensure!(
                dangling.is_some_and(|condition| condition["status"] == "False"),
                "{schema}"
            );
            Ok(())
        })
        .await?;
        let mut occupant = JoinSet::new();
        for number in 0..2 {
            let (api, name) = (api.acting_as(OCCUPANT), format!("occupant-{number}"));
            occupant.spawn(async move {
                let metadata =
                    json!({"name": name, "namespace": "default", "labels": {"bed": OCCUPANT}});
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
                loop {
                    // Rejected while the other one is in, and refused at the end of its time: then
                    // the other one is.
                    let _ = api.create(&map).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
        occupant.spawn(async move {
            let mut connections = Vec::new();
            while let Ok((stream, _)) = nowhere.accept().await {
                connections.push(stream);
            }
        });
        Ok(Self {
            api,
            _occupant: occupant,
        })
    }

    async fn end(self) -> Result<()> {
        self.api
            .delete(&format!("{FLOW}/flowschemas/rejected"))
            .await?;
        self.api
            .delete(&format!("{FLOW}/prioritylevelconfigurations/none"))
            .await?;
        self.api.delete(&format!("{HOOKS}/{OCCUPANT}")).await
    }
}

#[test]
fn a_shoot_that_rejects_probes_by_priority_and_fairness_is_no_outage() -> Result<()> {
    own_scenario(
        "needs an API server that reaches this process",
        async |bed| {
            let shoot = healthy(bed, "fairness", ShootPlan::default()).await?;
            let rejection = Rejection::begin(
                shoot.plane.api(),
                PROBE_USER,
                json!(["list"]),
                json!(["leases"]),
            )
            .await?;
            let rejected = || {
                shoot
                    .asked()
                    .iter()
                    .filter(|asked| asked.code == 429)
                    .count()
            };
            shoot
                .eventually("probes are rejected", async || {
                    ensure!(rejected() >= 2, "{}", rejected());
                    Ok(())
                })
                .await?;
            shoot.nodes.cut_all();
            let begin = shoot.history().len();
            shoot.leases_older_than(LONG).await?;
            shoot.untouched_since(begin)?;
            // The API server asks for a second of rest each time.
            let most = 4 + 2 * usize::try_from(LONG.as_secs())?;
            ensure!(rejected() <= most, "{} rejected requests", rejected());
            rejection.end().await?;
            shoot.held_down(&DOWN).await?;
            end_of_outage(shoot).await
        },
    )
}

#[test]
fn a_seed_that_rejects_writes_by_priority_and_fairness_is_asked_again_until_all_is_done()
-> Result<()> {
    own_scenario(
        "needs an API server that reaches this process",
        async |bed| {
            let (shoot, prober) = alone(
                bed,
                "seed-fairness",
                ShootPlan::default(),
                ProberConfig::default(),
            )
            .await?;
            let seed = shoot.seed.clone();
            for cut in [true, false] {
                let rejection = Rejection::begin(
                    seed.api(),
                    PROBER_USER,
                    json!(["patch"]),
                    json!(["deployments"]),
                )
                .await?;
                let (begin, before) = (shoot.history().len(), rejected(&shoot));
                turn(&shoot, cut);
                shoot
                    .eventually("writes are rejected", async || {
                        let more = rejected(&shoot) - before;
                        ensure!(more >= 3, "{more}");
                        Ok(())
                    })
                    .await?;
                rejection.end().await?;
                has_turned(&shoot, cut, begin).await?;
            }
            end_alone(shoot, prober).await
        },
    )
}

/// How many writes the seed has answered with 429.
fn rejected(shoot: &ShootCluster) -> usize {
    shoot
        .asked_of_seed()
        .iter()
        .filter(|asked| asked.verb == "patch" && asked.code == 429)
        .count()
}
