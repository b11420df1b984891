//! The weeder as Gardener deploys it. The scenario is kubelet and controller: it says which Services
//! are ready and which pods crash-loop.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::audit::Mark;
use testbed::crash_loop::{PodHealth, ROLE, pod, set_health, set_ready, slice};
use testbed::gardener::{self, WEEDER, WEEDER_USER, weeder_access};
use testbed::gardenlet::Gardenlet;
use testbed::installation::{RunningAgent, install};
use testbed::{eventually, scenario};

use crate::election::leading;
use crate::gardeners_objects::beyond;
use crate::rbac::strip;

/// What Gardener grants and what is not needed.
const UNNEEDED: [&str; 4] = [
    "pods get",
    "endpointslices get",
    "events get",
    "events update",
];
const NAMESPACE: &str = "control-plane";
/// The Services, each with the pod that needs it, which is named for its role.
const ETCD: (&str, &str) = ("etcd-main-client", "apiserver");
const SERVER: (&str, &str) = ("kube-apiserver", "controller-manager");
/// No obstacle to a pod that serves nobody anyway.
const BUDGET: &str = "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: none, namespace: control-plane}
spec: {maxUnavailable: 0, selector: {matchLabels: {role: apiserver}}}
";

#[test]
fn weeder_of_gardener_restarts_a_chain() -> Result<()> {
    scenario(async |bed| {
        let objects = Gardenlet::built()?.seed().await?;
        let seed = bed.own_seed().await?;
        let (api, granted) = (seed.api(), weeder_access());
        install(api, &objects).await?;
        strip(api, &granted, &UNNEEDED).await?;
        api.create(&gardener::namespace(NAMESPACE)).await?;
        api.create_yaml(BUDGET).await?;
        for (service, role) in [ETCD, SERVER] {
            let labels = json!({ROLE.0: ROLE.1, "role": role});
            let pod = pod(NAMESPACE, role, &labels, Some(role), PodHealth::Running);
            let slice = slice(NAMESPACE, service, false);
            api.create_all(&[slice, pod]).await?;
        }
        let weeder = RunningAgent::installed(&seed, &objects, WEEDER).await?;
        leading(&weeder).await?;

        set_health(api, NAMESPACE, SERVER.1, PodHealth::Terminated).await?;
        set_health(api, NAMESPACE, ETCD.1, PodHealth::Waiting).await?;
        let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
        for ((service, _), left) in [(ETCD, vec![SERVER.1]), (SERVER, vec![])] {
            set_ready(api, NAMESPACE, service, true).await?;
            // What needs the other one waits for it.
            eventually("the pod is deleted", async || {
                let names = api.names(&pods).await?;
                ensure!(names == left, "{names:?}");
                Ok(())
            })
            .await?;
        }
        ensure!(weeder.terminate().await?.success());
        let asked = seed.plane().asked_by(WEEDER_USER, &Mark::default());
        assert_eq!(beyond(&objects, &asked)?, BTreeSet::new());
        Ok(())
    })
}
