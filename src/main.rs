//! `dependency-watchdog prober | weeder | ...`: all commands are `cli`'s.

use std::process::ExitCode;

fn main() -> ExitCode {
    // An error says that a provider is installed already, and there is only this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli::run()
}
