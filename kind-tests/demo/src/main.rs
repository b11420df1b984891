//! The demo: an outage in which the leader dies, and its rescue, in about a minute and a half, with the real binary.
//!
//! ```text
//!            ┌── world: a seed and three shoots in memory ──┐
//!  story ──cues──►                                          ◄──TLS── the real dependency-watchdog, as two processes
//!    ▲       └── stand-ins: kubelets, node lifecycle ───────┘
//!    └─ what changed ─► facts ─► claims ─► exit code
//!                   └─► scene ─► view ─► terminal, or plain lines ─► pictures
//! ```
//! Everything runs in real time and on loopback. Exit codes: 0 if every claim of the summary holds, 1 if not, 130 if interrupted.

mod check;
mod child;
mod facts;
mod pictures;
mod scene;
mod screen;
mod stand_ins;
mod story;
mod view;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use child::Probers;
use scene::Scene;
use screen::{Screen, say};
use stand_ins::NodeLifecycle;
use story::{Act, Story};
use world::{Part, World};

/// Time between two steps of the story and two frames of the view.
const STEP: Duration = Duration::from_millis(100);
/// Exit code after an interruption: 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

/// How a play ends.
enum Ending {
    Played,
    Interrupted,
    /// A prober ended by itself.
    Abandoned(&'static str, std::process::ExitStatus),
}

fn main() -> ExitCode {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let binary = match words.as_slice() {
        [binary] => binary,
        [draw, folder] if draw.as_os_str() == "--draw" => return draw_pictures(folder),
        _ => {
            eprintln!("usage: demo PATH_TO_dependency-watchdog\n       demo --draw FOLDER < WHAT_IT_HAS_PRINTED");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(play(binary)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("the demo itself failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Draws the pictures of the docs, from what an earlier run has printed.
fn draw_pictures(folder: &Path) -> ExitCode {
    let drawn = std::io::read_to_string(std::io::stdin()).context("cannot read it");
    match drawn.and_then(|printed| pictures::draw(folder, &printed)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot draw: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the stage, plays, and tells how it went.
async fn play(binary: &Path) -> Result<ExitCode> {
    anyhow::ensure!(
        binary.is_file(),
        "{} is no file; build it with: cargo build --profile demo -p dependency-watchdog",
        binary.display()
    );
    let mut stop = Stop::listen()?;
    let folder = tempfile::Builder::new().prefix("dependency-watchdog-demo-").tempdir().context("no temporary folder")?;
    let world = World::build().await?;
    let mut probers = Probers::start(binary, folder.path(), &world)?;
    say(&format!(
        "dependency-watchdog keeps a cluster's machines from being replaced when only the network to them is broken.\n\
         Two replicas of it run, of which one leads. In this outage the leader is killed just before it would act.\n\
         This runs the real binary in real time, about 90 seconds, against Kubernetes APIs in memory.\n\
         Settings are Gardener's and Kubernetes' own, shortened to fit: {}.\n\
         Logs: {} (kept if a check fails)\n\n",
        child::SHORTENED,
        folder.path().display()
    ));
    let started = Instant::now();
    let mut screen = Screen::open();
    let mut story = Story::new(&world);
    let mut nodes = NodeLifecycle::default();
    let ending = perform(&world, &mut probers, &mut story, &mut nodes, &mut screen, started, &mut stop).await;
    let last = Scene::of(&world, &story, &nodes, started);
    screen.close(Some(&last));
    let exits = probers.end().await?;
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
            let other = exits.into_iter().find(|(name, _)| story.facts.other.as_deref() == Some(*name));
            story.facts.exit_code = other.and_then(|(_, status)| status?.code());
            story.conclude(&world, started, |part| nodes.given_up(part));
            sum_up(&story)
        }
    };
    if code == ExitCode::FAILURE {
        for (log, lines) in probers.tails() {
            say(&format!("\nThe end of {log} (kept):\n"));
            for line in lines.lines() {
                say(&format!("  {line}\n"));
            }
        }
        // From here on the folder is the reader's.
        let _ = folder.keep();
    }
    world.end().await;
    Ok(code)
}

/// Steps through the play until it is over or something ends it.
async fn perform(
    world: &World,
    probers: &mut Probers,
    story: &mut Story,
    nodes: &mut NodeLifecycle,
    screen: &mut Screen,
    started: Instant,
    stop: &mut Stop,
) -> Result<Ending> {
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while story.act != Act::Over {
        tokio::select! {
            () = stop.asked() => return Ok(Ending::Interrupted),
            now = steps.tick() => {
                if let Some((name, status)) = probers.ended()? {
                    return Ok(Ending::Abandoned(name, status));
                }
                // The controller acts first: what the probers did since the last step may have come too late.
                nodes.step(world, now);
                let seconds = now.saturating_duration_since(started).as_secs_f64();
                story.step(world, probers, nodes.given_up(Part::CutOff), seconds)?;
                screen.show(&Scene::of(world, story, nodes, started));
            }
        }
    }
    Ok(Ending::Played)
}

/// Tells the claims; the exit code says whether all hold.
fn sum_up(story: &Story) -> ExitCode {
    let claims = check::claims(&story.facts);
    say("\nWhat happened\n");
    for claim in &claims {
        say(&format!("  {} {}\n", if claim.holds { "ok    " } else { "FAILED" }, wrapped(&claim.text, 100, 9)));
    }
    let failed = claims.iter().filter(|claim| !claim.holds).count();
    if failed == 0 {
        say("\nThe rescue worked, without the leader: not one node was given up, and no machine was replaced.\n");
        return ExitCode::SUCCESS;
    }
    say(&format!("\nThe rescue did NOT work: {failed} of {} checks failed.\n", claims.len()));
    ExitCode::FAILURE
}

/// Text broken at spaces, so that lines stay below `width`; all but the first are indented.
fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let (mut out, mut length) = (String::new(), 0);
    for word in text.split_whitespace() {
        let size = word.chars().count();
        if length > 0 && length + 1 + size > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            length = 0;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += size;
    }
    out
}

/// The signals that end the demo early.
struct Stop {
    signals: [tokio::signal::unix::Signal; 3],
}

impl Stop {
    fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { signals: [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?] })
    }

    async fn asked(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_claims_are_broken_at_spaces() {
        assert_eq!(wrapped("one two three four", 8, 2), "one two\n  three\n  four");
        assert_eq!(wrapped("", 8, 2), "");
        assert_eq!(wrapped("averylongword x", 4, 1), "averylongword\n x");
    }
}
