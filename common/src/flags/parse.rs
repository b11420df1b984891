//! Words to a [`Command`].

use std::error::Error;
use std::ffi::OsString;

use clap::error::ContextKind;
use clap::parser::ValueSource;
use clap::{Arg, FromArgMatches};
use common_core::flag;

use super::{Agent, AgentArgs, Command, UsageError, command, help, is_switch, takes};

/// Reads the words after the program's name.
///
/// # Errors
/// When there is no such command, or a flag is unknown, incomplete or has a value it cannot take.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let words: Vec<String> = words
        .into_iter()
        .map(|word| {
            word.into_string()
                .map_err(|word| error(format!("{} is not UTF-8", shown(&word.to_string_lossy()))))
        })
        .collect::<Result<_, _>>()?;
    let Some((first, rest)) = words.split_first() else {
        return Ok(Command::Usage);
    };
    match first.as_str() {
        "-h" | "--help" => Ok(Command::Usage),
        "help" => help_for(rest),
        name => run(agent(name)?, rest),
    }
}

/// `help` needs the name of a command (rule 2).
fn help_for(words: &[String]) -> Result<Command, UsageError> {
    match words.first() {
        Some(name) => agent(name).map(Command::Help),
        None => Err(error(format!("help for what? {}", help::commands()))),
    }
}

fn agent(name: &str) -> Result<Agent, UsageError> {
    let found = Agent::ALL.into_iter().find(|agent| agent.name() == name);
    found.ok_or_else(|| {
        error(format!(
            "there is no command \"{}\". {}",
            shown(name),
            help::commands()
        ))
    })
}

fn run(agent: Agent, words: &[String]) -> Result<Command, UsageError> {
    let flags = command();
    let (mut given, mut wants_help) = (Vec::new(), false);
    let mut words = words.iter().map(String::as_str);
    // What follows the flags is ignored (rule 5).
    while let Some((word, (name, value))) = words
        .next()
        .and_then(|word| Some((word, flag::split(word)?)))
    {
        if name.is_empty() || name.starts_with('-') {
            return Err(error(format!("{}: this is no flag", shown(word))));
        }
        if matches!(name, "h" | "help") {
            wants_help = true;
            break;
        }
        let is_named = |flag: &&Arg| {
            flag.get_long() == Some(name)
                || flag
                    .get_aliases()
                    .is_some_and(|aliases| aliases.contains(&name))
        };
        let Some(flag) = flags.get_arguments().find(is_named) else {
            return Err(error(format!(
                "{} has no flag --{}",
                agent.name(),
                shown(name)
            )));
        };
        let value = match value {
            Some(value) => value,
            None if is_switch(flag) => "true",
            None => words
                .next()
                .ok_or_else(|| error(format!("--{name} needs a value: a {}", takes(flag))))?,
        };
        given.push(format!("--{name}={value}"));
    }
    let args = read(flags, given).map_err(|refusal| wrong_value(&refusal))?;
    Ok(if wants_help {
        Command::Help(agent)
    } else {
        Command::Run(agent, args)
    })
}

fn read(flags: clap::Command, given: Vec<String>) -> Result<AgentArgs, clap::Error> {
    let matches = flags.try_get_matches_from(given)?;
    let mut args = AgentArgs::from_arg_matches(&matches)?;
    // Its default is another one with --zap-devel.
    if matches.value_source("encoder") == Some(ValueSource::DefaultValue) {
        args.zap.encoder = None;
    }
    Ok(args)
}

fn wrong_value(refusal: &clap::Error) -> UsageError {
    let part = |kind| {
        refusal
            .get(kind)
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let expected = refusal
        .source()
        .map(ToString::to_string)
        .unwrap_or_default();
    // As in `--kube-api-burst <int>`.
    let (argument, value) = (
        part(ContextKind::InvalidArg),
        part(ContextKind::InvalidValue),
    );
    let flag = argument.split(' ').next().unwrap_or_default();
    error(format!("{flag}=\"{}\": {expected}", shown(&value)))
}

/// A word as a message repeats it: on one line, and not at any length.
fn shown(word: &str) -> String {
    /// Enough to recognise a word by.
    const SHOWN: usize = 200;
    word.chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect()
}

fn error(message: String) -> UsageError {
    UsageError { message }
}
