//! Requests that API priority and fairness rejects, on the shoot and on the seed.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::audit::Asked;
use testbed::gardener::{PROBE_USER, PROBER_USER};
use testbed::kube_api::KubeApi;
use testbed::objects::items;
use testbed::{ProberConfig, ShootPlan, eventually, scenario};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{DOWN, alone, comes_back, end_alone};

const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const HOOK: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/occupant";
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
    pub async fn begin(api: &'a KubeApi, user: &str, verb: &str, resource: &str) -> Result<Self> {
        // An admission webhook that never answers keeps a request in its priority level.
        let nowhere = TcpListener::bind(("127.0.0.1", 0)).await?;
        let hook = json!({
            "name": "nobody.bed.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
            "failurePolicy": "Fail", "clientConfig": {"url": format!("https://{}", nowhere.local_addr()?)},
            "objectSelector": {"matchLabels": {"bed": OCCUPANT}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        });
        let limited = json!({
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"},
        });
        let requests = |user: &str, verb: &str, resource: &str| {
            json!({"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [{
                "verbs": [verb], "apiGroups": ["*"], "resources": [resource], "namespaces": ["*"], "clusterScope": true}]})
        };
        let rules = [
            requests(user, verb, resource),
            requests(OCCUPANT, "create", "configmaps"),
        ];
        api.create_all(&[
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": OCCUPANT}, "webhooks": [hook]}),
            json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
                "metadata": {"name": "none"}, "spec": {"type": "Limited", "limited": limited}}),
            json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "rejected"},
                "spec": {"priorityLevelConfiguration": {"name": "none"}, "matchingPrecedence": 2, "rules": rules}}),
            cluster_admin(OCCUPANT),
        ])
        .await?;
        // API priority and fairness knows a new schema when its condition is there.
        eventually("the schema is in force", async || {
            let schema = api.get(&format!("{FLOW}/flowschemas/rejected")).await?;
            let dangling =
                items(&schema["status"]["conditions"]).find(|it| it["type"] == "Dangling");
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
        for path in [
            &format!("{FLOW}/flowschemas/rejected"),
            &format!("{FLOW}/prioritylevelconfigurations/none"),
            HOOK,
        ] {
            self.api.delete(path).await?;
        }
        Ok(())
    }
}

/// All rights for a user.
pub fn cluster_admin(user: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}]})
}

/// How many requests were answered with 429.
fn rejected(asked: &[Asked]) -> usize {
    asked.iter().filter(|asked| asked.code == 429).count()
}

#[test]
fn rejections_are_no_outage_and_end_none() -> Result<()> {
    scenario(async |bed| {
        let (shoot, prober) = alone(
            bed,
            "fairness",
            ShootPlan::default(),
            ProberConfig::default(),
        )
        .await?;
        let at_least = async |what: &str, count: usize, asked: &dyn Fn() -> Vec<Asked>| {
            let enough = async || {
                let rejected = rejected(&asked());
                ensure!(rejected >= count, "{rejected} of {count}");
                Ok(())
            };
            shoot.eventually(what, enough).await
        };
        let probes = Rejection::begin(shoot.plane.api(), PROBE_USER, "list", "leases").await?;
        at_least("probes are rejected", 2, &|| shoot.asked()).await?;
        shoot.nodes.cut_all();
        let begin = shoot.history().len();
        shoot.leases_older_than(LONG).await?;
        shoot.untouched_since(begin)?;
        // The API server asks for a second of rest each time.
        let (rejected, most) = (rejected(&shoot.asked()), 4 + 2 * LONG.as_secs());
        ensure!(rejected as u64 <= most, "{rejected} rejected requests");

        let patches =
            Rejection::begin(shoot.seed.api(), PROBER_USER, "patch", "deployments").await?;
        probes.end().await?;
        at_least("writes are rejected", 3, &|| shoot.asked_of_seed()).await?;
        patches.end().await?;
        shoot.held_down(&DOWN).await?;
        comes_back(&shoot).await?;
        end_alone(shoot, prober).await
    })
}
