//! A webhook of one namespace that never answers.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::eventually;
use tokio::time::{Instant, timeout};

use super::ground::Ground;
use super::on_ground;
use super::plane::{ETCD, Plane, PodPhase};

/// Far more pods than DELETEs may be in flight.
const PODS: usize = 40;
/// What answers at all does so sooner; the API server itself gives the webhook 30 s.
const HANGS: Duration = Duration::from_secs(1);

/// Deletions of pods in the namespace of this control plane hang from now on, as long as the
/// listener lives.
async fn hang(plane: &Plane) -> Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("https://{}/", listener.local_addr()?);
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"]});
    let webhook = json!({
        "name": "hangs.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "timeoutSeconds": 30, "clientConfig": {"url": url}, "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": plane.namespace}},
    });
    plane.api().create(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hangs"}, "webhooks": [webhook],
    }))
    .await?;
    let (name, _) = plane.pods("apiserver").await?.swap_remove(0);
    let path = format!("{}/{name}?dryRun=All", plane.path("/api/v1", "pods"));
    eventually("deletions hang", async || {
        let answer = timeout(HANGS, plane.api().delete(&path)).await;
        ensure!(answer.is_err(), "{answer:?}");
        Ok(())
    })
    .await?;
    Ok(listener)
}

#[test]
fn a_webhook_that_hangs_in_one_namespace_holds_up_no_other() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let _weeder = ground.leader(&[]).await?;
        let hanging = Plane::on(&ground, "hanging", 1).await?;
        let other = Plane::on(&ground, "other", 1).await?;
        ensure!(hanging.namespace < other.namespace, "it comes first");
        hanging.scale("apiserver", PODS).await?;
        let stuck = hanging.outage(None).await?;
        let servers = other.outage(None).await?;
        let _listener = hang(&hanging).await?;
        hanging.all("main", PodPhase::Ready).await?;
        hanging.service(ETCD, true).await?;
        let began = Instant::now();
        other.recovery(&servers).await?;
        let took = began.elapsed();
        println!(
            "replaced {took:.1?} after its Service was ready, beside {PODS} DELETEs that hang"
        );
        // A DELETE without an answer is given up after 10 s.
        ensure!(took < Duration::from_secs(5), "{took:?}");
        ensure!(
            hanging.pods("apiserver").await? == stuck,
            "they do not hang"
        );
        other.end(1).await
    })
}
