//! What is scaled: what operators ignore, what is refused, what others write.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::seed::{IGNORE, MEMORY};
use testbed::shoot::{CA, KCM, MCM, PATIENCE};
use testbed::{ShootPlan, scenario};

use crate::{DOWN, UP, end_of_outage, healthy};

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

        // What is held down already loses the marker, keeps its memory and stays, also when the outage is over.
        shoot.annotate(KCM, IGNORE, None).await?;
        shoot.held_down(&DOWN).await?;
        shoot.annotate(KCM, IGNORE, Some("1")).await?;
        let stays = async || {
            let state = shoot.dependent(KCM).await?;
            ensure!(state.marker.is_none() && state.replicas == 0 && state.memory.as_deref() == Some("2"), "{state}");
            anyhow::Ok(())
        };
        shoot.eventually("the marker is gone", PATIENCE, stays).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(MCM, 1), (CA, 1)]).await?;
        shoot.after_probes(2).await?;
        stays().await?;
        shoot.annotate(KCM, IGNORE, None).await?;
        shoot.free_at(&UP).await?;
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
            .eventually("the policy is in force", PATIENCE, async || {
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
        end_of_outage(shoot).await
    })
}

#[test]
fn what_others_write_in_an_outage_costs_neither_protection_nor_a_good_memory_nor_the_way_back() -> Result<()> {
    scenario(async |bed| {
        let plan = ShootPlan { deployments: vec![(KCM, 3), (MCM, 3), (CA, 3)], ..ShootPlan::default() };
        let shoot = healthy(bed, "others-write", plan).await?;
        let down = [(KCM, "3"), (MCM, "3"), (CA, "3")];
        shoot.nodes.cut_all();
        shoot.held_down(&down).await?;
        shoot.scale(KCM, 1).await?;
        shoot.held_down(&down).await?;
        // As a writer leaves it that died between the two: it had remembered 5.
        shoot.patch(MCM, json!({"spec": {"replicas": 1}, "metadata": {"annotations": {MEMORY: "5"}}})).await?;
        shoot.held_down(&[(MCM, "5")]).await?;
        // Only the first of these is garbage.
        shoot.annotate(KCM, MEMORY, Some("foo")).await?;
        shoot.annotate(CA, MEMORY, Some("+2")).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 1), (MCM, 5), (CA, 2)]).await?;
        shoot.end().await
    })
}
