//! `status`: every shoot of the seed.

use common::leader_election::RoleName;
use common::status::{TIMESTAMP, WholeStatus};
use prober::{Fact, ShootView};

use crate::ask::{Answer, ask};
use crate::commands::StatusArgs;
use crate::output::{self, table};

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<()> {
    let answer = ask(&args.seed).await?;
    output::write(&answer, args.output, || text(&answer))
}

fn text(answer: &Answer) -> String {
    let shoots = answer.whole.status.shoots.iter().map(cells).collect();
    let headings = ["NAMESPACE", "STATE", "MACHINES", "HELD DOWN", "NOTE"];
    let shoots = table(headings, shoots);
    format!("{}\n{shoots}{}", head(answer), outages(answer))
}

/// Says which prober answers, who leads, and what holds for all shoots.
pub(crate) fn head(answer: &Answer) -> String {
    let WholeStatus { process, status } = &answer.whole;
    let (by, version, role) = (&answer.answered_by, &process.version, &process.role);
    let how = role.role.into_str();
    let mut head = format!("Prober: {by} ({how}, version {version})\n");
    for problem in &answer.problems {
        head += &format!("Silent: {problem}\n");
    }
    if role.role == RoleName::Waiting {
        let leader = role.leader.as_deref().unwrap_or("nobody");
        head += &format!("Leader: {leader}\n");
    }
    head + &lines(status.facts())
}

/// A line for each fact.
pub(crate) fn lines(facts: Vec<Fact>) -> String {
    let lines = facts.into_iter().map(|fact| fact.text + "\n");
    lines.collect()
}

fn cells(shoot: &ShootView) -> [String; 5] {
    let held_down = shoot.held_down();
    let held_down = match held_down.is_empty() {
        false => held_down.join(", "),
        true if shoot.is_unknown() => "?".to_owned(),
        true => "-".to_owned(),
    };
    let machines = shoot.machines.map(|count| count.to_string());
    let notes = shoot.notes().into_iter().map(|fact| fact.text);
    [
        shoot.namespace.clone(),
        shoot.state.to_string(),
        machines.unwrap_or_else(|| "?".to_owned()),
        held_down,
        notes.collect::<Vec<_>>().join("; "),
    ]
}

/// The last outages.
pub(crate) fn outages(answer: &Answer) -> String {
    let (by, outages) = (&answer.answered_by, &answer.whole.status.outages);
    if outages.is_empty() {
        return format!("\nNo outage has ended since {by} began.\n");
    }
    let rows = outages.iter().map(|outage| {
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
                          "condition": "unknown" });
        let late = json!({ "overdue": true });
        let shoot = json!({ "namespace": "shoot--a--b", "state": "probed", "settings": [], "dependents": [kcm], "probe": late });
        let shoot = serde_json::from_value(shoot).expect("a shoot");
        let cells = cells(&shoot).concat();
        assert_eq!(
            cells,
            "shoot--a--bprobed??paused or not: the namespaces could not be read; its probe is overdue; Deployment/kcm: it could not be read"
        );
    }
}
