//! The table of requests by which the API server in memory is like a kube-apiserver, played against
//! one.

use std::cell::OnceCell;

use anyhow::{Context, Result, ensure};
use api_server::conformance::{REJECTED, TestedServer, play};
use bytes::Bytes;
use http::{Request, Response};
use nix::sys::signal::Signal;
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
const WIDGETS: &str = "
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
";

#[test]
fn kube_apiserver_answers_as_the_table() -> Result<()> {
    scenario(async |bed| {
        let (plane, etcd) = bed.start_with_own_etcd("conformance").await?;
        plane.api().create_yaml(WIDGETS).await?;
        plane.api().create_yaml(&cluster_admin(REJECTED)).await?;
        plane.api().appears("/apis/example.org/v1/widgets").await?;
        let real = RealServer {
            plane: &plane,
            api: plane.api().without_retries()?,
            etcd: &etcd,
            rejection: OnceCell::new(),
        };
        play(&real).await
    })
}
