//! The way to the shoot's API server, and the credentials for it.

use std::time::Duration;

use anyhow::Result;
use api_server::protobuf::wire::{MEDIA_TYPE, envelope, message, text};
use api_server::{Fault, MemoryApi, Network, When};
use rand::RngExt;
use serde_json::json;
use testbed::gardener::PROBE_SECRET;

use super::actor::Actor;
use super::be_away;
use super::injected_fault::InjectedFault;
use crate::pace::BEAT;
use crate::shoot::{LEASES, SoakShoot};

/// After a fault the next probe is under way within an interval of 3 s with its jitter, or a retry.
const CONSEQUENCES: Duration = Duration::from_millis(500);

const THROTTLES: &str = "it throttles";

/// What an API server in memory does to the probes; one that throttles asks for so many seconds.
fn injected_faults(seconds: u32) -> [(&'static str, InjectedFault); 19] {
    let all = |fault| InjectedFault::Answers(When::any(), fault);
    let leases = |fault| InjectedFault::Answers(When::verb("list", LEASES), fault);
    let nodes = |fault| InjectedFault::Answers(When::verb("list", "nodes"), fault);
    let pause = Duration::from_millis(200);
    // A list of something else, under the name of the list of leases.
    let wrong_type = Fault::Answer {
        code: 200,
        headers: vec![("content-type".into(), MEDIA_TYPE.into())],
        body: envelope("v1", "PodList", &message(1, &[text(2, "1")])).into(),
    };
    [
        (THROTTLES, all(Fault::throttle(seconds))),
        ("server error", all(Fault::status(503))),
        ("its storage is initializing", leases(Fault::status(500))),
        ("leases are forbidden", leases(Fault::status(403))),
        ("leases are not found", leases(Fault::status(404))),
        ("nodes are forbidden", nodes(Fault::status(403))),
        ("nodes fail", nodes(Fault::status(500))),
        ("leases stall", leases(Fault::Stall)),
        ("all stalls", all(Fault::Stall)),
        ("connections are reset", all(Fault::CloseBefore)),
        (
            "connections are refused",
            InjectedFault::Network(Network::Refused),
        ),
        (
            "connections are silent",
            InjectedFault::Network(Network::Silent),
        ),
        ("answers are slow", all(Fault::Slow { bytes: 16, pause })),
        ("leases are truncated", leases(Fault::Truncate)),
        ("leases are garbage", leases(Fault::Garbage)),
        ("leases are oversized", leases(Fault::Oversized(33 << 20))),
        (
            "leases are endless",
            leases(Fault::Endless { bytes: 4096, pause }),
        ),
        ("leases are of another kind", leases(wrong_type)),
        (
            "connections are cut",
            InjectedFault::Moment(MemoryApi::cut_connections),
        ),
    ]
}

/// Something begins that keeps the watchdog from getting answers.
fn begin(shoot: &SoakShoot, what: impl Into<String>) {
    shoot.happens(what, |record, _| record.api.begin());
}

/// It ends; it has consequences for so long.
fn end(shoot: &SoakShoot, consequences: Duration) {
    shoot.happens("answers can be had again", |record, now| {
        record.api.end(now + consequences + CONSEQUENCES)
    });
}

/// The API server fails for a while, in one of many ways.
pub(super) async fn api_fault(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let time = actor.seconds(1.0..=8.0);
    let seconds = actor.rng.random_range(1..=3);
    let (name, injected) = actor.pick(injected_faults(seconds));
    if let InjectedFault::Moment(strike) = injected {
        shoot.note(name);
        strike(&shoot.api);
        return Ok(());
    }
    begin(shoot, name);
    injected.during(&shoot.api, actor.pause(time)).await;
    let throttled = if name == THROTTLES { seconds } else { 0 };
    end(shoot, Duration::from_secs(throttled.into()));
    Ok(())
}

/// The API server is away for a while, for its nodes too.
pub(super) async fn api_away(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    // It answers and says that it cannot serve, or nobody listens.
    let ways = [
        (
            "503",
            InjectedFault::Answers(When::any(), Fault::status(503)),
        ),
        ("refused", InjectedFault::Network(Network::Refused)),
    ];
    let (name, injected) = actor.pick(ways);
    // 25 to 60 s with a grace of 40 s.
    let time = actor.seconds(5.0..=12.0);
    begin(shoot, format!("the API server is about to be away: {name}"));
    be_away(shoot, injected, time).await;
    end(shoot, Duration::ZERO);
    // All nodes can renew before it is away again: for one that flaps nothing is promised.
    actor.pause(2 * BEAT).await;
    Ok(())
}

/// The token is renewed: the Secret is written, and the old token dies before or after that.
pub(super) async fn rotation(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let gap = if actor.chance(0.5) {
        actor.seconds(0.1..=3.0)
    } else {
        Duration::ZERO
    };
    let early = actor.chance(0.5);
    begin(shoot, format!("the token is rotated, {gap:?} apart"));
    let old = shoot.record().token.clone();
    if early {
        shoot.api.access().revoke(&old);
        actor.pause(gap).await;
    }
    let done = shoot.write_token(shoot.grant_token());
    if !early {
        actor.pause(gap).await;
        shoot.api.access().revoke(&old);
    }
    end(shoot, Duration::ZERO);
    done
}

/// The Secret is gone or useless for a while.
pub(super) async fn bad_secret(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let good = shoot.kubeconfig();
    let exec =
        "    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false}\n    x:";
    let what = actor.pick([
        "gone",
        "empty",
        "nonsense",
        "an exec plugin",
        "another server",
        "no key",
    ]);
    begin(shoot, format!("the Secret is bad: {what}"));
    let spoil = || -> Result<()> {
        let (seed, namespace) = (&shoot.seed, &shoot.namespace);
        match what {
            "gone" => drop(seed.delete("secrets", namespace, PROBE_SECRET)?),
            "empty" => shoot.write_secret("")?,
            "nonsense" => shoot.write_secret("{neither: YAML nor")?,
            "an exec plugin" => shoot.write_secret(&good.replace("    token:", exec))?,
            "another server" => {
                shoot.write_secret(&good.replace("https://127.0.0.1:", "https://127.0.0.2:"))?
            }
            _ => {
                let data = json!({"data": {"kubeconfig": null, "other": "eA=="}});
                drop(seed.patch("secrets", namespace, PROBE_SECRET, &data)?);
            }
        }
        Ok(())
    };
    let written = spoil();
    actor.wait(0.5..=6.0).await;
    let restored = shoot.write_secret(&good);
    end(shoot, Duration::ZERO);
    written.and(restored)
}
