//! A shoot: its control plane's pods on the seed's machine, its nodes machines, and a Service over
//! pods on them.

use std::collections::BTreeSet;

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::json;
use testbed::control_plane::ControlPlane;
use testbed::followed::{Followed, unknown_nodes};
use testbed::gardener::{self, CA, KCM, MCM, PROBE, shoot_access};
use testbed::seed::ReplicaState;
use testbed::{EndpointWatch, KubeApi};

use crate::images::{CONTROLLER_MANAGER, TOOL};
use crate::machine::NodeMachine;
use crate::workloads::{deployment, namespace, service};

/// What the prober scales.
const DEPENDENTS: [&str; 3] = [KCM, MCM, CA];

/// A shoot.
pub struct NodeShoot {
    /// Its namespace on the seed.
    pub namespace: &'static str,
    /// Its control plane.
    pub plane: ControlPlane,
    /// Its machines.
    pub machines: Vec<NodeMachine>,
    /// What its Service's EndpointSlices say.
    pub endpoints: EndpointWatch,
    seed: KubeApi,
    /// The nodes that were ever Unknown.
    pub ever_unknown: Followed<BTreeSet<String>>,
}

impl NodeShoot {
    /// Makes one whose nodes are registered, with no access for the prober.
    pub async fn create(
        seed: &KubeApi,
        name: &'static str,
        plane: ControlPlane,
        machines: Vec<NodeMachine>,
    ) -> Result<Self> {
        seed.create_yaml(&namespace(name)).await?;
        let access = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KCM, "namespace": name},
            "stringData": {"kubeconfig": plane.admin_kubeconfig()}});
        seed.create(&access).await?;
        for dependent in DEPENDENTS {
            let spec = match dependent {
                KCM => controller_manager(),
                _ => format!(
                    "      containers: [{{name: {dependent}, image: {TOOL}, imagePullPolicy: Never}}]"
                ),
            };
            let deployment = deployment(name, dependent, dependent, 1, &spec);
            seed.create_yaml(&deployment).await?;
        }
        let api = plane.api();
        api.create_all(&shoot_access()).await?;
        for machine in &machines {
            // Its kubelet registers it.
            api.appears(&format!("/api/v1/nodes/{}", machine.name()))
                .await?;
        }
        let web_service = service("default", "web", "app: web", 80);
        api.create_yaml(&web_service).await?;
        // Made by the shoot's controllers.
        api.appears("/api/v1/namespaces/default/serviceaccounts/default")
            .await?;
        for machine in &machines {
            api.create_yaml(&web(machine.name())).await?;
        }
        let endpoints = EndpointWatch::of(api, "default", "web");
        endpoints.all_ready(machines.len()).await?;
        Ok(Self {
            ever_unknown: unknown_nodes(api),
            namespace: name,
            plane,
            machines,
            endpoints,
            seed: seed.clone(),
        })
    }

    /// Tells the watchdog of it: its Machines, the prober's access, its Cluster.
    pub async fn publish(&self) -> Result<()> {
        let token = self.plane.api().token("kube-system", PROBE).await?;
        let access = self.plane.kubeconfig(&token);
        let machines = self.machines.iter();
        let mut objects: Vec<_> = machines
            .map(|machine| gardener::machine(self.namespace, machine.name()))
            .collect();
        objects.push(gardener::probe_secret(self.namespace, &access));
        objects.push(gardener::old_cluster(self.namespace, "40s"));
        self.seed.create_all(&objects).await
    }

    /// Pulls its machines' cables, or puts them in again.
    pub async fn plug(&self, plugged: bool) -> Result<()> {
        let plugs = self.machines.iter().map(|machine| machine.plug(plugged));
        try_join_all(plugs).await.map(drop)
    }

    /// Desired and ready replicas of what the prober scales.
    pub async fn replicas(&self) -> Result<Vec<(i64, i64)>> {
        let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace);
        let deployments = self.seed.list(&deployments).await?;
        let states = deployments.iter().map(ReplicaState::of);
        Ok(states.map(|it| (it.replicas, it.ready)).collect())
    }
}

/// The pod of kube-controller-manager.
fn controller_manager() -> String {
    format!(
        "
      volumes: [{{name: access, secret: {{secretName: {KCM}}}}}]
      containers:
      - name: {KCM}
        image: {CONTROLLER_MANAGER}
        imagePullPolicy: Never
        args:
        - --kubeconfig=/access/kubeconfig
        - --controllers=node-lifecycle-controller,taint-eviction-controller,endpointslice-controller,serviceaccount-controller
        - --node-monitor-grace-period=40s
        - --leader-elect=false
        - --secure-port=0
        volumeMounts: [{{name: access, mountPath: /access}}]"
    )
}

/// A pod of the Service on this node.
fn web(node: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: web-{node}, namespace: default, labels: {{app: web}}}}
spec:
  nodeName: {node}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: {TOOL}
    imagePullPolicy: Never
    command: [/bin/httpd, -f, -p, '80']
    readinessProbe: {{tcpSocket: {{port: 80}}, periodSeconds: 1}}
"
    )
}
