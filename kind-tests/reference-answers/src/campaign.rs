//! Many inputs from one seed, and the smallest of those that fail.

use std::cell::RefCell;
use std::env;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use serde_json::Value;

use crate::{Answer, Reference};

/// The seed of a run that names none: the same inputs each time.
const SEED: u64 = 1;

/// How the two sides differ.
pub type Difference = anyhow::Error;

/// Asks for each of `cases` inputs one question, many at a time; `agree` says how the answer differs from what we read.
///
/// `DIFFERENTIAL_SEED` chooses other inputs. With `DIFFERENTIAL_SECONDS` round follows round, each with the next seed, for
/// that long; a failure names its seed, which then shows it in the first round.
///
/// # Errors
/// The smallest input found on which the two sides differ, with what each of them says; or that there is no reference to ask.
pub fn campaign<S: Strategy<Value: Debug>>(
    cases: usize,
    inputs: S,
    question: impl Fn(&S::Value) -> Value,
    agree: impl Fn(&S::Value, Answer) -> Result<(), Difference>,
) -> Result<()> {
    rounds(cases, |reference, runner| {
        for asked in (0..cases).step_by(BATCH) {
            let trees: Vec<_> = (asked..cases.min(asked + BATCH)).map(|_| inputs.new_tree(runner)).collect();
            let trees = trees.into_iter().collect::<Result<Vec<_>, _>>().map_err(|reason| anyhow!("{reason}"))?;
            let questions: Vec<Value> = trees.iter().map(|tree| question(&tree.current())).collect();
            let answers = reference.borrow_mut().ask_all(&questions)?;
            for (tree, answer) in trees.into_iter().zip(answers) {
                if agree(&tree.current(), answer).is_err() {
                    smallest(runner, tree, |input| {
                        let answer = reference.borrow_mut().ask(&question(input))?;
                        agree(input, answer)
                    })?;
                }
            }
        }
        Ok(())
    })
}

/// As [`campaign`], with as many questions for each input as `agree` asks, one after the other.
///
/// # Errors
/// As [`campaign`].
pub fn campaign_of_talks<S: Strategy<Value: Debug>>(
    cases: usize,
    inputs: S,
    agree: impl Fn(&mut Reference, &S::Value) -> Result<(), Difference>,
) -> Result<()> {
    rounds(cases, |reference, runner| {
        for _ in 0..cases {
            let tree = inputs.new_tree(runner).map_err(|reason| anyhow!("{reason}"))?;
            smallest(runner, tree, |input| agree(&mut reference.borrow_mut(), input))?;
        }
        Ok(())
    })
}

/// How many questions are asked at a time.
const BATCH: usize = 500;

fn rounds(cases: usize, round: impl Fn(&RefCell<Reference>, &mut TestRunner) -> Result<()>) -> Result<()> {
    let first: u64 = setting("DIFFERENTIAL_SEED")?.unwrap_or(SEED);
    let span = Duration::from_secs(setting("DIFFERENTIAL_SECONDS")?.unwrap_or(0));
    let begin = SystemTime::now();
    let reference = RefCell::new(Reference::start()?);
    let mut seed = first;
    loop {
        let config = Config { failure_persistence: None, max_shrink_iters: 4096, ..Config::default() };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        round(&reference, &mut runner).with_context(|| format!("DIFFERENTIAL_SEED={seed}"))?;
        seed += 1;
        // Wall-clock time is good enough to end by.
        if begin.elapsed().unwrap_or(span) >= span {
            break;
        }
    }
    println!("seeds {first} to {}: {} inputs, no difference", seed - 1, (seed - first) as usize * cases);
    Ok(())
}

/// Tries an input; when the sides differ, also simpler ones like it, and gives the simplest on which they do.
fn smallest<T: ValueTree<Value: Debug>>(
    runner: &mut TestRunner,
    tree: T,
    agree: impl Fn(&T::Value) -> Result<(), Difference>,
) -> Result<()> {
    let tried = runner.run_one(tree, |input| agree(&input).map_err(|difference| TestCaseError::fail(format!("{difference:#}"))));
    match tried {
        Ok(_) => Ok(()),
        Err(TestError::Fail(difference, input)) => bail!("{input:?}: {difference}"),
        Err(TestError::Abort(reason)) => bail!("{reason}"),
    }
}

fn setting<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(name: &'static str) -> Result<Option<T>> {
    env::var(name).ok().map(|text| text.parse().with_context(|| format!("{name}={text:?}"))).transpose()
}
