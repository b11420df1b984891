//! Random faults for minutes or hours against the real watchdog, judged by an oracle of its own.
//!
//! ```text
//!   stories, one per shoot: outages, clocks, API faults, operators, gardenlet, life cycle ---+
//!   service outages: what pods need goes down   seed faults: seed, processes, configs --------+
//!                                                                                            v
//!   world: a seed and 50 shoots in memory, one shoot with a real control plane  <--TLS--  two probers and a weeder (processes)
//!       |                                                |                                    |
//!       | when did each node really renew?               | every write, as it is made         | /proc, /metrics, logs
//!       v                                                v                                    v
//!   record (one per shoot): truth -> must, may  ------> judge -----------> ledger <------- rest: vitals, growth
//! ```
//! The oracle shares no code with the watchdog. Exit code 0: nothing was found; 1: something was, with its evidence; 2: the command
//! line is wrong.

mod agents;
mod disturbances;
mod fences;
mod growth;
mod ledger;
mod options;
mod pace;
mod record;
mod report;
mod rest;
mod rng;
mod run;
mod sabotage;
mod seed_faults;
mod service_outages;
mod shoot;
mod starvation;
mod story;
mod truth;
mod weeder_oracle;
mod world;
mod writes;

use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error:#}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let mut passed = false;
    let ran = testbed::scenario(async |bed| {
        passed = run::run(bed, &options).await?;
        Ok(())
    });
    match ran {
        Ok(()) if passed => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the soak itself failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}
