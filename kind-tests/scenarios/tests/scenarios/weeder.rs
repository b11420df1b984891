//! The weeder as Gardener deploys it. The scenario is kubelet and controller: it says which Services
//! are ready and which pods crash-loop.

use anyhow::{Result, bail, ensure};
use serde_json::json;
use testbed::crash_loop::{PodHealth, ROLE, pod, set_health, set_ready, slice};
use testbed::gardener::{self, WEEDER, WEEDER_USER, weeder_access};
use testbed::gardenlet::Gardenlet;
use testbed::installation::{RunningAgent, install};
use testbed::{eventually, scenario};

use crate::election::leading;
use crate::gardeners_objects::beyond;
use crate::metrics::are_as_documented;
use crate::rbac::strip;
use crate::{is_ready, logs, shows};

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

#[test]
fn weeder_of_gardener_restarts_a_chain() -> Result<()> {
    scenario(async |bed| {
        let objects = Gardenlet::built()?.seed().await?;
        let seed = bed.own_seed().await?;
        let (api, granted) = (seed.api(), weeder_access());
        api.create_all(&granted).await?;
        api.create(&gardener::namespace(NAMESPACE)).await?;
        for (service, role) in [ETCD, SERVER] {
            let labels = json!({ROLE.0: ROLE.1, "role": role});
            let pod = pod(NAMESPACE, role, &labels, Some(role), PodHealth::Running);
            let slice = slice(NAMESPACE, service, false);
            api.create_all(&[slice, pod]).await?;
        }
        let is_there = async |pod: &str| {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}");
            anyhow::Ok(api.find(&path).await?.is_some())
        };
        let deleted = async |pod: &str| {
            let gone = async || {
                ensure!(!is_there(pod).await?, "it is there");
                Ok(())
            };
            eventually(&format!("{pod} is deleted"), gone).await
        };
        let recovers = async |service| set_ready(api, NAMESPACE, service, true).await;
        let deletions = || {
            let mut asked = seed.asked_by(WEEDER_USER);
            asked.retain(|asked| asked.verb == "delete");
            Vec::from_iter(asked.iter().map(|asked| asked.code))
        };
        install(api, &objects).await?;
        strip(api, &granted, &UNNEEDED).await?;
        let weeder = RunningAgent::installed(&seed, &objects, WEEDER, str::to_owned).await?;
        let log = weeder.log_file().to_owned();
        leading(&weeder).await?;
        is_ready(&log, 200, "ok").await?;
        // A disruption budget is no obstacle to a pod that serves nobody anyway.
        api.create_yaml(&format!(
            "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: none, namespace: {NAMESPACE}}}
spec: {{maxUnavailable: 0, selector: {{matchLabels: {{role: {}}}}}}}
",
            ETCD.1
        ))
        .await?;

        // The right to delete is missed, and used once it is back.
        strip(api, &granted, &["pods delete"]).await?;
        set_health(api, NAMESPACE, SERVER.1, PodHealth::Terminated).await?;
        set_health(api, NAMESPACE, ETCD.1, PodHealth::Waiting).await?;
        recovers(ETCD.0).await?;
        let refused = "dwd_weeder_deletions_total{result=\"forbidden\"}";
        shows(&log, refused, 1.0..).await?;
        let refused = "\"result\":\"forbidden\"";
        logs(&weeder, "pod could not be deleted", refused).await?;
        ensure!(is_there(ETCD.1).await?, "deleted all the same");
        strip(api, &granted, &UNNEEDED).await?;
        // No pod changes and no Service recovers: it tries again by itself, seldom.
        deleted(ETCD.1).await?;
        let [tries @ .., 200] = &deletions()[..] else {
            bail!("not deleted")
        };
        let are_refused = tries.iter().all(|code| *code == 403);
        ensure!(are_refused && (1..=3).contains(&tries.len()), "{tries:?}");

        ensure!(is_there(SERVER.1).await?, "what it needs is not back");
        recovers(SERVER.0).await?;
        deleted(SERVER.1).await?;
        assert!(deletions().ends_with(&[200, 200]), "{:?}", deletions());
        are_as_documented(&log, "Weeder").await?;
        ensure!(weeder.terminate().await?.success());
        let mut asked = seed.asked_by(WEEDER_USER);
        asked.retain(|asked| asked.verb != "delete" || asked.code != 403);
        assert_eq!(beyond(&objects, &asked)?, [""; 0]);
        seed.search_events().await
    })
}
