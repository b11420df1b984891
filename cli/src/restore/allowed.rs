//! Shoots that may be restored: by what the prober says, or with `--force` by a pause.

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use prober::{ShootView, Standing, describe_verdict};
use prober_core::config::Config;
use prober_core::options::{GARDEN, Overrides, PAUSE, ResolvedOptions};

use crate::ask::{REQUEST_TIMEOUT, ask, within};
use crate::commands::SeedArgs;

/// Reason why a shoot is not to be restored, by what the prober says now.
pub(super) async fn refused(args: &SeedArgs, namespace: &str) -> anyhow::Result<Option<String>> {
    Ok(refusal(ask(args).await?.shoot(namespace)?))
}

/// All shoots in which something is held down, or may be, by what the prober says. Each with the
/// reason why it is not to be restored.
pub(super) async fn held_down(args: &SeedArgs) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let status = ask(args).await?.whole.status;
    if let Some(unknown) = status.unknown {
        bail!("the prober does not know the seed's {unknown} at present");
    }
    let is_held = |shoot: &&ShootView| !shoot.held_down().is_empty() || shoot.is_unknown();
    let held = status.shoots.iter().filter(is_held);
    Ok(held
        .map(|shoot| (shoot.namespace.clone(), refusal(shoot)))
        .collect())
}

/// Reason why the prober does not let a shoot be restored. Not knowing is no reason to bring
/// anything back.
fn refusal(shoot: &ShootView) -> Option<String> {
    if let Some(owner) = &shoot.owner
        && owner.standing != Standing::Ours
    {
        return Some(format!("it is not known to be ours: {}", owner.sentence()));
    }
    let Some(probe) = &shoot.probe else {
        return Some(format!(
            "the prober does not probe it: {}",
            shoot.describe_state()
        ));
    };
    match (&probe.failure, shoot.verdict()) {
        _ if probe.overdue => Some("the prober's probe of it is overdue".to_owned()),
        (Some(failure), _) => Some(format!("the prober cannot probe it ({})", failure.message)),
        (None, None) => Some("the prober has not probed it yet".to_owned()),
        (None, Some(verdict)) => (!verdict.is_up()).then(|| describe_verdict(verdict)),
    }
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
    ensure!(own.is_some(), "the seed has no namespace {namespace}");
    let options = ResolvedOptions::resolve(config, garden.as_ref(), own.as_ref());
    ensure!(
        options.pause.value,
        "{namespace} is not paused, so that the prober would scale down again what comes back. First:\n  \
         kubectl annotate --overwrite namespace {namespace} {PAUSE}=true"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_a_verdict_of_up_that_is_fresh_and_ours_lets_a_shoot_be_restored() {
        let nobody = Value::Null;
        let elsewhere = json!({ "standing": "elsewhere" });
        for (owner, overdue, verdict, expected) in [
            (&nobody, false, "scale_up", None),
            (&nobody, false, "scale_up_held_down", None),
            (&nobody, false, "hold_undecided", Some("hold_undecided: ")),
            (
                &nobody,
                true,
                "scale_up",
                Some("the prober's probe of it is overdue"),
            ),
            (&nobody, false, "", Some("the prober has not probed it yet")),
            (
                &elsewhere,
                false,
                "scale_up",
                Some("it is not known to be ours: "),
            ),
        ] {
            let found = json!({ "secondsAgo": 1, "verdict": verdict, "candidates": 5, "expired": 0, "undecided": 0, "skewed": 0,
                                "fraction": 0.6, "expiredAfterSeconds": 15.0, "unknownAfterSeconds": 40.0, "excluded": {} });
            let found = Some(found).filter(|_| !verdict.is_empty());
            let probe = json!({ "nextProbeInSeconds": 1, "overdue": overdue, "found": found });
            let shoot = json!({ "namespace": "shoot--a--b", "state": "probed", "because": "", "settings": [], "dependents": [],
                                "owner": owner, "probe": probe });
            let refused = refusal(&serde_json::from_value(shoot).expect("a shoot"));
            let begin = refused
                .as_deref()
                .zip(expected)
                .map(|(refused, begin)| refused.starts_with(begin));
            assert!(
                begin.unwrap_or(refused.is_none() && expected.is_none()),
                "{expected:?}: {refused:?}"
            );
        }
    }
}
