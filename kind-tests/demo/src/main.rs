//! The demo: an outage in which the leader dies, and its rescue, in about a minute and a half, with the real binary.
//!
//! ```text
//!            ┌── world: a seed and three shoots in memory ──┐
//!  story ──cues──►       with kubelets, node lifecycle      ◄──TLS── the real dependency-watchdog, as two processes
//!    ▲       └──────────────────┬───────────────────────────┘
//!    └────────── scene ◄────────┘
//!    └─ what changed ─► record ─► view ─► terminal, or plain lines ─► pictures
//!                         └─► claims, with a tally of requests ─► exit code
//! ```
//! Everything runs in real time and on loopback. Exit codes: 0 if every claim of the summary holds, 1 if not, 130 if interrupted.

mod claims;
mod lifecycle;
mod pictures;
mod probers;
mod record;
mod scene;
mod screen;
mod story;
mod tally;
mod view;
mod world;

use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use probers::Probers;
use screen::{Screen, say};
use story::Story;
use tally::Tally;
use world::World;

/// Time between two steps of the story and two frames of the view.
const STEP: Duration = Duration::from_millis(100);
/// Exit code after an interruption: 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;
/// How wide the summary is printed.
const WIDTH: usize = 100;
/// How much of a log's end is worth showing.
const TAIL_LINES: usize = 25;

/// How a play ends.
enum Ending {
    Played,
    Interrupted,
    /// A prober ended by itself.
    Abandoned(&'static str, ExitStatus),
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let done = match words.as_slice() {
        [binary] => play(binary).await.context("the demo itself failed"),
        [draw, folder] if draw.as_os_str() == "--draw" => draw_pictures(folder).context("cannot draw"),
        _ => {
            eprintln!("usage: demo PATH_TO_dependency-watchdog\n       demo --draw FOLDER < WHAT_IT_HAS_PRINTED");
            return ExitCode::from(2);
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::FAILURE
    })
}

/// Draws the pictures of the docs, from what an earlier run has printed.
fn draw_pictures(folder: &Path) -> Result<ExitCode> {
    let printed = std::io::read_to_string(std::io::stdin()).context("cannot read it")?;
    pictures::draw(folder, &printed)?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the stage, plays, and tells how it went.
async fn play(binary: &Path) -> Result<ExitCode> {
    anyhow::ensure!(
        binary.is_file(),
        "{} is no file; build it with: cargo build --profile demo -p dependency-watchdog",
        binary.display()
    );
    let interrupted = interruption()?;
    let folder = tempfile::Builder::new().prefix("dependency-watchdog-demo-").tempdir().context("no temporary folder")?;
    let mut world = World::build().await?;
    let mut probers = Probers::start(binary, folder.path(), &world)?;
    say(&format!(
        "dependency-watchdog keeps a cluster's machines from being replaced when only the network to them is broken.\n\
         Two replicas of it run, of which one leads. In this outage the leader is killed just before it would act.\n\
         This runs the real binary in real time, about 90 seconds, against Kubernetes APIs in memory.\n\
         Settings are Gardener's and Kubernetes' own, shortened to fit: {}.\n\
         Logs: {} (kept if a check fails)\n\n",
        probers::SHORTENED,
        folder.path().display()
    ));
    let mut screen = Screen::open();
    let mut story = Story::new(world.scene());
    let ending = tokio::select! {
        () = interrupted => Ok(Ending::Interrupted),
        ending = perform(&mut world, &mut probers, &mut story, &mut screen) => ending,
    };
    screen.close(&story);
    let codes = probers.end().await;
    let code = match ending? {
        Ending::Interrupted => {
            say("Interrupted; everything is ended.\n");
            ExitCode::from(INTERRUPTED)
        }
        Ending::Abandoned(name, status) => {
            say(&format!("\nFAILED: {name} ended by itself, with {status}.\n"));
            ExitCode::FAILURE
        }
        Ending::Played => {
            let exit_code = story.record.other().and_then(|other| codes.get(other).copied());
            sum_up(&story, &Tally::of(&world, &story.record, exit_code))
        }
    };
    if code == ExitCode::FAILURE {
        for log in Probers::logs(folder.path()) {
            say(&format!("\nThe end of {} (kept):\n", log.display()));
            for line in testbed::log::tail(&log, TAIL_LINES, "").lines() {
                say(&format!("  {line}\n"));
            }
        }
        // From here on the folder is the reader's.
        let _ = folder.keep();
    }
    world.end().await;
    Ok(code)
}

/// Steps through the play until it is over or a prober ends it.
async fn perform(world: &mut World, probers: &mut Probers, story: &mut Story, screen: &mut Screen) -> Result<Ending> {
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !story.is_over() {
        steps.tick().await;
        if let Some((name, status)) = probers.ended()? {
            return Ok(Ending::Abandoned(name, status));
        }
        // The controllers act first: what the probers did since the last step may have come too late.
        world.step();
        story.step(world, probers).await?;
        screen.show(story);
    }
    Ok(Ending::Played)
}

/// Tells the claims; the exit code says whether all hold.
fn sum_up(story: &Story, tally: &Tally) -> ExitCode {
    let claims = claims::claims(&story.record, &story.scene, tally);
    say("\nWhat happened\n");
    for claim in &claims {
        let verdict = if claim.holds { "ok    " } else { "FAILED" };
        let indent = format!("\n{}", " ".repeat(9));
        say(&format!("  {verdict} {}\n", view::wrapped(&claim.text, WIDTH).join(&indent)));
    }
    let failed = claims.iter().filter(|claim| !claim.holds).count();
    if failed == 0 {
        say("\nThe rescue worked, without the leader: not one node was given up, and no machine was replaced.\n");
        return ExitCode::SUCCESS;
    }
    say(&format!("\nThe rescue did NOT work: {failed} of {} checks failed.\n", claims.len()));
    ExitCode::FAILURE
}

/// Completes with the first signal that ends the demo early; it listens from the call on.
fn interruption() -> Result<impl Future<Output = ()>> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let [mut interrupt, mut terminate, mut hangup] =
        [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?];
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
