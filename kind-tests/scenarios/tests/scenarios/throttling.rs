//! Requests that API priority and fairness rejects, on the shoot and on the seed.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::audit::Asked;
use testbed::gardener::{PROBE_USER, PROBER_USER};
use testbed::kube_api::KubeApi;
use testbed::objects::{items, object};
use testbed::{ShootPlan, eventually, scenario};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{LONG, USUAL, alone, comes_back};

const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const HOOK: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/occupant";
const OCCUPANT: &str = "occupant";

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
        let address = nowhere.local_addr()?;
        let requests = |user: &str, verb: &str, resource: &str| {
            format!(
                r#"
  - subjects: [{{kind: User, user: {{name: "{user}"}}}}]
    resourceRules: [{{verbs: [{verb}], apiGroups: ["*"], resources: [{resource}], namespaces: ["*"], clusterScope: true}}]"#
            )
        };
        let rejected = requests(user, verb, resource);
        let occupant = requests(OCCUPANT, "create", "configmaps");
        api.create_yaml(&format!(
            r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {OCCUPANT}}}
webhooks:
- name: nobody.bed.example.org
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 30
  failurePolicy: Fail
  clientConfig: {{url: "https://{address}"}}
  objectSelector: {{matchLabels: {{bed: {OCCUPANT}}}}}
  rules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: none}}
spec:
  type: Limited
  limited: {{nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {{type: Reject}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: rejected}}
spec:
  priorityLevelConfiguration: {{name: none}}
  matchingPrecedence: 2
  rules:{rejected}{occupant}
"#
        ))
        .await?;
        api.create_yaml(&cluster_admin(OCCUPANT)).await?;
        // API priority and fairness knows a new schema when its condition is there.
        eventually("the schema is in force", async || {
            let schema = api.get(&format!("{FLOW}/flowschemas/rejected")).await?;
            let mut conditions = items(&schema["status"]["conditions"]);
            let in_force = conditions.any(|it| it["type"] == "Dangling" && it["status"] == "False");
            ensure!(in_force, "{schema}");
            Ok(())
        })
        .await?;
        let mut occupant = JoinSet::new();
        for number in 0..2 {
            let api = api.acting_as(OCCUPANT)?;
            let map = object(&format!(
                "
apiVersion: v1
kind: ConfigMap
metadata: {{name: occupant-{number}, namespace: default, labels: {{bed: {OCCUPANT}}}}}
"
            ));
            occupant.spawn(async move {
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
pub fn cluster_admin(user: &str) -> String {
    let group = "rbac.authorization.k8s.io";
    format!(
        "
apiVersion: {group}/v1
kind: ClusterRoleBinding
metadata: {{name: {user}}}
roleRef: {{apiGroup: {group}, kind: ClusterRole, name: cluster-admin}}
subjects: [{{apiGroup: {group}, kind: User, name: {user}}}]
"
    )
}

#[test]
fn rejections_are_no_outage_and_end_none() -> Result<()> {
    scenario(async |bed| {
        let (shoot, _prober) = alone(bed, "fairness", ShootPlan::default(), &[]).await?;
        let at_least = async |least: usize, asked: &dyn Fn() -> Vec<Asked>| {
            let enough = async || {
                let rejected = asked().iter().filter(|it| it.code == 429).count();
                ensure!(rejected >= least, "{rejected}");
                Ok(())
            };
            shoot.eventually("requests are rejected", enough).await
        };
        let probes = Rejection::begin(shoot.plane.api(), PROBE_USER, "list", "leases").await?;
        at_least(2, &|| shoot.asked()).await?;
        shoot.nodes.cut_all();
        let begin = shoot.history().len();
        shoot.leases_older_than(LONG).await?;
        shoot.untouched_since(begin)?;
        let patches =
            Rejection::begin(shoot.seed.api(), PROBER_USER, "patch", "deployments").await?;
        probes.end().await?;
        at_least(3, &|| shoot.asked_of_seed()).await?;
        patches.end().await?;
        shoot.held_down(&USUAL).await?;
        comes_back(&shoot).await?;
        shoot.end().await
    })
}
