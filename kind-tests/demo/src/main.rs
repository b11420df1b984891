//! The demo: an outage in which the leader dies, and its rescue, in about a minute and a half, with
//! the real binary.
//!
//! ```text
//!            ┌──── world: a seed and two shoots in memory ────┐
//!  story ─steps──►       with kubelets, node lifecycle        ◄──TLS── the real dependency-watchdog, as two processes
//!    ▲       └──────────────────┬─────────────────────────────┘
//!    └────────── scene ◄────────┘
//!    └─ what changed ─► record ─► what is printed
//!                         └─► claims, with a tally of requests ─► exit code
//! ```
//! Everything runs in real time and on loopback. The exit code is 0 if every claim of the summary
//! holds, and 1 if not.

mod claims;
mod record;
mod scene;
mod story;
mod tally;
mod world;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::{MissedTickBehavior, interval};

use story::DemoStory;
use world::DemoWorld;

/// Time between two steps of the story.
const STEP: Duration = Duration::from_millis(100);

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode> {
    let binary = std::env::args_os().nth(1);
    let binary = binary.context("usage: demo PATH_TO_dependency-watchdog")?;
    println!(
        "dependency-watchdog keeps a cluster's Services and machines alive when only the network to its nodes is broken.\n\
         Two replicas of it run, of which one leads. In this outage the leader is killed just before it would act.\n\
         This runs the real binary in real time, about 90 seconds, against Kubernetes APIs in memory.\n\
         Settings are Gardener's and Kubernetes' own, shortened to fit: {}.\n",
        world::SHORTENED
    );
    let mut world = DemoWorld::build(Path::new(&binary)).await?;
    let mut story = DemoStory::new(world.scene());
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !story.is_over() {
        steps.tick().await;
        story.step(&mut world);
    }
    let DemoStory { mut record, scene } = story;
    if let Some(code) = world.end(record.word("other")).await {
        record.note("exit code", code.into());
    }
    tally::tally(&mut record, &world, &scene);
    let claims = claims::claims(&record);
    print!("{}", claims::summary(&claims));
    let held = claims.iter().all(|(holds, _)| *holds);
    if !held {
        world.print_logs();
    }
    Ok(ExitCode::from(u8::from(!held)))
}
