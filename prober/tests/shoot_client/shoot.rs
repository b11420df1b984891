//! A shoot's API server with a few nodes, and a client that probes it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api_server::protobuf::wire::{MEDIA_TYPE, envelope};
use api_server::{Authority, Fault, FaultId, MemoryApi, Network, Options, When};
use chrono::Utc;
use prober::clock::Clock;
use prober::shoot_client::KubeconfigSecret;
use prober::shoot_client::error::ProbeError;
use prober::shoot_client::resources::Resources;
use prober::shoot_client::{Budget, Listing, ShootClient};
use prober_core::lease::LeaseList;
use prober_core::verdict::NodeRecord;
use testbed::gardener::shoot_probe;

const NODE: &str = r#"{"apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "node-0000", "labels": {"worker.gardener.cloud/pool": "w1"}},
    "status": {"conditions": [{"type": "DiskPressure", "status": "False", "reason": "Kubelet"}]}}"#;
const LEASE: &str = r#"{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "node-0000", "namespace": "kube-node-lease"},
    "spec": {"holderIdentity": "node-0000", "leaseDurationSeconds": 40, "renewTime": "2026-03-01T12:00:07.123456Z"}}"#;

/// The token that every shoot here starts with; it must never be found in an error.
pub const TOKEN: &str = "t0k3n-0f-th3-pr0b3";

/// Beyond its budget a probe may take this long on a busy machine before the test fails.
const LEEWAY: Duration = Duration::from_secs(5);

pub struct TestShoot {
    pub api: MemoryApi,
    pub secret: Arc<KubeconfigSecret>,
    pub client: ShootClient,
    pub clock: Clock,
    /// What one probe may take.
    pub timeout: Duration,
}

/// A Secret as the seed's watch shows it.
fn secret(kubeconfig: &str) -> Arc<KubeconfigSecret> {
    let kubeconfig = Some(kubeconfig.as_bytes().to_vec());
    Arc::new(KubeconfigSecret { kubeconfig })
}

impl TestShoot {
    /// An ordinary API server with three nodes.
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// An API server of another kind, with three nodes.
    pub async fn with(options: Options) -> Self {
        // Another test of this process may have installed it already.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let authority = Authority::new().expect("an authority");
        let api = MemoryApi::start(&authority, options).await;
        let api = api.expect("an API server");
        api.access().grant(TOKEN, shoot_probe());
        let secret = secret(&api.kubeconfig(TOKEN));
        let clock = Clock::start(Utc::now());
        let client = ShootClient::new(clock, Arc::new(Resources::of_system()));
        let shoot = Self {
            api,
            secret,
            client,
            clock,
            timeout: Duration::from_secs(2),
        };
        shoot.add_nodes(0..3);
        shoot
    }

    pub fn set_secret(&mut self, kubeconfig: &str) {
        self.secret = secret(kubeconfig);
    }

    /// Changes the Secret to one that leads to this URL, with a line more in its cluster.
    pub fn lead(&mut self, url: &str, line: &str) {
        let kubeconfig = self.api.kubeconfig_at(url, TOKEN);
        let lines = format!("    {line}\n    server:");
        self.set_secret(&kubeconfig.replace("    server:", &lines));
    }

    /// Every request for this path meets a fault from now on; `nodes+` are those that go on with a
    /// list.
    pub fn meets(&self, path: &str, fault: Fault) -> FaultId {
        self.api.faults().add(to(path), fault)
    }

    /// The next request for this path meets a fault.
    pub fn meets_once(&self, path: &str, fault: Fault) -> FaultId {
        self.api.faults().add(to(path).once(), fault)
    }

    /// Adds nodes with their leases.
    pub fn add_nodes(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let name = format!("node-{number:04}");
            let [node, lease] = [NODE, LEASE].map(|object| {
                serde_json::from_str(&object.replace("node-0000", &name)).expect("an object")
            });
            self.api.store().create(node).expect("a node");
            self.api.store().create(lease).expect("a lease");
        }
    }

    /// Probes; the leases.
    pub async fn leases(&mut self) -> Result<Listing<LeaseList>, ProbeError> {
        let (secret, budget) = (&self.secret, Budget::starting_now(self.timeout));
        checked(self.timeout, self.client.leases(secret, budget)).await
    }

    /// Probes; the leases and the nodes.
    pub async fn nodes(&mut self) -> Result<Listing<Vec<NodeRecord>>, ProbeError> {
        let (secret, budget) = (&self.secret, Budget::starting_now(self.timeout));
        let probe = async {
            self.client.leases(secret, budget).await?;
            self.client.nodes(budget).await
        };
        checked(self.timeout, probe).await
    }

    /// The requests since the last call: what was asked for, and on which connection.
    pub fn asked(&self) -> String {
        let asked = self.api.requests().all();
        self.api.requests().clear();
        let asked = asked.iter().map(|record| {
            let name = record.path.rsplit('/').next().unwrap_or_default();
            let marks = [("continue=", "+"), ("resourceVersion", " of old")];
            let [goes_on, is_old] = marks.map(|(part, mark)| {
                let is_so = record.query.contains(part);
                if is_so { mark } else { "" }
            });
            format!("{name}{goes_on}/{}{is_old}", record.connection)
        });
        asked.collect::<Vec<_>>().join(" ")
    }

    /// Lets things happen; what stands behind a colon must come of it. Of a probe that is how many
    /// items it lists, or the category and stage of its failure, and what it asked for.
    pub async fn tell(&mut self, story: &str) {
        for event in story.split("; ") {
            let (event, expected) = event.split_once(": ").unwrap_or((event, ""));
            let came = self.happens(event).await;
            assert_eq!(came, expected, "{event} of {story}");
        }
    }

    async fn happens(&mut self, event: &str) -> String {
        let said: Vec<_> = event.split(' ').collect();
        match said[..] {
            ["probe", ref nodes @ ..] => {
                let found = if nodes.is_empty() {
                    self.leases().await.map(|found| found.items.len())
                } else {
                    self.nodes().await.map(|found| found.items.len())
                };
                let found = found.map_or_else(|error| words(&error), |count| count.to_string());
                return format!("{found} by {}", self.asked());
            }
            ["connections"] => return self.api.connections().accepted.to_string(),
            ["another", "client"] => {
                self.client = ShootClient::new(self.clock, Arc::new(Resources::of_system()));
            }
            ["timeout", millis] => {
                self.timeout = Duration::from_millis(millis.parse().expect(event))
            }
            ["wait", seconds] => {
                tokio::time::pause();
                tokio::time::advance(Duration::from_secs(seconds.parse().expect(event))).await;
                // It runs on by itself afterwards, as the connections need.
                tokio::time::resume();
            }
            ["network", "refused"] => self.api.set_network(Network::Refused),
            ["grant", token] => self.api.access().grant(token, shoot_probe()),
            ["revoke", token] => self.api.access().revoke(token),
            ["secret", token] => self.set_secret(&self.api.kubeconfig(token)),
            ["empty", "secret"] => self.set_secret(""),
            ["faults", "end"] => self.api.faults().clear(),
            [path, fault, ref once @ ..] => {
                let when = to(path);
                let when = if once.is_empty() { when } else { when.once() };
                self.api.faults().add(when, fault_of(fault));
            }
            _ => unreachable!("no such event: {event}"),
        }
        String::new()
    }
}

/// GET requests for this; `nodes+` are those that go on with a list.
fn to(path: &str) -> When {
    let (name, goes_on) = path
        .strip_suffix('+')
        .map_or((path, false), |name| (name, true));
    let name = format!("/{name}");
    When::matches(move |record| {
        record.path.ends_with(&name) && (!goes_on || record.query.contains("continue="))
    })
}

/// A fault by its word.
pub fn fault_of(word: &str) -> Fault {
    match word {
        "takes-1s" => Fault::Delay(Duration::from_secs(1)),
        "stalls" => Fault::Stall,
        "stalls-after" => Fault::StallAfter,
        "closes-before" => Fault::CloseBefore,
        "closes-after" => Fault::CloseAfter,
        "is-cut" => Fault::Truncate,
        "is-garbage" => Fault::Garbage,
        code => Fault::status(code.parse().expect(code)),
    }
}

/// An answer with these headers.
pub fn answer(code: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Fault {
    let headers = headers.iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_string()));
    Fault::Answer {
        code,
        headers: headers.collect(),
        body: body.as_ref().to_vec().into(),
    }
}

/// An answer of this kind, with these fields.
pub fn list(kind: &str, fields: &[Vec<u8>]) -> Fault {
    let body = envelope("v1", kind, &fields.concat());
    answer(200, &[("content-type", MEDIA_TYPE)], body)
}

/// An error's category and stage.
pub fn words(error: &ProbeError) -> String {
    format!("{} at {}", error.cause.category(), error.stage.into_str())
}

/// Holds a probe to its budget, and its error to what must not be in it.
async fn checked<T>(
    budget: Duration,
    probe: impl Future<Output = Result<T, ProbeError>>,
) -> Result<T, ProbeError> {
    let result = tokio::time::timeout(budget + LEEWAY, probe)
        .await
        .expect("a probe ends within its budget");
    if let Err(error) = &result {
        let said = format!("{error} {error:?}");
        assert!(!said.contains(TOKEN), "a credential is in {said}");
    }
    result
}
