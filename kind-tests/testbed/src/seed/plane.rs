//! A control plane that the testbed administers: one of its own, or one that somebody else has
//! started.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;

use crate::audit::{Asked, Mark};
use crate::control_plane::ApiServer;
use crate::kube_api::{KubeApi, kubeconfig};

/// A control plane, with an administrator's client.
#[derive(Clone)]
pub struct ControlPlane {
    api: KubeApi,
    address: SocketAddr,
    authority: String,
    /// The host that its certificate names, where it isn't 127.0.0.1.
    host: Option<String>,
    admin: String,
    server: Option<Arc<ApiServer>>,
}

impl ControlPlane {
    /// One of the testbed's own.
    pub async fn own(server: ApiServer) -> Result<Self> {
        let plane = Self::given(&server.admin).await?;
        Ok(Self {
            server: Some(Arc::new(server)),
            ..plane
        })
    }

    /// The current cluster of an administrator's kubeconfig.
    pub async fn given(admin: &str) -> Result<Self> {
        let config = Kubeconfig::from_yaml(admin)?;
        let mut contexts = config.contexts.iter();
        let context =
            contexts.find(|context| Some(&context.name) == config.current_context.as_ref());
        let context = context.and_then(|context| context.context.as_ref());
        let name = &context.context("no current context")?.cluster;
        let cluster = config.clusters.iter().find(|cluster| cluster.name == *name);
        let cluster = cluster.and_then(|cluster| cluster.cluster.clone());
        let cluster = cluster.context("no such cluster")?;
        let authority = match (
            &cluster.certificate_authority_data,
            &cluster.certificate_authority,
        ) {
            (Some(data), _) => String::from_utf8(STANDARD.decode(data)?)?,
            (None, Some(path)) => std::fs::read_to_string(path)?,
            (None, None) => anyhow::bail!("the kubeconfig names no certificate authority"),
        };
        let server: http::Uri = cluster
            .server
            .context("the kubeconfig names no server")?
            .parse()?;
        let host = server.host().context("the server has no host")?.to_owned();
        let port = server.port_u16().unwrap_or(443);
        let address = tokio::net::lookup_host((host.as_str(), port))
            .await?
            .next()
            .context("no such host")?;
        let host = (host != "127.0.0.1").then_some(host);
        Ok(Self {
            api: KubeApi::connect(admin).await?,
            address,
            authority,
            host,
            admin: admin.into(),
            server: None,
        })
    }

    /// A client with all rights.
    pub fn api(&self) -> &KubeApi {
        &self.api
    }

    /// A kubeconfig with all rights.
    pub fn admin_kubeconfig(&self) -> &str {
        &self.admin
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificates of the authority that signed its own, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Its URL.
    pub fn url(&self) -> String {
        match &self.host {
            Some(host) => format!("https://{host}:{}", self.address.port()),
            None => format!("https://{}", self.address),
        }
    }

    /// A kubeconfig for a bearer token that reaches this control plane at `url`, which may be a
    /// proxy's.
    pub fn kubeconfig(&self, url: &str, token: &str) -> String {
        let text = kubeconfig(url, &self.authority, token);
        match &self.host {
            Some(host) => text.replace(
                "    server:",
                &format!("    tls-server-name: {host}\n    server:"),
            ),
            None => text,
        }
    }

    /// The API server, where it is the testbed's own.
    pub fn server(&self) -> Option<&ApiServer> {
        self.server.as_deref()
    }

    /// The end of its audit log.
    pub fn mark(&self) -> Mark {
        self.server()
            .map(|server| server.audit.mark())
            .unwrap_or_default()
    }

    /// What its audit log says since then; nothing where there is none.
    pub fn asked(&self, mark: &Mark) -> Vec<Asked> {
        self.server()
            .map(|server| server.audit.since(mark))
            .unwrap_or_default()
    }

    /// What a user asked since then.
    pub fn asked_by(&self, user: &str, mark: &Mark) -> Vec<Asked> {
        let mut asked = self.asked(mark);
        asked.retain(|asked| asked.user == user);
        asked
    }
}
