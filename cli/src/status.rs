//! `status`: every shoot of the seed.

use common::leader_election::{RoleName, RoleStatus};
use common::status::{TIMESTAMP, WholeStatus};
use prober::{Condition, Fact, ShootEntry, Standing, Tone, list};
use prober_core::options::Source;

use crate::ask::{Answer, ask};
use crate::commands::StatusArgs;
use crate::output::{self, lines, table};

/// Most outages that are shown to people; JSON and YAML have all.
const SHOWN: usize = 20;

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<()> {
    let answer = ask(&args.seed).await?;
    output::write(&answer, args.output, || text(&answer))
}

fn text(answer: &Answer) -> String {
    let shoots = &answer.whole.status.shoots;
    let shoots = if shoots.is_empty() {
        "No shoots found.\n".to_owned()
    } else {
        table(
            ["NAMESPACE", "STATE", "MACHINES", "HELD DOWN", "NOTE"],
            shoots.iter().map(cells).collect(),
        )
    };
    format!(
        "{}\n{shoots}{}",
        lines(&answer.facts(None)),
        outages(answer)
    )
}

impl Answer {
    /// Says first which prober answers, then who leads, and what holds for all shoots, or for one.
    pub(crate) fn facts(&self, shoot: Option<&str>) -> Vec<Fact> {
        let WholeStatus { process, status } = &self.whole;
        let RoleStatus { role, leader, .. } = &process.role;
        let (by, version) = (&self.answered_by, &process.version);
        let told = format!("{by} ({}, version {version})", role.into_str());
        let mut facts = vec![Fact::new(Tone::Soft, "Prober", told)];
        let problems = self.problems.iter();
        facts.extend(problems.map(|problem| Fact::new(Tone::Warn, "Silent", problem)));
        if *role == RoleName::Waiting {
            let leader = leader.as_deref().unwrap_or("nobody");
            facts.push(Fact::new(Tone::Warn, "Leader", leader));
        }
        if status.config_refused {
            let refused = "the file as it is now is refused, an earlier one is in force";
            facts.push(Fact::new(Tone::Warn, "Config", refused));
        }
        if let Some(unknown) = &status.unknown {
            let told = format!("{unknown}: nothing is concluded without them");
            facts.push(Fact::new(Tone::Bad, "Unknown", told));
        }
        for right in &status.missing_rights {
            let told = format!(
                "the right to {right} is missing: what needs it could not be scaled in an outage"
            );
            facts.push(Fact::new(Tone::Bad, "Rights", told));
        }
        if shoot.is_none() && !status.settings.is_empty() {
            facts.push(Fact::new(Tone::Warn, "Settings", list(&status.settings)));
        }
        facts
    }
}

fn cells(shoot: &ShootEntry) -> [String; 5] {
    let held_down = shoot.names(Condition::HeldDown);
    let is_known = shoot.names(Condition::Unknown).is_empty();
    let held_down = match held_down.is_empty() {
        false => held_down.join(", "),
        true if is_known => "-".to_owned(),
        true => "?".to_owned(),
    };
    let machines = shoot.machines.map(|count| count.to_string());
    [
        shoot.namespace.clone(),
        shoot.state.to_string(),
        machines.unwrap_or_else(|| "?".to_owned()),
        held_down,
        notes(shoot).join("; "),
    ]
}

fn notes(shoot: &ShootEntry) -> Vec<String> {
    let mut notes = Vec::new();
    if shoot.is_overdue() {
        notes.push("its probe is overdue".to_owned());
    }
    notes.extend(shoot.notes());
    if shoot.paused.is_none() {
        notes.push("paused or not: could not be read".to_owned());
    }
    if let Some(owner) = &shoot.owner
        && owner.standing != Standing::Ours
    {
        notes.push(format!("not known to be ours: {}", owner.sentence()));
    }
    for option in shoot.settings.iter().filter(|option| option.is_overruled()) {
        match (&*option.setting, &*option.value, option.from) {
            ("pause", "true", from) => notes.push(format!("paused ({})", from.into_str())),
            // What `garden` sets for all stands above.
            (_, _, Source::Namespace) => notes.push(option.to_string()),
            _ => {}
        }
    }
    for (what, condition) in [
        ("at 0, not by the watchdog", Condition::AtZero),
        ("ignore-scaling", Condition::Ignored),
        ("does not exist", Condition::Missing),
        ("could not be read", Condition::Unknown),
        ("cannot be scaled", Condition::Unscalable),
    ] {
        let names = shoot.names(condition);
        if !names.is_empty() {
            notes.push(format!("{what}: {}", names.join(", ")));
        }
    }
    notes
}

/// The last outages.
pub(crate) fn outages(answer: &Answer) -> String {
    let (by, outages) = (&answer.answered_by, &answer.whole.status.outages);
    if outages.is_empty() {
        return format!("\nNo outage since {by} began.\n");
    }
    let rows = outages.iter().take(SHOWN).map(|outage| {
        let began = outage.began.format(TIMESTAMP).to_string();
        [began, outage.namespace.clone(), outage.sentence()]
    });
    let table = table(["BEGAN", "NAMESPACE", "WHAT"], rows.collect());
    format!("\nThe last outages, as {by} has observed them:\n\n{table}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_known_is_not_shown_as_healthy() {
        let kcm = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "kcm",
                          "condition": "unknown", "because": "it could not be read" });
        let late = json!({ "nextProbeInSeconds": -60, "overdue": true });
        let shoot = json!({ "namespace": "shoot--a--b", "state": "probed", "because": "", "settings": [], "dependents": [kcm], "probe": late });
        let shoot = serde_json::from_value(shoot).expect("a shoot");
        let cells = cells(&shoot).concat();
        assert_eq!(
            cells,
            "shoot--a--bprobed??its probe is overdue; paused or not: could not be read; could not be read: kcm"
        );
    }
}
