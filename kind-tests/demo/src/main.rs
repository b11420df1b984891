//! The demo: an outage in which the leader dies, and its rescue, in about a minute and a half, with
//! the real binary.
//!
//! ```text
//!            ┌── world: a seed and three shoots in memory ──┐
//!  story ─steps──►       with kubelets, node lifecycle      ◄──TLS── the real dependency-watchdog, as two processes
//!    ▲       └──────────────────┬───────────────────────────┘
//!    └────────── scene ◄────────┘
//!    └─ what changed ─► record ─► screen
//!                         └─► claims, with a tally of requests ─► exit code
//! ```
//! Everything runs in real time and on loopback. Exit codes: 0 if every claim of the summary holds,
//! 1 if not, 130 if interrupted.

mod claims;
mod lifecycle;
mod probers;
mod record;
mod scene;
mod screen;
mod story;
mod tally;
mod world;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use tokio::signal::ctrl_c;
use tokio::time::{MissedTickBehavior, interval};

use probers::Probers;
use screen::Screen;
use story::DemoStory;
use tally::tally;
use world::DemoWorld;

/// Time between two steps of the story and two frames of the view.
const STEP: Duration = Duration::from_millis(100);
/// Exit code after an interruption: 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;
/// How much of a log's end is worth showing.
const TAIL_LINES: usize = 25;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let Some(binary) = std::env::args_os().nth(1) else {
        eprintln!("usage: demo PATH_TO_dependency-watchdog");
        return ExitCode::from(2);
    };
    let done = tokio::select! {
        held = show(Path::new(&binary)) => held,
        // What is dropped then ends the probers and removes their files.
        _ = ctrl_c() => return ExitCode::from(INTERRUPTED),
    };
    done.map_or_else(
        |error| {
            eprintln!("FAILED: {error:#}");
            ExitCode::FAILURE
        },
        |held| ExitCode::from(u8::from(!held)),
    )
}

/// Runs it, and shows the probers' logs unless every claim holds.
async fn show(binary: &Path) -> Result<bool> {
    let folder = tempfile::Builder::new()
        .prefix("dependency-watchdog-demo-")
        .tempdir()?;
    println!(
        "dependency-watchdog keeps a cluster's Services and machines alive when only the network to its nodes is broken.\n\
         Two replicas of it run, of which one leads. In this outage the leader is killed just before it would act.\n\
         This runs the real binary in real time, about 90 seconds, against Kubernetes APIs in memory.\n\
         Settings are Gardener's and Kubernetes' own, shortened to fit: {}.\n\
         Logs: {} (kept if a check fails)\n",
        probers::SHORTENED,
        folder.path().display()
    );
    let held = run(binary, folder.path()).await;
    if !matches!(held, Ok(true)) {
        // From here on the folder is the reader's.
        for log in probers::logs(&folder.keep()) {
            println!(
                "\nThe end of {} (kept):\n{}",
                log.display(),
                testbed::log::tail(&log, TAIL_LINES, "")
            );
        }
    }
    held
}

/// Builds the world, goes through the story until it is over, and prints the claims. Whether all
/// hold.
async fn run(binary: &Path, folder: &Path) -> Result<bool> {
    let mut world = DemoWorld::build().await?;
    let mut probers = Probers::start(binary, folder, &world.seed)?;
    let (mut story, mut screen) = (DemoStory::new(world.scene()), Screen::open());
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !story.is_over() {
        steps.tick().await;
        probers.check()?;
        story.step(&mut world, &mut probers)?;
        print!("{}", screen.show(&story.record, &story.scene));
    }
    let DemoStory { mut record, scene } = story;
    if let Some(code) = probers.end(record.word("other")).await {
        record.note("exit code", code.into());
    }
    tally(&mut record, &world, &scene);
    let claims = claims::claims(&record);
    print!("{}", claims::summary(&claims));
    Ok(claims.iter().all(|(holds, _)| *holds))
}
