//! `dependency-watchdog prober | weeder`: which agent to be is the first word of the command line.

use std::process::ExitCode;

use common::flags::Agent;

fn main() -> ExitCode {
    // An error says that a provider is installed already, and there is only this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let words = std::env::args_os().skip(1);
    common::process::run(words, |agent, args, shutdown| async move {
        match agent {
            Agent::Prober => prober::run(args, shutdown).await,
            Agent::Weeder => weeder::run(args, shutdown).await,
        }
    })
}
