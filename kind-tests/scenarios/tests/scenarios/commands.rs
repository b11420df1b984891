//! What operators run outside of the seed's network: it asks the prober through the API server.

use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::agent::binary;
use testbed::gardener::{GARDEN, PROBER};
use testbed::page::{address, outside};
use testbed::{PATIENCE, ShootCluster, ShootPlan, scenario, secrets};
use tokio::process::Command;
use tokio::time::timeout;

use crate::{alone, comes_back, end_alone, goes_down, with_args};

/// The operator's ServiceAccount.
const OPERATOR: &str = "operator";

/// Applies what makes the running prober a pod, and an operator who may do nothing but ask it; the
/// operator's kubeconfig.
async fn publish(shoot: &ShootCluster, ip: IpAddr, port: &str) -> Result<String> {
    let api = shoot.seed.api();
    let labels = json!({ "app": PROBER });
    let metadata = |name: &str| json!({ "name": name, "namespace": GARDEN, "labels": labels });
    let serves = format!("--health-bind-addr=0.0.0.0:{port}");
    let container = json!({ "name": "prober", "image": "it", "args": ["prober", serves] });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let group = "rbac.authorization.k8s.io";
    api.create_all(&[
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(PROBER),
                "spec": { "replicas": 0, "selector": { "matchLabels": labels }, "template": template } }),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata("asked"),
                "spec": { "containers": [container], "nodeName": "none" } }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(OPERATOR) }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata(OPERATOR), "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
        ]}),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata(OPERATOR),
                "subjects": [{ "kind": "ServiceAccount", "name": OPERATOR, "namespace": GARDEN }],
                "roleRef": { "apiGroup": group, "kind": "Role", "name": OPERATOR } }),
    ])
    .await?;
    let status = json!({ "status": { "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] } });
    let pod = format!("/api/v1/namespaces/{GARDEN}/pods/asked/status");
    api.merge(&pod, &status).await?;
    let token = api.token(GARDEN, OPERATOR).await?;
    let plane = shoot.seed.plane();
    Ok(plane.kubeconfig(&plane.url(), &token))
}

/// Runs a command that succeeds; what it says. It has a kubeconfig and nothing else.
async fn run(kubeconfig: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(binary()?);
    command.args(words).arg("--kubeconfig").arg(kubeconfig);
    command.env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await??;
    for said in [&output.stdout, &output.stderr] {
        secrets::all().search("what a command says", said);
    }
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
}

#[test]
fn operators_ask_the_prober() -> Result<()> {
    scenario(async |bed| {
        let Some(ip) = outside() else {
            eprintln!("skipped: this machine has no address outside of loopback");
            return Ok(());
        };
        let serves = with_args(&["--health-bind-addr=0.0.0.0:0"]);
        let (shoot, prober) = alone(bed, "asked", ShootPlan::default(), serves).await?;
        let address = address(prober.log_file(), "/statusz")?;
        let (_, port) = address.rsplit_once(':').unwrap_or_default();
        let operator = shoot.seed.folder().join("operator");
        std::fs::write(&operator, publish(&shoot, ip, port).await?)?;
        let asks = async |words: &[&str], parts: &[&str]| {
            let said = run(&operator, words).await?;
            for part in parts {
                ensure!(said.contains(part), "no {part:?} in {said}");
            }
            Ok(())
        };
        let checked = ["explain", &shoot.namespace, "--check"];
        asks(&checked, &["scale_up: "]).await?;
        goes_down(&shoot).await?;
        asks(&["status"], &["kube-controller-manager, "]).await?;
        let outage = [
            "scale_down: ",
            "held down by the watchdog",
            "Prober:       asked (",
        ];
        asks(&checked, &outage).await?;
        let user = format!("system:serviceaccount:{GARDEN}:{OPERATOR}");
        let asked = shoot.seed.asked_by(&user);
        ensure!(asked.iter().any(|asked| asked.resource == "pods/proxy"));
        let beyond: Vec<_> = asked
            .iter()
            .filter(|asked| asked.code >= 400 || asked.resource == "secrets")
            .filter(|asked| asked.resource != "leases")
            .collect();
        ensure!(beyond.is_empty(), "{beyond:#?}");

        comes_back(&shoot).await?;
        end_alone(shoot, prober).await
    })
}
