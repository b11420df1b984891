//! The soak: real processes in real time. Exit code 0: nothing was found; 1: something was, with its
//! evidence; 2: the command line is wrong.

use anyhow::Result;
use clap::Parser;
use faults::options::SoakOptions;
use faults::run::run;

#[tokio::main]
async fn main() -> Result<()> {
    run(&SoakOptions::parse()).await
}
