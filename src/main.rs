//! `dependency-watchdog prober | weeder | ...`: the first word of the command line says which agent
//! to run, or which command of `cli`.

use std::ffi::OsString;
use std::process::ExitCode;

use common::flags::Agent;

fn main() -> ExitCode {
    // An error says that a provider is installed already, and there is only this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = cli::run(&words) {
        return code;
    }
    common::process::run(words, |agent, args, shutdown| async move {
        match agent {
            Agent::Prober => prober::run(args, shutdown).await,
            Agent::Weeder => weeder::run(args, shutdown).await,
        }
    })
}
