//! The way to the shoot's API server, and the credentials for it.

use std::time::Duration;

use anyhow::Result;
use testbed::gardener::PROBE_SECRET;

use super::actor::Actor;
use super::be_away;
use super::injected_fault::InjectedFault;
use crate::pace::BEAT;
use crate::shoot::SoakShoot;

/// After a fault the next probe is under way within an interval of 3 s with its jitter, or a retry:
/// later by the second that a throttling API server has asked for.
const CONSEQUENCES: Duration = Duration::from_millis(1500);

/// What an API server in memory does to the probes.
const FAULTS: [&str; 16] = [
    "* *: throttles 1",
    "* *: 503",
    "list leases: 500",
    "list leases: 403",
    "list leases: 404",
    "list nodes: 403",
    "list nodes: 500",
    "list leases: stalls",
    "* *: stalls",
    "* *: closes",
    "refused",
    "silent",
    "* *: slow",
    "list leases: truncated",
    "list leases: garbage",
    "cut",
];

/// Something begins that keeps the watchdog from getting answers.
fn begin(shoot: &SoakShoot, what: impl Into<String>) {
    shoot.happens(what, |record, _| record.api.begin());
}

/// It ends.
fn end(shoot: &SoakShoot) {
    shoot.happens("answers can be had again", |record, now| {
        record.api.end(now + CONSEQUENCES)
    });
}

/// The API server fails for a while, in one of many ways.
pub(super) async fn api_fault(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let (fault, time) = (actor.pick(FAULTS), actor.seconds(1.0..=8.0));
    begin(shoot, fault);
    let injected = InjectedFault::named(fault)?;
    injected.during(&shoot.api, actor.pause(time)).await;
    end(shoot);
    Ok(())
}

/// The API server is away for a while, for its nodes too.
pub(super) async fn api_away(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    // It answers and says that it cannot serve, or nobody listens.
    let way = actor.pick(["* *: 503", "refused"]);
    // 25 to 60 s with a grace of 40 s.
    let time = actor.seconds(5.0..=12.0);
    begin(shoot, format!("the API server is about to be away: {way}"));
    be_away(shoot, InjectedFault::named(way)?, time).await;
    end(shoot);
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
    end(shoot);
    done
}

/// The Secret is gone or useless for a while.
pub(super) async fn bad_secret(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let good = shoot.kubeconfig();
    let exec =
        "    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false}\n    x:";
    let elsewhere = good.replace("https://127.0.0.1:", "https://127.0.0.2:");
    let (what, bad) = actor.pick([
        ("gone", None),
        ("empty", Some(String::new())),
        ("nonsense", Some("{neither: YAML nor".to_owned())),
        ("an exec plugin", Some(good.replace("    token:", exec))),
        ("another server", Some(elsewhere)),
    ]);
    begin(shoot, format!("the Secret is bad: {what}"));
    let gone = || shoot.seed.delete("secrets", &shoot.namespace, PROBE_SECRET);
    let written = match bad {
        Some(bad) => shoot.write_secret(&bad),
        None => gone().map(drop).map_err(Into::into),
    };
    actor.wait(0.5..=6.0).await;
    let restored = shoot.write_secret(&good);
    end(shoot);
    written.and(restored)
}
