//! The Go program, kept running.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::go_programs;

/// The value Go reads, or the words in which it refuses.
pub type GoAnswer = Result<Value, String>;

/// A running program that answers for Go's libraries. It ends when this is dropped.
pub struct GoProgram {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl GoProgram {
    /// Builds the program, unless that is done, and starts it.
    ///
    /// # Errors
    /// When it cannot be built (for lack of Go, say) or started.
    pub fn start() -> Result<Self> {
        let program = go_programs::built("readers")?.join("reference-answers");
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let answers = BufReader::new(
            child
                .stdout
                .take()
                .context("the program has no standard output")?,
        );
        Ok(Self { child, answers })
    }

    /// Asks one question.
    ///
    /// # Errors
    /// When the program does not answer.
    pub fn ask(&mut self, about: &str, asked: Value) -> Result<GoAnswer> {
        let question = json!({"about": about, "asked": asked});
        let questions = self
            .child
            .stdin
            .as_mut()
            .context("the program has no standard input")?;
        questions.write_all(question.to_string().as_bytes())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the program ended at {question}");
        let mut answer: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        Ok(match answer["error"].take() {
            Value::String(error) => Err(error),
            _ => Ok(answer["value"].take()),
        })
    }
}

impl Drop for GoProgram {
    fn drop(&mut self) {
        // It ends with its standard input, which this closes.
        let _ = self.child.wait();
    }
}
