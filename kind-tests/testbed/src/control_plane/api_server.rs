//! kube-apiserver, with RBAC enforced and an audit log.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use api_server::{Authority, Serving, kubeconfig};
use http::Request;
use parking_lot::{Mutex, MutexGuard};
use rcgen::KeyPair;
use tokio::net::TcpSocket;

use super::{Etcd, reserve_port};
use crate::audit::{Asked, Mark, POLICY, since};
use crate::kube_api::KubeApi;
use crate::process::{Process, words};
use crate::reaper;
use crate::wait::eventually;

/// The bearer token of the testbed itself, a cluster administrator. Valid on loopback for as long
/// as a test runs.
const ADMIN_TOKEN: &str = "administrator-of-the-test-bed";

/// An API server for machines of their own, with real kubelets, in place of one on loopback.
pub struct ForNodes {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// The first address of its Services, which are 2^16.
    pub services: Ipv4Addr,
    /// The names of the nodes, whose kubelets have the tokens that [`kubelet_token`] says.
    pub nodes: Vec<String>,
}

/// The bearer token of a node's kubelet.
pub fn kubelet_token(node: &str) -> String {
    format!("kubelet-of-{node}")
}

impl ForNodes {
    /// What its certificate is good for: its address, and that of the Service `kubernetes`.
    fn serving(&self) -> Serving {
        let kubernetes = Ipv4Addr::from(u32::from(self.services) + 1);
        let mut serving = Serving::default();
        serving
            .names
            .extend([self.address.ip(), &kubernetes].map(ToString::to_string));
        serving
    }

    fn args(&self) -> String {
        let (ip, services) = (self.address.ip(), self.services);
        format!(
            "--bind-address={ip} --advertise-address={ip} --authorization-mode=Node,RBAC \
             --enable-admission-plugins=NodeRestriction --service-cluster-ip-range={services}/16 \
             --kubelet-preferred-address-types=InternalIP"
        )
    }
}

/// The arguments of an API server on loopback. No controller makes ServiceAccount tokens for pods
/// here, and none would take a taint off a new node.
const ON_LOOPBACK: &str = "--bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
    --authorization-mode=RBAC --service-cluster-ip-range=10.0.0.0/24 --endpoint-reconciler-type=none \
    --disable-admission-plugins=ServiceAccount,TaintNodesByCondition";

/// Writes the files of an API server, and returns the arguments that name them.
fn files(folder: &Path, authority: &Authority, nodes: Option<&ForNodes>) -> Result<Vec<String>> {
    let (certificate, key) = authority.sign(&nodes.map(ForNodes::serving).unwrap_or_default())?;
    let accounts = KeyPair::generate()?;
    let mut tokens = format!("{ADMIN_TOKEN},admin,admin,system:masters\n");
    for node in nodes.iter().flat_map(|nodes| &nodes.nodes) {
        let token = kubelet_token(node);
        tokens += &format!("{token},system:node:{node},{node},system:nodes\n");
    }
    let files = [
        ("tls-cert-file", certificate.pem()),
        ("tls-private-key-file", key.serialize_pem()),
        ("service-account-signing-key-file", accounts.serialize_pem()),
        ("service-account-key-file", accounts.public_key_pem()),
        ("token-auth-file", tokens),
        ("audit-policy-file", POLICY.to_owned()),
    ];
    let write = |(flag, text): (&str, String)| {
        let path = folder.join(flag);
        std::fs::write(&path, text)?;
        Ok(format!("--{flag}={}", path.display()))
    };
    files.into_iter().map(write).collect()
}

/// A running kube-apiserver.
pub struct ApiServer {
    process: Mutex<Process>,
    api: KubeApi,
    address: SocketAddr,
    /// Certificates of its authority, as PEM.
    authority: String,
    /// A kubeconfig for the testbed's administrator.
    admin: String,
    /// Its audit log.
    audit: PathBuf,
    /// Its port on loopback, which nobody else gets, also while it is away.
    _port: TcpSocket,
}

/// What owns an API server: its end is the server's.
pub type ControlPlane = Arc<ApiServer>;

impl ApiServer {
    /// Starts kube-apiserver, on a free port of loopback if not for nodes, and waits until it is
    /// ready, which takes about 3 s of one core. `name` is its prefix in etcd and must be its
    /// alone.
    pub async fn start(
        programs: &Path,
        etcd: &Etcd,
        authority: &Authority,
        name: &str,
        nodes: Option<&ForNodes>,
    ) -> Result<Self> {
        let folder = reaper::folder(name)?;
        let port = reserve_port(0)?;
        let address = match nodes {
            Some(nodes) => nodes.address.into(),
            None => port.local_addr()?,
        };
        let audit = folder.join("audit.log");
        let mut args = files(&folder, authority, nodes)?;
        args.extend([
            format!("--etcd-servers={}", etcd.url()),
            format!("--etcd-prefix=/{name}"),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--audit-log-path={}", audit.display()),
            format!("--secure-port={}", address.port()),
        ]);
        let more = nodes.map_or_else(|| ON_LOOPBACK.into(), ForNodes::args);
        args.extend(words(&more));
        let program = programs.join("kube-apiserver");
        let process = Process::start(name, &program, &args, &folder.join("log"))?;
        let admin = kubeconfig(&format!("https://{address}"), &authority.pem(), ADMIN_TOKEN);
        let server = Self {
            process: Mutex::new(process),
            api: KubeApi::connect(&admin).await?,
            address,
            authority: authority.pem(),
            admin,
            audit,
            _port: port,
        };
        server.gets_ready().await?;
        Ok(server)
    }

    /// Waits until it is ready and has created the last of its namespaces.
    async fn gets_ready(&self) -> Result<()> {
        let ready = eventually("kube-apiserver is ready", async || {
            ensure!(self.process().is_running(), "it has ended");
            let ready = Request::get("/readyz").body(Vec::new())?;
            ensure!(
                self.api.answer(ready).await?.status().is_success(),
                "not yet"
            );
            self.api.get("/api/v1/namespaces/default").await
        });
        let said = || self.process().tail(5);
        ready.await.map(drop).with_context(said)
    }

    /// The process, to be stopped, continued or killed.
    pub fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock()
    }

    /// Starts it on the same port after it was killed, and waits until it is ready. What it knew it
    /// reads from etcd.
    ///
    /// # Errors
    /// When it cannot be started, or does not get ready.
    pub async fn start_again(&self) -> Result<()> {
        // Its port is free as soon as it has ended.
        eventually("kube-apiserver has ended", async || {
            ensure!(!self.process().is_running(), "it runs");
            Ok(())
        })
        .await?;
        let process = self.process().again()?;
        *self.process() = process;
        self.gets_ready().await
    }

    /// A client with all rights.
    pub fn api(&self) -> &KubeApi {
        &self.api
    }

    /// A kubeconfig with all rights.
    pub fn admin_kubeconfig(&self) -> &str {
        &self.admin
    }

    /// The certificates of the authority that signed its own, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// A kubeconfig for a bearer token.
    pub fn kubeconfig(&self, token: &str) -> String {
        kubeconfig(&self.url(), &self.authority, token)
    }

    /// The end of its audit log.
    pub fn mark(&self) -> Mark {
        Mark(std::fs::metadata(&self.audit).map_or(0, |log| log.len() as usize))
    }

    /// What a user asked since then.
    pub fn asked_by(&self, user: &str, mark: &Mark) -> Vec<Asked> {
        let mut asked = since(&self.audit, mark);
        asked.retain(|asked| asked.user == user);
        asked
    }
}
