//! Words to a [`CommandLine`].

use std::error::Error;
use std::ffi::OsString;

use clap::error::ContextKind;
use clap::parser::ValueSource;
use clap::{Arg, FromArgMatches};
use go_compat::flag;

use super::{Agent, AgentArgs, CommandLine, UsageError, command, help, is_switch, names, takes};

/// Reads the words after the program's name.
///
/// # Errors
/// When there is no such command, or a flag is unknown, incomplete or has a value it cannot take.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<CommandLine, UsageError> {
    let not_utf8 =
        |word: OsString| UsageError(format!("{} is not UTF-8", shown(&word.to_string_lossy())));
    let words: Vec<String> = words
        .into_iter()
        .map(|word| word.into_string().map_err(not_utf8))
        .collect::<Result<_, _>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        [] | ["-h" | "--help", ..] => Ok(CommandLine::Usage),
        // `help` needs the name of a command (rule 2).
        ["help"] => Err(UsageError(format!("help for what? {}", help::commands()))),
        ["help", name, ..] => agent(name).map(CommandLine::Help),
        [name, ref words @ ..] => run(agent(name)?, words),
    }
}

fn agent(name: &str) -> Result<Agent, UsageError> {
    name.parse().map_err(|_| {
        let (name, commands) = (shown(name), help::commands());
        UsageError(format!("there is no command \"{name}\". {commands}"))
    })
}

fn run(agent: Agent, words: &[&str]) -> Result<CommandLine, UsageError> {
    let flags = command();
    let (mut given, mut wants_help) = (Vec::new(), false);
    let mut words = words.iter().copied();
    // What follows the flags is ignored (rule 5).
    while let Some((word, (name, value))) = words
        .next()
        .and_then(|word| Some((word, flag::split(word)?)))
    {
        if name.is_empty() || name.starts_with('-') {
            return Err(UsageError(format!("{}: this is no flag", shown(word))));
        }
        if matches!(name, "h" | "help") {
            wants_help = true;
            break;
        }
        let is_named = |flag: &&Arg| names(flag).any(|known| known == name);
        let Some(flag) = flags.get_arguments().find(is_named) else {
            let (agent, name) = (agent.name(), shown(name));
            return Err(UsageError(format!("{agent} has no flag --{name}")));
        };
        let needs_value = || UsageError(format!("--{name} needs a value: a {}", takes(flag)));
        let value = match value {
            Some(value) => value,
            None if is_switch(flag) => "true",
            None => words.next().ok_or_else(needs_value)?,
        };
        given.push(format!("--{name}={value}"));
    }
    let args = read(flags, given).map_err(|refusal| wrong_value(&refusal))?;
    Ok(if wants_help {
        CommandLine::Help(agent)
    } else {
        CommandLine::Run(agent, args)
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
    // As in `--kube-api-burst <int>`.
    let argument = part(ContextKind::InvalidArg);
    let flag = argument.split(' ').next().unwrap_or_default();
    let value = shown(&part(ContextKind::InvalidValue));
    let expected = refusal
        .source()
        .map(ToString::to_string)
        .unwrap_or_default();
    UsageError(format!("{flag}=\"{value}\": {expected}"))
}

/// A word as a message repeats it: on one line, and shortened.
fn shown(word: &str) -> String {
    /// Enough to recognise a word by.
    const SHOWN: usize = 200;
    word.chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect()
}
