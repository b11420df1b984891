//! The process round an agent: its log, how it ends, which signals it heeds (rule 11).
//!
//! ```text
//! args -> log -> checks -> the agent's future --ends--> exit code
//!                          signal -> cancel, wait up to 3.8 s; second signal -> end at once
//! ```

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::flags::{Agent, AgentArgs};
use crate::logging::{self, with_causes};

/// Time that the work has to end from the first signal on. Gardener's pods are killed 5 s after
/// SIGTERM (rule 85), and the log waits for 1.1 s at most for whoever reads it.
const STOP_LIMIT: Duration = Duration::from_millis(3800);

/// Time that answers to writes are awaited for, once nothing more is begun. Of [`STOP_LIMIT`] the
/// release of the Lease then takes 2 s at most.
pub const LAST_ANSWERS: Duration = Duration::from_millis(1200);

const SUCCESS: u8 = 0;
/// It could not start or go on, or did not end in time.
const FAILURE: u8 = 1;
/// It fell over something nobody had thought of; Go's programs end so too.
const PANIC: u8 = 2;

/// Runs an agent; `start` makes the future that is its work. It ends when the work is done or the
/// token it was given is cancelled. Exit codes: 0 done or stopped by a signal, 1 failed, 2 panic.
pub fn run<S, W>(agent: Agent, args: AgentArgs, start: S) -> ExitCode
where
    S: FnOnce(AgentArgs, CancellationToken) -> W,
    W: Future<Output = anyhow::Result<()>>,
{
    let _log = logging::start(&args.zap);
    log_panics();
    let work = || -> anyhow::Result<u8> {
        let args = args.validate()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let code = runtime.block_on(async {
            let signals = signals()?;
            raise_open_files_limit();
            let shutdown = CancellationToken::new();
            let work = start(args, shutdown.clone());
            anyhow::Ok(supervise(agent, work, &shutdown, signals).await)
        });
        // A look-up of a name may hang in the system for longer than we have.
        runtime.shutdown_background();
        code
    };
    let code = work().unwrap_or_else(|error| {
        error!(error = with_causes(&*error), "cannot start");
        FAILURE
    });
    ExitCode::from(code)
}

/// Panics go to the log, as one line, instead of as several to stderr.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(ToString::to_string)
            .unwrap_or_default();
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or_default();
        error!(
            error = panic.payload_as_str().unwrap_or("a panic without a text"),
            place, thread, "panic"
        );
    }));
}

/// Raises the soft limit of open files to the hard one, as Go's runtime does at its start: each
/// probed shoot keeps a connection, and the usual soft limit of 1,024 is there for programs that
/// call select(2). Exec plugins inherit it.
fn raise_open_files_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => info!(from = current, to = maximum, "limit of open files raised"),
        Err(error) => {
            let error = with_causes(&error);
            warn!(
                error,
                limit = current,
                "limit of open files cannot be raised"
            );
        }
    }
}

/// The signals that ask the process to end, by name.
fn signals() -> std::io::Result<impl Stream<Item = &'static str> + Unpin> {
    let arrivals = |mut signal: Signal, name| {
        futures::stream::poll_fn(move |cx| signal.poll_recv(cx)).map(move |()| name)
    };
    let terminate = arrivals(signal(SignalKind::terminate())?, "SIGTERM");
    let interrupt = arrivals(signal(SignalKind::interrupt())?, "SIGINT");
    Ok(futures::stream::select(terminate, interrupt))
}

/// Waits for the work or a signal; the exit code.
async fn supervise(
    agent: Agent,
    work: impl Future<Output = anyhow::Result<()>>,
    shutdown: &CancellationToken,
    mut signals: impl Stream<Item = &'static str> + Unpin,
) -> u8 {
    let agent = agent.name();
    let work = AssertUnwindSafe(work).catch_unwind();
    let mut work = std::pin::pin!(work);
    let signal = tokio::select! {
        ended = &mut work => return exit_code(agent, ended),
        Some(signal) = signals.next() => signal,
    };
    info!(agent, signal, "stopping");
    shutdown.cancel();
    tokio::select! {
        ended = tokio::time::timeout(STOP_LIMIT, &mut work) => match ended {
            Ok(ended) => exit_code(agent, ended),
            Err(_) => {
                error!(agent, seconds = STOP_LIMIT.as_secs_f64(), "the work did not end in time");
                FAILURE
            }
        },
        Some(signal) = signals.next() => {
            error!(agent, signal, "second signal, ending at once");
            FAILURE
        }
    }
}

fn exit_code(agent: &str, ended: std::thread::Result<anyhow::Result<()>>) -> u8 {
    match ended {
        Ok(Ok(())) => {
            info!(agent, "stopped");
            SUCCESS
        }
        Ok(Err(error)) => {
            error!(agent, error = with_causes(&*error), "failed");
            FAILURE
        }
        // The panic itself is in the log already.
        Err(_) => PANIC,
    }
}

/// Without one of its views, or what they need, an agent is blind: the process ends, and another
/// one begins.
pub fn propagate_panic<T>(ended: Result<T, JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests;
