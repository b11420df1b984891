//! Shoots that may be restored: by what the prober says, or with `--force` by a pause.

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use prober::{ProberStatus, ShootView, Standing, describe_verdict};
use prober_core::config::Config;
use prober_core::options::{GARDEN, Overrides, PAUSE, ResolvedOptions};

use crate::ask::{REQUEST_TIMEOUT, within};

/// All shoots in which something is held down, or may be, by what the prober says.
pub(super) fn held_down(status: ProberStatus) -> anyhow::Result<Vec<String>> {
    if let Some(unknown) = status.unknown {
        bail!("the prober does not know the seed's {unknown} at present");
    }
    let may_be_held = |shoot: &ShootView| !shoot.held_down().is_empty() || shoot.is_unknown();
    let held = status.shoots.into_iter().filter(may_be_held);
    Ok(held.map(|shoot| shoot.namespace).collect())
}

/// Fails unless the prober says that a shoot may be restored. Not knowing is no reason to bring
/// anything back.
pub(super) fn check_up(shoot: &ShootView) -> anyhow::Result<()> {
    let lost = shoot.owner.as_ref();
    let lost = lost.filter(|owner| owner.standing != Standing::Ours);
    let reason = match (lost, &shoot.probe, shoot.verdict()) {
        (Some(owner), ..) => format!("it is not known to be ours: {}", owner.sentence()),
        (_, None, _) => format!("the prober does not probe it: {}", shoot.describe_state()),
        (_, Some(probe), _) if probe.overdue => "the prober's probe of it is overdue".to_owned(),
        (.., Some(verdict)) if verdict.is_up() => return Ok(()),
        (.., Some(verdict)) => describe_verdict(verdict),
        (_, Some(probe), None) => match &probe.failure {
            Some(failure) => format!("the prober cannot probe it ({})", failure.message),
            None => "the prober has not probed it yet".to_owned(),
        },
    };
    bail!("{reason}; --force restores it all the same, while it is paused")
}

/// Fails unless the namespace exists, and a pause keeps the prober from scaling down again what
/// comes back.
pub(super) async fn check_paused(
    client: &Client,
    config: &Config,
    namespace: &str,
) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let overrides = async |name: &str| {
        let read = within(REQUEST_TIMEOUT, namespaces.get_opt(name)).await;
        let read = read.with_context(|| format!("the namespace {name} cannot be read"))?;
        anyhow::Ok(read.map(|read| Overrides::of(read.annotations())))
    };
    let (garden, own) = (overrides(GARDEN).await?, overrides(namespace).await?);
    ensure!(own.is_some(), "the seed has no such namespace");
    let options = ResolvedOptions::resolve(config, garden.as_ref(), own.as_ref());
    ensure!(
        options.pause.value,
        "it is not paused, so that the prober would scale down again what comes back. First:\n  \
         kubectl annotate --overwrite namespace {namespace} {PAUSE}=true"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_verdict_of_up_that_is_fresh_and_ours_lets_a_shoot_be_restored() {
        for (standing, overdue, verdict, expected) in [
            ("ours", false, "scale_up", None),
            ("ours", false, "scale_up_held_down", None),
            ("ours", false, "hold_undecided", Some("hold_undecided: ")),
            (
                "ours",
                true,
                "scale_up",
                Some("the prober's probe of it is overdue; "),
            ),
            (
                "ours",
                false,
                "",
                Some("the prober has not probed it yet; "),
            ),
            (
                "elsewhere",
                false,
                "scale_up",
                Some("it is not known to be ours: "),
            ),
        ] {
            let found = json!({ "secondsAgo": 1, "verdict": verdict, "candidates": 5, "expired": 0, "undecided": 0, "skewed": 0,
                                "fraction": 0.6, "expiredAfterSeconds": 15.0, "unknownAfterSeconds": 40.0, "excluded": {} });
            let found = Some(found).filter(|_| !verdict.is_empty());
            let probe = json!({ "overdue": overdue, "found": found });
            let shoot = json!({ "namespace": "shoot--a--b", "state": "probed", "settings": [], "dependents": [],
                                "owner": { "standing": standing }, "probe": probe });
            let shoot = serde_json::from_value(shoot).expect("a shoot");
            let refused = check_up(&shoot).err().map(|error| error.to_string());
            let begins = |begin| {
                refused
                    .as_deref()
                    .is_some_and(|refused| refused.starts_with(begin))
            };
            assert!(expected.map_or(refused.is_none(), begins), "{refused:?}");
        }
    }

    #[test]
    fn what_is_held_down_or_may_be_is_found_if_the_shoots_are_known() {
        let shoot = |namespace: &str, condition: &str| {
            let dependent = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "kcm", "condition": condition, "replicas": 0 });
            json!({ "namespace": namespace, "state": "probed", "settings": [], "dependents": [dependent] })
        };
        let shoots = json!([
            shoot("a", "held_down"),
            shoot("b", "at_zero"),
            shoot("c", "unknown")
        ]);
        let mut status = ProberStatus {
            shoots: serde_json::from_value(shoots).expect("shoots"),
            ..ProberStatus::default()
        };
        let found = held_down(status.clone()).expect("they are known");
        assert_eq!(found, ["a", "c"]);
        status.unknown = Some("Clusters".into());
        let error = held_down(status).expect_err("they are not known");
        let said = "the prober does not know the seed's Clusters at present";
        assert_eq!(error.to_string(), said);
    }
}
