//! What happens, and what is said, when a right that Gardener grants (rules 81 to 84) is taken
//! away. docs/security.md has the table.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::gardener::{seed_access, shoot_access};
use testbed::objects::{items, path};
use testbed::shoot::KCM;
use testbed::{KubeApi, PATIENCE, scenario};

use crate::{QUICK, USUAL, alone, logs, shows};

/// Takes these away from the roles of these manifests, each a resource and a verb.
pub async fn strip(api: &KubeApi, granted: &[Value], taken: &[&str]) -> Result<()> {
    for role in granted.iter().filter(|object| object["rules"].is_array()) {
        let rules = without(&role["rules"], taken);
        api.replace(&path(role)?, "/rules", &rules).await?;
    }
    Ok(())
}

fn without(rules: &Value, taken: &[&str]) -> Value {
    let mut left = Vec::new();
    for rule in items(rules) {
        for resource in items(&rule["resources"]).filter_map(Value::as_str) {
            let verbs = items(&rule["verbs"]).filter_map(Value::as_str);
            let kept = |verb: &&str| !taken.contains(&format!("{resource} {verb}").as_str());
            let verbs: Vec<&str> = verbs.filter(kept).collect();
            let mut rule = rule.clone();
            (rule["verbs"], rule["resources"]) = (json!(verbs), json!([resource]));
            left.extend((!verbs.is_empty()).then_some(rule));
        }
    }
    left.into()
}

#[test]
fn lost_rights_are_told_and_used_again() -> Result<()> {
    scenario(async |bed| {
        let (shoot, mut prober) = alone(bed, "rights", &QUICK).await?;
        let (seed, plane) = (shoot.seed.clone(), shoot.plane.clone());
        let (on_seed, on_shoot) = (seed_access(), shoot_access());
        let on_seed = async |taken: &[&str]| strip(seed.api(), &on_seed, taken).await;
        let on_shoot = async |taken: &[&str]| strip(plane.api(), &on_shoot, taken).await;
        let log = prober.log_file().to_owned();
        let counted = async |series: &str| shows(&log, series, 1.0..).await;
        let begin = shoot.history().len();

        // The shoot: leases, then nodes, which are asked for in an outage only. What is not known
        // is no outage.
        on_shoot(&["leases list"]).await?;
        counted("dwd_probes_total{stage=\"leases\",result=\"forbidden\"}").await?;
        shoot.nodes.cut_all();
        on_seed(&["deployments patch"]).await?;
        on_shoot(&["nodes list"]).await?;
        counted("dwd_probes_total{stage=\"nodes\",result=\"forbidden\"}").await?;

        // The seed: writes.
        on_shoot(&[]).await?;
        counted(&format!(
            "dwd_scale_operations_total{{direction=\"down\",kind=\"Deployment\",name=\"{KCM}\",result=\"forbidden\"}}"
        ))
        .await?;
        let cannot = "cannot patch resource";
        logs(&prober, "resource cannot be scaled", cannot).await?;
        shoot.untouched_since(begin)?;
        on_seed(&[]).await?;
        shoot.held_down(&USUAL).await?;

        // Events: what is done does not depend on them.
        on_seed(&["events create", "events patch"]).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&USUAL).await?;
        counted("dwd_events_lost_total").await?;
        logs(&prober, "Event could not be written", "is forbidden").await?;

        // The Lease: whoever cannot renew it ends.
        on_seed(&["leases update"]).await?;
        let status = prober.end(PATIENCE).await?;
        ensure!(status.code() == Some(1), "{status}\n{}", prober.tail(5));
        let cannot = "cannot update resource";
        logs(&prober, "Lease could not be renewed", cannot).await?;
        Ok(())
    })
}
