//! Words to a [`Command`].

use std::ffi::OsString;

use super::table::Flag;
use super::{Agent, AgentArgs, Command, UsageError, help};
use crate::go_compat::flag;

/// Reads the words after the program's name.
///
/// # Errors
/// When there is no such command, or a flag is unknown, incomplete or has a value it cannot take.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let words: Vec<String> = words
        .into_iter()
        .map(|word| word.into_string().map_err(|word| error(format!("{} is not UTF-8", shown(&word.to_string_lossy())))))
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
    found.ok_or_else(|| error(format!("there is no command \"{}\". {}", shown(name), help::commands())))
}

fn run(agent: Agent, words: &[String]) -> Result<Command, UsageError> {
    let mut args = AgentArgs::default();
    let mut words = words.iter().map(String::as_str);
    // What follows the flags is ignored (rule 5).
    while let Some((word, (name, value))) = words.next().and_then(|word| Some((word, flag::split(word)?))) {
        if name.is_empty() || name.starts_with('-') {
            return Err(error(format!("{}: this is no flag", shown(word))));
        }
        let Some(flag) = Flag::find(name) else {
            if matches!(name, "h" | "help") {
                return Ok(Command::Help(agent));
            }
            return Err(error(format!("{} has no flag --{}", agent.name(), shown(name))));
        };
        let value = match value {
            Some(value) => value,
            None if flag.is_switch() => "true",
            None => words.next().ok_or_else(|| error(format!("--{name} needs a value: a {}", flag.takes)))?,
        };
        (flag.value)(&mut args).set(value).map_err(|expected| error(format!("--{name}=\"{}\": {expected}", shown(value))))?;
    }
    Ok(Command::Run(agent, args))
}

/// A word as a message repeats it: on one line, and not at any length.
fn shown(word: &str) -> String {
    /// Enough to recognise a word by.
    const SHOWN: usize = 200;
    word.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

fn error(message: String) -> UsageError {
    UsageError { message }
}
