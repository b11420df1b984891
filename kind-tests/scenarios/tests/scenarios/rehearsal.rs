//! Protections that a kube-apiserver would refuse are found by dry runs, before an outage.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::{Request, header};
use serde_json::{Value, json};
use testbed::audit::Asked;
use testbed::gardener::more_access;
use testbed::prober::dependent;
use testbed::seed::ReplicaState;
use testbed::shoot::KCM;
use testbed::{KubeApi, ProberConfig, ShootCluster, ShootPlan, eventually, scenario, start_prober};
use tokio::time::Instant;

use crate::rbac::strip;
use crate::{logs, shows};

/// A seed of one shoot is told within this time of its first complete probe.
const MINUTE: Duration = Duration::from_secs(60);

/// Dependents that nothing hinders, each of two replicas: apiVersion, kind and name.
const SCALED: [(&str, &str, &str); 2] = [
    ("apps/v1", "Deployment", KCM),
    ("bed.example.org/v1", "Scaler", "scaler"),
];
/// Dependents of which each would be refused: kind, name and words. The last two are not there.
const REFUSED: [(&str, &str, &str); 6] = [
    ("Deployment", "frozen", "no scaling on Fridays"),
    ("Deployment", "unanswered", "failed calling webhook"),
    (
        "Deployment",
        "set-back",
        "the answer sets spec.replicas to 3 again",
    ),
    ("StatefulSet", "unpatchable", "cannot patch resource"),
    ("Deployment", "missing", "not found"),
    ("Depoyment", "nobody", "no such kind"),
];

/// Admission that denies, or changes back, or does not answer.
const ADMISSION: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]
  matchConditions: [{name: it, expression: "object.metadata.name == 'frozen'"}]
  validations: [{expression: "object.spec.replicas > 0", message: "no scaling on Fridays"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen}
spec: {policyName: frozen, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: set-back}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]
  matchConditions: [{name: it, expression: "object.metadata.name == 'set-back'"}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{replicas: 3}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: set-back}
spec: {policyName: set-back}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: unanswered}
webhooks:
- name: unanswered.bed.example.org
  sideEffects: NoneOnDryRun
  admissionReviewVersions: [v1]
  failurePolicy: Fail
  clientConfig: {url: "https://127.0.0.1:1"}
  matchConditions: [{name: it, expression: "object.metadata.name == 'unanswered'"}]
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]
"#;

/// Waits until admission answers a scale-down of a Deployment by a dry run in such words.
async fn in_force(api: &KubeApi, namespace: &str, name: &str, words: &str) -> Result<()> {
    eventually(words, async || {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}?dryRun=All");
        let patch = Request::patch(path)
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .body(br#"{"spec": {"replicas": 0}}"#.to_vec())?;
        let answer: Value = serde_json::from_slice(api.answer(patch).await?.body())?;
        ensure!(answer.to_string().contains(words), "{answer}");
        Ok(())
    })
    .await
}

#[test]
fn refusals_are_found_before_an_outage() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let more = more_access();
        seed.api().create_all(&more).await?;
        strip(seed.api(), &more, &["statefulsets patch"]).await?;
        let plan = ShootPlan {
            deployments: vec![],
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "rehearsed", plan).await?;
        let refused = REFUSED.map(|(kind, name, _)| ("apps/v1", kind, name));
        for (api_version, kind, name) in SCALED.iter().chain(&refused[..4]) {
            let created = shoot.create_workload(api_version, kind, name, 2);
            created.await?;
        }
        seed.api().create_yaml(ADMISSION).await?;
        let (api, namespace) = (seed.api(), &shoot.namespace);
        in_force(api, namespace, "frozen", "no scaling on Fridays").await?;
        in_force(api, namespace, "set-back", r#""replicas":3"#).await?;
        in_force(api, namespace, "unanswered", "failed calling webhook").await?;

        let all = SCALED.iter().chain(&refused);
        let all = all.map(|(api_version, kind, name)| dependent(api_version, kind, name, 0, 0));
        let config = ProberConfig {
            dependents: all.collect(),
            ..ProberConfig::default()
        };
        let begin = shoot.history().len();
        let prober = start_prober(&seed, config).await?;
        shoot.after_probes(1).await?;
        let probed = Instant::now();
        let series = |kind: &str, name: &str| {
            format!("dwd_protection_refused{{kind=\"{kind}\",name=\"{name}\"}}")
        };
        for (kind, name, words) in REFUSED {
            shows(prober.log_file(), &series(kind, name), 1.0..=1.0).await?;
            logs(&prober, "protection would be refused in an outage", words).await?;
        }
        ensure!(probed.elapsed() < MINUTE, "{:?}", probed.elapsed());
        shoot.untouched_since(begin)?;
        let log = json!(prober.log("protection would be refused in an outage"));
        for (_, _, name) in SCALED {
            let accepted =
                |asked: &Asked| (&*asked.name, asked.code) == (name, 200) && asked.is_dry_run();
            let is_accepted = shoot.asked_of_seed().iter().any(accepted);
            ensure!(is_accepted && !log.to_string().contains(name), "{log}");
        }

        // What is refused harms no other, of whatever kind.
        let all = async |is: fn(&ReplicaState) -> bool| {
            let so = async || {
                let states = shoot.states();
                let mut scaled = SCALED.iter().map(|(_, _, name)| states.get(*name));
                ensure!(scaled.all(|state| state.is_some_and(is)), "{states:?}");
                Ok(())
            };
            shoot.eventually("all others are scaled", so).await
        };
        shoot.nodes.cut_all();
        all(|state| state.is_held_down("2")).await?;
        shoot.nodes.heal_all();
        all(|state| state.is_free_at(2)).await?;
        // Not all of its requests are allowed.
        Ok(())
    })
}
