//! kube-apiserver, with RBAC enforced and an audit log.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use api_server::{Authority, Serving};
use parking_lot::{Mutex, MutexGuard};
use rcgen::KeyPair;

use super::{Etcd, TRIES, free_ports};
use crate::audit::{Asked, Audit, Mark, POLICY};
use crate::kube_api::{KubeApi, kubeconfig};
use crate::process::Process;
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
    /// The address of the Service `kubernetes`.
    fn kubernetes(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.services) + 1)
    }

    /// What its certificate is good for.
    fn serving(&self) -> Serving {
        let mut serving = Serving::default();
        serving
            .names
            .extend([self.address.ip().to_string(), self.kubernetes().to_string()]);
        serving
    }

    fn args(&self) -> Vec<String> {
        vec![
            format!("--bind-address={}", self.address.ip()),
            format!("--advertise-address={}", self.address.ip()),
            "--authorization-mode=Node,RBAC".into(),
            "--enable-admission-plugins=NodeRestriction".into(),
            format!("--service-cluster-ip-range={}/16", self.services),
            "--kubelet-preferred-address-types=InternalIP".into(),
        ]
    }
}

/// The arguments of an API server on loopback.
fn on_loopback() -> Vec<String> {
    vec![
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        "--authorization-mode=RBAC".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        // No controller makes ServiceAccount tokens for pods here, and none would take a taint off
        // a new node.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".into(),
        "--endpoint-reconciler-type=none".into(),
    ]
}

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
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(format!("--{flag}={}", path.display()))
    };
    files.into_iter().map(write).collect()
}

/// A running kube-apiserver.
pub struct ApiServer {
    process: Mutex<Arc<Process>>,
    api: KubeApi,
    address: SocketAddr,
    /// Certificates of its authority, as PEM.
    authority: String,
    /// A kubeconfig for the testbed's administrator.
    admin: String,
    audit: Audit,
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
        let audit = folder.join("audit.log");
        let mut fixed = files(&folder, authority, nodes)?;
        fixed.extend([
            format!("--etcd-servers={}", etcd.url()),
            format!("--etcd-prefix=/{name}"),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--audit-log-path={}", audit.display()),
        ]);
        fixed.extend(nodes.map_or_else(on_loopback, ForNodes::args));

        let mut last = String::new();
        for attempt in 0..TRIES {
            let address = match nodes {
                Some(nodes) => nodes.address,
                None => SocketAddrV4::new(Ipv4Addr::LOCALHOST, free_ports::<1>()?[0]),
            };
            let mut args = fixed.clone();
            args.push(format!("--secure-port={}", address.port()));
            let log = folder.join(format!("log-{attempt}"));
            let mut process = Process::start(name, &programs.join("kube-apiserver"), &args, &log)?;
            let admin = kubeconfig(&format!("https://{address}"), &authority.pem(), ADMIN_TOKEN);
            let api = KubeApi::connect(&admin).await?;
            if gets_ready(&api, &mut process).await? {
                return Ok(Self {
                    process: Mutex::new(Arc::new(process)),
                    api,
                    address: address.into(),
                    authority: authority.pem(),
                    admin,
                    audit: Audit::of(&audit),
                });
            }
            last = process.tail(5);
        }
        bail!("kube-apiserver does not start: {last}")
    }

    /// The process, to be stopped, continued or killed.
    pub fn process(&self) -> Arc<Process> {
        self.current().clone()
    }

    /// Starts it on the same port after it was killed, and waits until it is ready. What it knew it
    /// reads from etcd.
    ///
    /// # Errors
    /// When it cannot be started, or does not get ready.
    pub async fn start_again(&self) -> Result<()> {
        let mut last = String::new();
        for _ in 0..TRIES {
            let mut process = self.current().again()?;
            let is_ready = gets_ready(&self.api, &mut process).await?;
            last = process.tail(5);
            *self.current() = Arc::new(process);
            if is_ready {
                return Ok(());
            }
        }
        bail!("kube-apiserver does not start again: {last}")
    }

    fn current(&self) -> MutexGuard<'_, Arc<Process>> {
        self.process.lock()
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
        format!("https://{}", self.address)
    }

    /// A kubeconfig for a bearer token that reaches it at `url`, which may be a proxy's.
    pub fn kubeconfig(&self, url: &str, token: &str) -> String {
        kubeconfig(url, &self.authority, token)
    }

    /// The end of its audit log.
    pub fn mark(&self) -> Mark {
        self.audit.mark()
    }

    /// What its audit log says since then.
    pub fn asked(&self, mark: &Mark) -> Vec<Asked> {
        self.audit.since(mark)
    }

    /// What a user asked since then.
    pub fn asked_by(&self, user: &str, mark: &Mark) -> Vec<Asked> {
        let mut asked = self.asked(mark);
        asked.retain(|asked| asked.user == user);
        asked
    }
}

/// Whether it comes so far; it does not where somebody else has taken its port, as a connection
/// does that begins there by chance.
async fn gets_ready(api: &KubeApi, process: &mut Process) -> Result<bool> {
    let ready = eventually("kube-apiserver is ready", async || {
        if process.ended()?.is_some() {
            return Ok(false);
        }
        api.text("/readyz").await.map(|_| true)
    });
    ready.await.with_context(|| process.tail(5))
}
