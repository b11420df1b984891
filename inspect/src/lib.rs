//! Answers operators' questions from the command line, with their own kubeconfig. It works also where no watchdog runs, and
//! never writes anything to a cluster.
//!
//! ```text
//! words --cli--> status | explain | probe --seed--> the prober's own views and probe, read only --> report --output--> stdout
//!            '-> check-config --> every error with its place
//!            '-> completions, man
//! ```
//!
//! Answers go to stdout, everything else to stderr. Exit codes: 0 answered, 1 no answer or a config that is refused, 2 a wrong
//! command line.

mod check_config;
mod cli;
mod config;
mod explain;
mod output;
mod probe;
mod seed;
mod shell;
mod status;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use common::flags::QUESTIONS;

use self::cli::{Cli, Question};
use self::output::told;

/// Answers if the first word asks one of the questions; none when it does not.
pub fn run(words: &[OsString]) -> Option<ExitCode> {
    let first = words.first()?.to_str()?;
    let asked = if first == "help" { words.get(1)?.to_str()? } else { first };
    let is_asked = QUESTIONS.iter().any(|(name, _)| *name == asked) || matches!(first, "--version" | "-V");
    if !is_asked {
        return None;
    }
    let program = OsString::from("dependency-watchdog");
    // `help QUESTION` as `QUESTION --help`, since `help` is the agents' word already.
    let words: Vec<OsString> = if first == "help" { vec![asked.into(), "--help".into()] } else { words.to_vec() };
    Some(match Cli::try_parse_from(std::iter::once(program).chain(words)) {
        Ok(Cli { question }) => answer(question),
        Err(error) => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    })
}

fn answer(question: Question) -> ExitCode {
    let answered = match question {
        Question::CheckConfig(args) => return check_config::run(&args),
        Question::Completions { shell } => shell::completions(shell),
        Question::Man { folder } => shell::man(folder.as_deref()),
        Question::Status(args) => wait(status::run(args)),
        Question::Explain(args) => wait(explain::run(args)),
        Question::Probe(args) => wait(probe::run(args)),
    };
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {}", told(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn wait(answer: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let answered = runtime.block_on(async {
        tokio::select! {
            answered = answer => answered,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        }
    });
    runtime.shutdown_background();
    answered
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_program_lists_exactly_the_questions_that_are_answered() {
        let about = |command: &clap::Command| command.get_about().map(ToString::to_string).unwrap_or_default();
        let answered: Vec<_> =
            Cli::command().get_subcommands().map(|command| (command.get_name().to_owned(), about(command))).collect();
        let listed: Vec<_> = QUESTIONS.iter().map(|(name, purpose)| ((*name).to_owned(), (*purpose).to_owned())).collect();
        assert_eq!(answered, listed);
    }
}
