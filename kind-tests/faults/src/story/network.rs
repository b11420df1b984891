//! The way to the shoot's API server, and the credentials for it.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use testbed::api::gardener::{self, PROBE_SECRET};
use testbed::api::{Fault, MemoryApi, Network, When};
use testbed::relay::Path;
use tokio::time::Instant;

use super::Story;
use crate::pace::BEAT;
use crate::shoot::Api;
use crate::shoot::away::Refusal;

/// After a fault the next probe is under way within an interval of 3 s with its jitter, or a retry.
const CONSEQUENCES: Duration = Duration::from_millis(500);

/// What an API server in memory does to the probes.
#[derive(Clone, Copy, Debug)]
enum Ill {
    Throttled,
    ServerError,
    Initializing,
    Forbidden,
    NotFound,
    NodesForbidden,
    NodesFail,
    LeasesStall,
    Stall,
    Reset,
    Refused,
    Silent,
    Slow,
    Truncated,
    Garbage,
    Oversized,
    Endless,
    WrongType,
    Cut,
}

const ILLS: [Ill; 19] = [
    Ill::Throttled,
    Ill::ServerError,
    Ill::Initializing,
    Ill::Forbidden,
    Ill::NotFound,
    Ill::NodesForbidden,
    Ill::NodesFail,
    Ill::LeasesStall,
    Ill::Stall,
    Ill::Reset,
    Ill::Refused,
    Ill::Silent,
    Ill::Slow,
    Ill::Truncated,
    Ill::Garbage,
    Ill::Oversized,
    Ill::Endless,
    Ill::WrongType,
    Ill::Cut,
];

impl Story {
    /// The API server is ill for a while, in one of many ways.
    pub(super) async fn api_fault(&mut self) -> Result<()> {
        let shoot = self.shoot.clone();
        match &*shoot.api {
            Api::Memory(api) => self.ill(api).await,
            Api::Real(real) => {
                let path = *self.rng.pick(&[Path::Stalled, Path::Refused, Path::Reset, Path::HalfOpen]);
                self.begin(&format!("the way to the API server is {path:?}"));
                real.relay.set(path);
                let time = self.rng.seconds(1.0, 8.0);
                self.pause(time).await;
                real.relay.set(Path::Open);
                self.end(Duration::ZERO);
            }
        }
        Ok(())
    }

    /// The API server is away for a while, for its nodes too. A real one is only out of the watchdog's reach.
    pub(super) async fn api_away(&mut self) -> Result<()> {
        let shoot = self.shoot.clone();
        let Api::Memory(api) = &*shoot.api else { return self.api_fault().await };
        let refusal = *self.rng.pick(&[Refusal::Unavailable, Refusal::Refused]);
        // 25 to 60 s with a grace of 40 s.
        let time = self.rng.seconds(5.0, 12.0);
        self.world.ledger.count("API servers that were away, for their nodes too");
        self.begin(&format!("the API server is about to be away: {refusal:?}"));
        shoot.be_away(api, refusal, time).await;
        self.end(Duration::ZERO);
        // All nodes can renew before it is away again: for one that flaps nothing is promised.
        self.pause(2 * BEAT).await;
        Ok(())
    }

    async fn ill(&mut self, api: &MemoryApi) {
        let ill = *self.rng.pick(&ILLS);
        let seconds = self.rng.number(1..=3) as u32;
        let time = self.rng.seconds(1.0, 8.0);
        if let Ill::Cut = ill {
            self.shoot.note("the API server's connections are cut");
            api.cut_connections();
            return;
        }
        self.begin(&format!("the API server is ill: {ill:?}"));
        let piece = Duration::from_millis(200);
        let nodes = || When::verb("list", "nodes");
        let leases = || When::verb("list", crate::shoot::LEASES);
        let fault = match ill {
            Ill::Throttled => Some((When::any(), Fault::throttle(seconds))),
            Ill::ServerError => Some((When::any(), Fault::status(503))),
            Ill::Initializing => Some((leases(), Fault::status(500))),
            Ill::Forbidden => Some((leases(), Fault::status(403))),
            Ill::NotFound => Some((leases(), Fault::status(404))),
            Ill::NodesForbidden => Some((nodes(), Fault::status(403))),
            Ill::NodesFail => Some((nodes(), Fault::status(500))),
            Ill::LeasesStall => Some((leases(), Fault::Stall)),
            Ill::Stall => Some((When::any(), Fault::Stall)),
            Ill::Reset => Some((When::any(), Fault::CloseBefore)),
            Ill::Slow => Some((When::any(), Fault::Slow { bytes: 16, pause: piece })),
            Ill::Truncated => Some((leases(), Fault::Truncate)),
            Ill::Garbage => Some((leases(), Fault::Garbage)),
            Ill::Oversized => Some((leases(), Fault::Oversized(33 << 20))),
            Ill::Endless => Some((leases(), Fault::Endless { bytes: 4096, pause: piece })),
            Ill::WrongType => Some((leases(), wrong_type())),
            Ill::Refused | Ill::Silent | Ill::Cut => None,
        };
        let id = fault.map(|(when, fault)| api.faults().add(when, fault));
        match ill {
            Ill::Refused => api.set_network(Network::Refused),
            Ill::Silent => api.set_network(Network::Silent),
            _ => {}
        }
        self.pause(time).await;
        if let Some(id) = id {
            api.faults().remove(id);
        }
        api.set_network(Network::Up);
        let wait = if matches!(ill, Ill::Throttled) { Duration::from_secs(seconds.into()) } else { Duration::ZERO };
        self.end(wait);
    }

    /// Something begins that keeps the watchdog from getting answers.
    pub(super) fn begin(&self, what: &str) {
        let mut record = self.shoot.record();
        record.note(Instant::now(), what);
        record.api.begin();
    }

    /// It ends; it has consequences for so long.
    pub(super) fn end(&self, consequences: Duration) {
        let mut record = self.shoot.record();
        let now = Instant::now();
        record.note(now, "answers can be had again");
        record.api.end(now + consequences + CONSEQUENCES);
    }

    /// The token is renewed: the Secret is written, and the old token dies before or after that.
    pub(super) async fn rotation(&mut self) -> Result<()> {
        let shoot = self.shoot.clone();
        let gap = if self.rng.chance(0.5) { self.rng.seconds(0.1, 3.0) } else { Duration::ZERO };
        let early = self.rng.chance(0.5);
        self.begin(&format!("the token is rotated, {gap:?} apart"));
        let done = match &*shoot.api {
            Api::Memory(api) => {
                let old = self.token();
                let new = format!("soak-probe-token-{}-{}", shoot.namespace, self.rng.number(0..=i64::MAX));
                api.access().grant(&new, gardener::shoot_probe());
                if early {
                    api.access().revoke(&old);
                    self.pause(gap).await;
                    shoot.write_secret(&shoot.kubeconfig(&new))
                } else {
                    let done = shoot.write_secret(&shoot.kubeconfig(&new));
                    self.pause(gap).await;
                    api.access().revoke(&old);
                    done
                }
            }
            Api::Real(real) => {
                let renew = async {
                    if early {
                        real.revoke().await?;
                        self.pause(gap).await;
                    }
                    shoot.write_secret(&shoot.kubeconfig(&real.token().await?))
                };
                renew.await
            }
        };
        // A real API server remembers for up to 10 s which tokens it has accepted or not.
        self.end(if shoot.is_real() { Duration::from_secs(10) } else { Duration::ZERO });
        done
    }

    /// The token that the Secret holds.
    fn token(&self) -> String {
        self.kubeconfig().lines().find_map(|line| line.trim().strip_prefix("token: ").map(str::to_owned)).unwrap_or_default()
    }

    fn kubeconfig(&self) -> String {
        use base64::Engine;
        let secret = self.shoot.seed.get("secrets", &self.shoot.namespace, PROBE_SECRET).unwrap_or_default();
        let data = secret["data"]["kubeconfig"].as_str().unwrap_or_default();
        let bytes = base64::prelude::BASE64_STANDARD.decode(data).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The Secret is gone or useless for a while.
    pub(super) async fn bad_secret(&mut self) -> Result<()> {
        let good = self.kubeconfig();
        let what = *self.rng.pick(&["gone", "empty", "nonsense", "an exec plugin", "another server", "no key"]);
        self.begin(&format!("the Secret is bad: {what}"));
        let namespace = self.shoot.namespace.clone();
        let written = match what {
            "gone" => self.shoot.seed.delete("secrets", &namespace, PROBE_SECRET).map(drop).map_err(Into::into),
            "empty" => self.shoot.write_secret(""),
            "nonsense" => self.shoot.write_secret("{neither: YAML nor"),
            "an exec plugin" => {
                let users = good.replace(
                    "    token:",
                    "    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false}\n    x:",
                );
                self.shoot.write_secret(&users)
            }
            "another server" => self.shoot.write_secret(&good.replace("https://127.0.0.1:", "https://127.0.0.2:")),
            _ => {
                let data = serde_json::json!({"data": {"kubeconfig": null, "other": "eA=="}});
                self.shoot.seed.patch("secrets", &namespace, PROBE_SECRET, &data).map(drop).map_err(Into::into)
            }
        };
        let time = self.rng.seconds(0.5, 6.0);
        self.pause(time).await;
        let restored = self.shoot.write_secret(&good);
        self.end(Duration::ZERO);
        written.and(restored)
    }
}

/// A list of something else, under the name of the list of leases.
fn wrong_type() -> Fault {
    let body = Bytes::from_static(br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#);
    Fault::Answer { code: 200, headers: vec![("content-type".into(), "application/json".into())], body }
}
