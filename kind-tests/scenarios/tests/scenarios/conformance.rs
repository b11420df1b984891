//! The table of requests by which the API server in memory is like a kube-apiserver, played against
//! one.

use std::cell::OnceCell;

use anyhow::{Context, Result, ensure};
use api_server::conformance::{REJECTED, TestedServer, play, widgets};
use bytes::Bytes;
use http::{Request, Response};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testbed::control_plane::{ControlPlane, Etcd};
use testbed::kube_api::KubeApi;
use testbed::{eventually, scenario};

use crate::throttling::{Rejection, cluster_admin};

struct RealServer<'a> {
    plane: &'a ControlPlane,
    api: KubeApi,
    etcd: &'a Etcd,
    rejection: OnceCell<Rejection<'a>>,
}

impl TestedServer for RealServer<'_> {
    async fn send(&self, user: Option<&str>, request: Request<Vec<u8>>) -> Result<Response<Bytes>> {
        match user {
            Some(user) => self.api.acting_as(user).answer(request).await,
            None => self.api.answer(request).await,
        }
    }

    async fn compact(&self) -> Result<()> {
        // Its caches know old versions, too, and end with it.
        self.plane.process().signal(Signal::SIGKILL)?;
        self.etcd.compact().await?;
        self.plane.start_again().await
    }

    async fn reject(&self) -> Result<()> {
        let rejection = Rejection::begin(self.plane.api(), REJECTED, "list", "configmaps").await?;
        self.rejection.set(rejection).ok().context("once")?;
        eventually("lists are rejected", async || {
            let list = Request::get("/api/v1/configmaps").body(Vec::new())?;
            let answer = self.send(Some(REJECTED), list).await?;
            ensure!(answer.status() == 429, "{}", answer.status());
            Ok(())
        })
        .await
    }
}

/// The definition of the custom resource, with any spec and status.
fn definition() -> Value {
    let widgets = widgets();
    let (plural, kind) = (&widgets.plural, &widgets.kind);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let scale =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let version = json!({
        "name": widgets.version, "served": true, "storage": true, "subresources": {"status": {}, "scale": scale},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
    });
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": widgets.full_name()},
        "spec": {"group": widgets.group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": [version]}})
}

#[test]
fn kube_apiserver_answers_as_the_table() -> Result<()> {
    scenario(async |bed| {
        let (plane, etcd) = bed.start_with_own_etcd("conformance").await?;
        let api = plane.api();
        api.create(&definition()).await?;
        api.create(&cluster_admin(REJECTED)).await?;
        eventually("the custom resource is served", async || {
            api.list("/apis/example.org/v1/widgets").await.map(drop)
        })
        .await?;
        let real = RealServer {
            plane: &plane,
            api: KubeApi::without_retries(plane.admin_kubeconfig()).await?,
            etcd: &etcd,
            rejection: OnceCell::new(),
        };
        play(&real).await
    })
}
