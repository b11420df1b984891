//! A seed with a weeder at work, and Kubernetes' own controllers for ReplicaSets and EndpointSlices.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use kind_tests::audit::Asked;
use kind_tests::manifests::{GARDEN, Manifest};
use kind_tests::process::Process;
use kind_tests::shoot::PATIENCE;
use kind_tests::{Bed, Seed, eventually, prober};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const ACCOUNT: &str = "dependency-watchdog-weeder";
const USER: &str = "system:serviceaccount:garden:dependency-watchdog-weeder";
const LEASE: &str = "dwd-weeder-leader-election";
/// The node of all pods: without one none becomes an endpoint.
pub const NODE: &str = "weeder";

/// What all scenarios here share.
pub struct Ground {
    pub seed: Arc<Seed>,
    pub weeder: Process,
    _controllers: Process,
}

static GROUND: OnceCell<Ground> = OnceCell::const_new();

impl Ground {
    pub async fn of(bed: &'static Bed) -> Result<&'static Self> {
        GROUND.get_or_try_init(async || Self::prepare(bed).await).await
    }

    pub async fn prepare(bed: &'static Bed) -> Result<Self> {
        let seed = bed.own_seed().await?;
        seed.apply(access()).await?;
        let node = json!({"metadata": {"name": NODE, "labels": {"bed": "weeder"}}});
        seed.apply(vec![("/api/v1/nodes".into(), node)]).await?;
        let file = |name: &str| seed.folder().join(name);
        std::fs::write(file("admin"), seed.plane().admin_kubeconfig())?;
        let args = [
            format!("--kubeconfig={}", file("admin").display()),
            "--controllers=endpointslice-controller,replicaset-controller".into(),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        let program = bed.programs().await?.join("kube-controller-manager");
        let controllers = Process::start("kube-controller-manager", &program, &args, &file("controllers-log"))?;

        let token = seed.api().token(GARDEN, ACCOUNT).await?;
        std::fs::write(file("weeder-kubeconfig"), seed.plane().kubeconfig(&seed.plane().url(), &token))?;
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/weeder.yaml");
        let args = [
            "weeder".into(),
            format!("--config-file={}", config.display()),
            "--enable-leader-election=true".into(),
            // Gardener's arguments end here.
            format!("--kubeconfig={}", file("weeder-kubeconfig").display()),
            "--metrics-bind-addr=0".into(),
            "--health-bind-addr=0".into(),
            "--pprof-bind-addr=0".into(),
        ];
        let weeder = Process::start("weeder", &prober::binary()?, &args, &file("weeder-log"))?;
        let ground = Self { seed, weeder, _controllers: controllers };
        eventually("the weeder leads and watches", PATIENCE, async || {
            let lease =
                ground.seed.api().get(&format!("/apis/coordination.k8s.io/v1/namespaces/{GARDEN}/leases/{LEASE}")).await?;
            ensure!(lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty()), "{lease}");
            let watches = ground.asked().into_iter().filter(|asked| asked.verb == "watch" && asked.code == 200);
            let watched: BTreeSet<String> = watches.map(|asked| asked.resource).collect();
            ensure!(watched.contains("pods") && watched.contains("endpointslices"), "{watched:?}");
            Ok(())
        })
        .await
        .with_context(|| ground.weeder.tail(20))?;
        Ok(ground)
    }

    /// What the weeder has asked for.
    pub fn asked(&self) -> Vec<Asked> {
        self.seed.plane().asked(&Default::default()).into_iter().filter(|asked| asked.user == USER).collect()
    }

    /// The statuses of the weeder's DELETEs in a namespace, by pod.
    pub fn deletes(&self, namespace: &str) -> Vec<(String, u64)> {
        let all = self.asked().into_iter();
        all.filter(|asked| asked.verb == "delete" && asked.namespace == namespace).map(|asked| (asked.name, asked.code)).collect()
    }
}

/// The weeder's account and roles on a seed (rules 82 and 83).
fn access() -> Vec<Manifest> {
    let (rbac, group) = ("/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io");
    let read = json!(["get", "list", "watch"]);
    let everywhere = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
    ]);
    let garden = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE], "verbs": ["get", "watch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "get", "update", "patch"]},
    ]);
    let mut manifests = vec![(
        format!("/api/v1/namespaces/{GARDEN}/serviceaccounts"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": GARDEN, "name": ACCOUNT}}),
    )];
    let roles = [
        ("Cluster", rbac.to_owned(), Value::Null, everywhere),
        ("", format!("{rbac}/namespaces/{GARDEN}"), json!(GARDEN), garden),
    ];
    for (prefix, base, namespace, rules) in roles {
        let (role, metadata) =
            (format!("{prefix}Role"), json!({"name": "gardener.cloud:dependency-watchdog-weeder", "namespace": namespace}));
        let collection = |kind: &str| format!("{base}/{}s", kind.to_lowercase());
        let version = format!("{group}/v1");
        manifests.push((collection(&role), json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": rules})));
        let binding = format!("{role}Binding");
        let object = json!({
            "apiVersion": version, "kind": binding, "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": role, "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "namespace": GARDEN, "name": ACCOUNT}],
        });
        manifests.push((collection(&binding), object));
    }
    manifests
}
