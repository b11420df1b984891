//! `explain`: one shoot, as it is and why.

use prober::{ShootView, lease_cells};
use serde::Serialize;

use crate::ask::{Answer, ask};
use crate::commands::ExplainArgs;
use crate::output::{self, table};
use crate::status::{head, lines, outages};

#[derive(Serialize)]
struct Explanation {
    #[serde(flatten)]
    shoot: ShootView,
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
        let mut text = format!("{}\n{}", head(seed), lines(shoot.facts()));
        let leases = shoot.found().into_iter().flat_map(|found| &found.leases);
        let leases: Vec<_> = leases.map(|lease| lease_cells(lease).1).collect();
        if !leases.is_empty() {
            let leases = table(["NODE", "AGE", "STATE", "CLOCK"], leases);
            text += &format!("\n{leases}");
        }
        text + &outages(seed)
    }
}
