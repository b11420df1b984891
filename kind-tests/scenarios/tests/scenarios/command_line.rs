//! The command line from outside the seed's network: it asks the prober through the API server.

use std::net::{IpAddr, UdpSocket};
use std::process::Stdio;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::agent::binary;
use testbed::gardener::{GARDEN, PROBER};
use testbed::page::address;
use testbed::{PATIENCE, ShootCluster, ShootPlan, own_scenario, secrets};
use tokio::process::Command;
use tokio::time::timeout;

use crate::{alone, end_alone, goes_down, with_args};

/// The operator's ServiceAccount.
const OPERATOR: &str = "operator";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/garden/deployments/dependency-watchdog-prober";
/// A pod of that Deployment.
const POD: &str = "/api/v1/namespaces/garden/pods/asked";

/// This machine's address outside of loopback, to which alone an API server passes requests on.
fn outside() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: the route says which address it would be sent from.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Applies what makes the running prober a pod, and an operator who may do nothing but ask it.
async fn publish(shoot: &ShootCluster, ip: IpAddr, port: &str) -> Result<String> {
    let api = shoot.seed.api();
    let labels = json!({ "app": PROBER });
    let metadata = |name: &str| json!({ "name": name, "namespace": GARDEN, "labels": labels });
    let serves = format!("--health-bind-addr=0.0.0.0:{port}");
    let container = json!({ "name": "prober", "image": "it", "args": ["prober", serves] });
    let spec = json!({ "containers": [container], "nodeName": "none" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let account = json!({ "kind": "ServiceAccount", "name": OPERATOR, "namespace": GARDEN });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": OPERATOR });
    api.create_all(&[
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(PROBER),
                "spec": { "replicas": 0, "selector": { "matchLabels": labels }, "template": template } }),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata("asked"), "spec": spec }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(OPERATOR) }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata(OPERATOR), "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
        ]}),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata(OPERATOR),
                "subjects": [account], "roleRef": role }),
    ])
    .await?;
    let status = json!({ "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] });
    let status = json!({ "status": status });
    api.merge(&format!("{POD}/status"), &status).await?;
    let token = api.token(GARDEN, OPERATOR).await?;
    let plane = shoot.seed.plane();
    Ok(plane.kubeconfig(&plane.url(), &token))
}

/// Runs a command with the operator's kubeconfig alone.
async fn run(shoot: &ShootCluster, kubeconfig: &str, words: &[&str]) -> Result<String> {
    let file = shoot.seed.folder().join("operator.kubeconfig");
    std::fs::write(&file, kubeconfig)?;
    let mut command = Command::new(binary()?);
    command.args(words).arg("--kubeconfig").arg(file);
    command.env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await??;
    for said in [&output.stdout, &output.stderr] {
        secrets::all().search("what a command says", said);
    }
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn who_may_only_ask_the_prober_sees_what_it_says() -> Result<()> {
    own_scenario("needs audit logs", async |bed| {
        let Some(ip) = outside() else {
            eprintln!("skipped: this machine has no address outside of loopback");
            return Ok(());
        };
        let serves = with_args(&["--health-bind-addr=0.0.0.0:0"]);
        let (shoot, prober) = alone(bed, "asked", ShootPlan::default(), serves).await?;
        let address = address(prober.log_file(), "/statusz")?;
        let (_, port) = address.rsplit_once(':').unwrap_or_default();
        let kubeconfig = publish(&shoot, ip, port).await?;

        let checked = ["explain", &shoot.namespace, "--check"];
        let healthy = run(&shoot, &kubeconfig, &checked).await?;
        ensure!(healthy.contains("scale_up: "), "{healthy}");
        goes_down(&shoot).await?;
        let listed = run(&shoot, &kubeconfig, &["status"]).await?;
        ensure!(listed.contains("kube-controller-manager, "), "{listed}");
        let outage = run(&shoot, &kubeconfig, &checked).await?;
        for part in [
            "scale_down: ",
            "held down by the watchdog",
            "Prober:       asked (",
        ] {
            ensure!(outage.contains(part), "no {part:?} in {outage}");
        }
        let user = format!("system:serviceaccount:{GARDEN}:{OPERATOR}");
        let asked = shoot.seed.asked_by(&user);
        ensure!(asked.iter().any(|asked| asked.resource == "pods/proxy"));
        let beyond: Vec<_> = asked
            .iter()
            .filter(|asked| asked.code >= 400 || asked.resource == "secrets")
            .filter(|asked| asked.resource != "leases")
            .collect();
        ensure!(beyond.is_empty(), "{beyond:#?}");

        let api = shoot.seed.api();
        for path in [POD, DEPLOYMENT] {
            api.delete(path).await?;
        }
        end_alone(shoot, prober).await
    })
}
