//! What is scaled: ignored, missing, already touched by somebody else.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::seed::{IGNORE, MARKER, MEMORY};
use testbed::shoot::{CA, KCM, MCM, PATIENCE};
use testbed::{ShootPlan, scenario};

use crate::{DOWN, UP, healthy, shoot};

fn deployments(deployments: &[(&'static str, i64)]) -> ShootPlan {
    ShootPlan { deployments: deployments.to_vec(), ..ShootPlan::default() }
}

#[test]
fn an_ignored_resource_is_not_scaled_in_either_direction() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "ignored", ShootPlan::default()).await?;
        shoot.annotate(KCM, IGNORE, Some("true")).await?;
        shoot.annotate(CA, IGNORE, Some("foo")).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(MCM, "1"), (CA, "1")]).await?;
        shoot.after_probes(2).await?;
        ensure!(shoot.dependent(KCM).await?.is_free_at(2), "{}", shoot.story());
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn whoever_takes_one_down_by_hand_keeps_it_down_with_ignore_scaling() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "by-hand", ShootPlan::default()).await?;
        shoot.annotate(MCM, IGNORE, Some("true")).await?;
        shoot.scale(MCM, 0).await?;
        shoot
            .eventually("its pods are gone", PATIENCE, async || {
                let shown = shoot.history();
                let last = shown.iter().rfind(|entry| entry.name == MCM).and_then(|entry| entry.state.as_ref());
                ensure!(last.is_some_and(|state| state.replicas == 0 && state.ready == 0));
                Ok(())
            })
            .await?;
        let begin = shoot.history().len();
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;
        shoot.annotate(MCM, IGNORE, None).await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn an_ignored_resource_that_was_held_down_loses_the_marker_and_stays() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "ignored-held", ShootPlan::default()).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        shoot.annotate(KCM, IGNORE, Some("1")).await?;
        shoot
            .eventually("the marker is gone", PATIENCE, async || {
                let state = shoot.dependent(KCM).await?;
                ensure!(state.marker.is_none() && state.replicas == 0 && state.memory.as_deref() == Some("2"), "{state}");
                Ok(())
            })
            .await?;
        shoot.annotate(KCM, IGNORE, None).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_missing_optional_resource_is_no_obstacle() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "no-autoscaler", deployments(&[(KCM, 1), (MCM, 1)])).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(KCM, "1"), (MCM, "1")]).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 1), (MCM, 1)]).await?;
        shoot.end().await
    })
}

#[test]
fn a_missing_mandatory_resource_stops_no_way_down_but_the_levels_above_it_on_the_way_up() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "no-machines", deployments(&[(KCM, 1), (CA, 1)])).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(KCM, "1"), (CA, "1")]).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 1)]).await?;
        shoot.after_probes(3).await?;
        ensure!(shoot.dependent(CA).await?.is_held_down("1"), "{}", shoot.story());
        shoot.deploy(MCM, 1).await?;
        shoot.free_at(&[(KCM, 1), (MCM, 1), (CA, 1)]).await?;
        shoot.end().await
    })
}

#[test]
fn a_resource_whose_writes_are_refused_stops_no_other_on_the_way_down() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "refused-write", ShootPlan::default()).await?;
        // An admission policy, as clusters have them: 422 for this namespace's machine-controller-manager.
        let admission = "/apis/admissionregistration.k8s.io/v1";
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "bed-hands-off"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"],
                }]},
                "validations": [{"expression": format!("object.metadata.name != '{MCM}'"), "reason": "Invalid"}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "bed-hands-off"},
            "spec": {
                "policyName": "bed-hands-off", "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shoot.namespace}}},
            },
        });
        let api = shoot.seed.api();
        api.create(&format!("{admission}/validatingadmissionpolicies"), &policy).await?;
        api.create(&format!("{admission}/validatingadmissionpolicybindings"), &binding).await?;
        shoot
            .eventually("the policy is at work", PATIENCE, async || {
                let refused = shoot.annotate(MCM, "bed.example.org/try", Some("")).await.is_err();
                ensure!(refused, "not yet");
                Ok(())
            })
            .await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(KCM, "2"), (CA, "1")]).await?;
        ensure!(shoot.dependent(MCM).await?.replicas == 1, "{}", shoot.story());
        api.delete(&format!("{admission}/validatingadmissionpolicybindings/bed-hands-off")).await?;
        api.delete(&format!("{admission}/validatingadmissionpolicies/bed-hands-off")).await?;
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_leftover_marker_goes_and_a_memory_alone_stays() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "leftover", ShootPlan::default()).await?;
        shoot.annotate(MCM, MEMORY, Some("7")).await?;
        shoot.patch(KCM, json!({"metadata": {"annotations": {MARKER: "", MEMORY: "5"}}})).await?;
        shoot.free_at(&[(KCM, 2)]).await?;
        shoot.after_probes(2).await?;
        let machines = shoot.dependent(MCM).await?;
        ensure!(machines.replicas == 1 && machines.memory.as_deref() == Some("7"), "{}", shoot.story());
        shoot.end().await
    })
}

#[test]
fn garbage_in_a_memory_never_blocks_the_way_back() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "garbage-memory", deployments(&[(KCM, 3), (MCM, 3), (CA, 3)])).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(KCM, "3"), (MCM, "3"), (CA, "3")]).await?;
        // The next flow is the one up: all three are at 0 and marked.
        shoot.annotate(KCM, MEMORY, Some("foo")).await?;
        shoot.annotate(MCM, MEMORY, Some("0")).await?;
        shoot.annotate(CA, MEMORY, Some("+2")).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 1), (MCM, 1), (CA, 2)]).await?;
        shoot.end().await
    })
}

#[test]
fn what_is_scaled_up_by_hand_in_an_outage_goes_down_again_and_keeps_its_memory() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "raised", ShootPlan::default()).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        shoot.scale(KCM, 1).await?;
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn what_was_at_zero_before_the_outage_is_not_remembered_as_zero() -> Result<()> {
    scenario(async |bed| {
        let shoot = shoot(bed, "zero-before", deployments(&[(KCM, 1), (MCM, 0), (CA, 2)])).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(KCM, "1"), (CA, "2")]).await?;
        let machines = shoot.dependent(MCM).await?;
        ensure!(machines.replicas == 0 || machines.memory.as_deref() == Some("1"), "{}", shoot.story());
        ensure!(machines.memory.as_deref() != Some("0"), "{}", shoot.story());
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 1), (MCM, 1), (CA, 2)]).await?;
        shoot.end().await
    })
}

#[test]
fn a_memory_written_without_its_scale_down_is_kept_and_the_scale_down_made_up_for() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "half-written", ShootPlan::default()).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        // As a writer leaves it that died between the two: it had remembered 3.
        shoot.patch(MCM, json!({"spec": {"replicas": 1}, "metadata": {"annotations": {MEMORY: "3"}}})).await?;
        shoot.held_down(&[(MCM, "3")]).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 2), (MCM, 3), (CA, 1)]).await?;
        shoot.end().await
    })
}
