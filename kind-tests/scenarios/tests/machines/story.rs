//! A scenario shown while it happens, for a person who watches: `make demo-real`.

use anyhow::Result;
use testbed::eventually;
use tokio::time::Instant;

use crate::journal::{FAILED, GONE, RUNNING, UNKNOWN};
use crate::world::MachineWorld;

/// Tells what happens in some shoots.
pub struct MachineStory<'a> {
    begin: Instant,
    shown: Vec<Shown<'a>>,
}

/// A shoot, and how much of it has been shown.
struct Shown<'a> {
    name: &'static str,
    world: &'a MachineWorld,
    steps: usize,
    /// Where its history begins, and how many writes of it have been shown.
    begin: usize,
    writes: usize,
}

impl<'a> MachineStory<'a> {
    /// Begins now; what was before is not shown.
    pub fn begin(worlds: impl IntoIterator<Item = (&'static str, &'a MachineWorld)>) -> Self {
        let shown = |(name, world): (&'static str, &'a MachineWorld)| Shown {
            name,
            world,
            steps: world.machines.steps().len(),
            begin: world.shoot.history().len(),
            writes: 0,
        };
        Self {
            begin: Instant::now(),
            shown: worlds.into_iter().map(shown).collect(),
        }
    }

    /// Tells what a person does.
    pub fn tell(&mut self, text: &str) {
        self.catch_up();
        println!("\n{:6.1} s  {text}", self.begin.elapsed().as_secs_f64());
    }

    /// Waits for a condition, and tells meanwhile.
    pub async fn until(
        &mut self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<()>,
    ) -> Result<()> {
        let waited = eventually(what, async || {
            self.catch_up();
            look().await
        });
        let Err(error) = waited.await else {
            return Ok(());
        };
        let mut whole = String::new();
        for shown in &self.shown {
            whole += &shown.world.story().await;
        }
        Err(error.context(whole))
    }

    /// Tells what has happened since it was last shown.
    fn catch_up(&mut self) {
        let mut lines = Vec::new();
        for shown in &mut self.shown {
            for step in shown.world.machines.steps().into_iter().skip(shown.steps) {
                shown.steps += 1;
                if let Some(meaning) = meaning(&step.phase) {
                    lines.push((step.at, shown.name, format!("{} {meaning}", step.machine)));
                }
            }
            let writes = shown.world.shoot.writes_since(shown.begin);
            for entry in writes.into_iter().skip(shown.writes) {
                shown.writes += 1;
                if let Some(state) = entry.state {
                    let text = format!("{} is scaled to {}", entry.name, state.replicas);
                    lines.push((entry.at, shown.name, text));
                }
            }
        }
        lines.sort_by_key(|(at, ..)| *at);
        for (at, name, text) in lines {
            println!(
                "{:6.1} s  {name:10} {text}",
                at.saturating_duration_since(self.begin).as_secs_f64()
            );
        }
    }
}

/// What it means that a Machine is in this phase.
fn meaning(phase: &str) -> Option<&'static str> {
    match phase {
        "new" => Some("is ordered"),
        "Pending" => Some("boots (Pending)"),
        RUNNING => Some("runs, its node is Ready (Running)"),
        UNKNOWN => Some("has a node that is not Ready (Unknown)"),
        FAILED => Some("is given up by machine-controller-manager (Failed)"),
        "Terminating" => Some("is deleted, and its VM with it (Terminating)"),
        GONE => Some("is gone"),
        _ => None,
    }
}
