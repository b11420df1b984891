//! The table of requests by which the API server in memory is like a kube-apiserver, played against
//! one.

use std::time::Duration;

use anyhow::{Result, ensure};
use api_server::conformance::{REJECTED, play};
use bytes::Bytes;
use http::{Request, Response};
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use testbed::control_plane::{ControlPlane, Etcd};
use testbed::kube_api::KubeApi;
use testbed::objects::{items, object};
use testbed::{eventually, scenario};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

struct RealServer<'a> {
    plane: &'a ControlPlane,
    api: KubeApi,
    etcd: &'a Etcd,
    /// What occupies the only seat of the priority level of those that are rejected.
    occupants: Mutex<JoinSet<()>>,
}

impl RealServer<'_> {
    async fn send(&self, user: Option<&str>, request: Request<Vec<u8>>) -> Result<Response<Bytes>> {
        match user {
            Some(user) => self.api.acting_as(user)?.answer(request).await,
            None => self.api.answer(request).await,
        }
    }

    async fn compact(&self) -> Result<()> {
        // Its caches know old versions, too, and end with it.
        self.plane.process().signal(Signal::SIGKILL)?;
        self.etcd.compact().await?;
        self.plane.start_again().await
    }

    /// A priority level without a share lets a single request in: an occupant's, which an admission
    /// webhook that never answers keeps there. All others are rejected with 429.
    async fn reject(&self) -> Result<()> {
        let nowhere = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = nowhere.local_addr()?.to_string();
        let api = self.plane.api();
        api.create_yaml(&REJECTION.replace("ADDRESS", &address))
            .await?;
        // API priority and fairness knows a new schema when its condition is there.
        eventually("the schema is in force", async || {
            let schema = api.get(SCHEMA).await?;
            let mut conditions = items(&schema["status"]["conditions"]);
            let in_force = conditions.any(|it| it["type"] == "Dangling" && it["status"] == "False");
            ensure!(in_force, "{schema}");
            Ok(())
        })
        .await?;
        let mut occupants = JoinSet::new();
        for number in 0..2 {
            let api = api.acting_as("occupant")?;
            let map = object(&OCCUPANT.replace("NUMBER", &number.to_string()));
            occupants.spawn(async move {
                loop {
                    // Rejected while the other one is in, and refused at the end of its time: then
                    // the other one is.
                    let _ = api.create(&map).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
        occupants.spawn(async move {
            let mut connections = Vec::new();
            while let Ok((stream, _)) = nowhere.accept().await {
                connections.push(stream);
            }
        });
        *self.occupants.lock() = occupants;
        eventually("lists are rejected", async || {
            let list = Request::get("/api/v1/configmaps").body(Vec::new())?;
            let answer = self.send(Some(REJECTED), list).await?;
            ensure!(answer.status() == 429, "{}", answer.status());
            Ok(())
        })
        .await
    }
}

const SCHEMA: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/rejected";
/// What occupies a seat for as long as its admission takes.
const OCCUPANT: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: occupant-NUMBER, namespace: default, labels: {bed: occupant}}
";

const REJECTION: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: occupant}
webhooks:
- name: nobody.bed.example.org
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 30
  failurePolicy: Fail
  clientConfig: {url: "https://ADDRESS"}
  objectSelector: {matchLabels: {bed: occupant}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: none}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: rejected}
spec:
  priorityLevelConfiguration: {name: none}
  matchingPrecedence: 2
  rules:
  - subjects: [{kind: User, user: {name: rejected}}]
    resourceRules: [{verbs: [list], apiGroups: ["*"], resources: [configmaps], namespaces: ["*"], clusterScope: true}]
  - subjects: [{kind: User, user: {name: occupant}}]
    resourceRules: [{verbs: [create], apiGroups: ["*"], resources: [configmaps], namespaces: ["*"], clusterScope: true}]
"#;

/// The definition of the custom resource, with any spec and status, and all rights for two users.
const PREPARED: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: may-do-all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: rejected}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: occupant}
";

#[test]
fn kube_apiserver_answers_as_the_table() -> Result<()> {
    scenario(async |bed| {
        let (plane, etcd) = bed.start_with_own_etcd("conformance").await?;
        plane.api().create_yaml(PREPARED).await?;
        plane.api().appears("/apis/example.org/v1/widgets").await?;
        let real = RealServer {
            plane: &plane,
            api: plane.api().without_retries()?,
            etcd: &etcd,
            occupants: Mutex::default(),
        };
        real.reject().await?;
        let send = async |user: Option<&str>, request| real.send(user, request).await;
        play(send, async || real.compact().await).await
    })
}
