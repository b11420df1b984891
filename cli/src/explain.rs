//! `explain`: one shoot, as it is and why.

use prober::{ShootEntry, ShownDependent, lease_cells};
use serde::Serialize;

use crate::ask::{Answer, ask};
use crate::commands::ExplainArgs;
use crate::output::{self, count, lines, table};
use crate::status;

#[derive(Serialize)]
struct Explanation {
    #[serde(flatten)]
    shoot: ShootEntry,
    /// The prober and the seed.
    seed: Answer,
}

pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<()> {
    let ExplainArgs { namespace, status } = args;
    let mut seed = ask(&status.seed).await?;
    let shoot = seed.shoot(&namespace)?.clone();
    let all = &mut seed.whole.status;
    all.shoots.clear();
    all.outages.retain(|outage| outage.namespace == namespace);
    let explanation = Explanation { shoot, seed };
    output::write(&explanation, status.output, || explanation.text())
}

impl Explanation {
    fn text(&self) -> String {
        let Self { shoot, seed } = self;
        let mut text = lines(&seed.facts(Some(&shoot.namespace)));
        text.push('\n');
        text.push_str(&lines(&shoot.facts()));
        let rows = shoot.dependents.iter().map(row).collect();
        let dependents = table(["RESOURCE", "REPLICAS", "READY", "WHY"], rows);
        text.push_str(&format!("\n{dependents}"));
        let found = shoot.probe.as_ref().and_then(|probe| probe.found.as_ref());
        let leases = found.iter().flat_map(|found| &found.leases).map(|lease| {
            let (_, [node, age, state, clock]) = lease_cells(lease);
            [node, age, state, clock]
        });
        let leases: Vec<_> = leases.collect();
        if !leases.is_empty() {
            let leases = table(["NODE", "AGE", "STATE", "CLOCK"], leases);
            text.push_str(&format!("\n{leases}"));
        }
        text.push_str(&status::outages(seed));
        text
    }
}

fn row(dependent: &ShownDependent) -> [String; 4] {
    let (_, why) = dependent.why();
    [
        dependent.resource.to_string(),
        count(dependent.replicas),
        count(dependent.ready),
        why,
    ]
}
