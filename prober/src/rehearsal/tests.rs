use prober_core::replicas::Marks;

use super::*;
use crate::tests::{CONFIG, env};

const ID: DependentId = DependentId(0);

fn observed(uid: &str, replicas: i32) -> Observed {
    Observed {
        uid: uid.to_owned(),
        replicas,
        ..Observed::default()
    }
}

fn present(observed: Observed) -> DependentState {
    DependentState::Present(Arc::new(observed))
}

fn at(seconds: i64) -> Moment {
    Moment::since_start(TimeDelta::seconds(seconds))
}

/// One shoot of a seed, first rehearsed 25 s after it is followed if the seed has no other one.
struct Stage {
    rehearsals: Rehearsals,
    env: Environment,
}

impl Stage {
    fn new(shoots: i32) -> Self {
        Self {
            rehearsals: Rehearsals::default(),
            env: Environment {
                shoots,
                ..env(CONFIG)
            },
        }
    }

    /// With this outcome of the first, at second 100.
    fn rehearsed(outcome: Outcome) -> Self {
        let mut stage = Self::new(1);
        stage.follow(present(observed("a", 1)), 0);
        stage.end(outcome, 100);
        stage
    }

    fn follow(&mut self, state: DependentState, now: i64) {
        self.env.dependents = vec![state];
        self.rehearsals.follow(&self.env, at(now));
    }

    fn end(&mut self, outcome: Outcome, now: i64) {
        let (_, id, change) = self.rehearsals.next().unwrap();
        let base = Arc::clone(&change.base);
        self.rehearsals.ended(id, base, outcome, at(now));
    }

    /// Second of the next one.
    fn due(&self) -> Option<i64> {
        let (due, ..) = self.rehearsals.next()?;
        Some((due - Moment::START).num_seconds())
    }

    fn refused(&self) -> Option<String> {
        self.rehearsals.refused()?.remove(&ID)
    }
}

#[test]
fn shoots_of_a_seed_are_spread() {
    for (shoots, due) in [(1, 25), (2, 50), (12, 300), (i32::MAX, 300)] {
        let mut stage = Stage::new(shoots);
        stage.follow(present(observed("a", 1)), 0);
        assert_eq!(stage.due(), Some(due), "{shoots}");
    }
}

#[test]
fn outcome_decides_when_the_next_is_due() {
    let refused = || Outcome::Refused("no".to_owned());
    for (outcome, due, is_refused) in [
        (Outcome::Accepted, 100 + 6 * 3600, false),
        (Outcome::Unsupported, 100 + 6 * 3600, false),
        (refused(), 700, true),
        (Outcome::Unanswered, 700, false),
        (Outcome::Overtaken, 160, false),
    ] {
        let mut stage = Stage::rehearsed(outcome.clone());
        assert_eq!(stage.due(), Some(due), "{outcome:?}");
        assert_eq!(stage.refused().is_some(), is_refused, "{outcome:?}");
        // A refusal stands until one is accepted.
        stage.end(refused(), 700);
        stage.end(outcome.clone(), 1300);
        let stands = !matches!(outcome, Outcome::Accepted | Outcome::Unsupported);
        assert_eq!(stage.refused().is_some(), stands, "{outcome:?}");
    }
}

#[test]
fn change_is_rehearsed_ten_minutes_after_the_last_one() {
    let mut marked = observed("a", 1);
    marked.marks.replicas = Some("3".to_owned());
    let ready = Observed {
        ready: 1,
        resource_version: "8".to_owned(),
        ..observed("a", 1)
    };
    for (state, due) in [
        (ready, 100 + 6 * 3600),
        (observed("b", 1), 700),
        (observed("a", 2), 700),
        (marked, 700),
    ] {
        let mut stage = Stage::rehearsed(Outcome::Accepted);
        stage.follow(present(state.clone()), 200);
        assert_eq!(stage.due(), Some(due), "{state:?}");
    }
}

#[test]
fn config_and_leadership_begin_again() {
    let change: [fn(&mut Stage); 2] = [
        |stage| stage.env.config = Arc::new(Config::clone(&stage.env.config)),
        |stage| {
            // A standby rehearses and shows nothing.
            stage.env.leads = false;
            stage.follow(present(observed("a", 1)), 150);
            assert_eq!((stage.due(), stage.rehearsals.refused()), (None, None));
            stage.env.leads = true;
        },
    ];
    for change in change {
        for (now, due) in [(200, 700), (3600, 3625)] {
            let mut stage = Stage::rehearsed(Outcome::Refused("no".to_owned()));
            change(&mut stage);
            stage.follow(present(observed("a", 1)), now);
            assert_eq!(stage.due(), Some(due));
        }
    }
}

#[test]
fn what_cannot_be_scaled_is_refused_without_a_rehearsal() {
    let mut ignored = observed("a", 1);
    ignored.marks.ignored = true;
    let no_kind = DependentState::Unscalable(Unscalable::NoSuchKind);
    let no_replicas = DependentState::Unscalable(Unscalable::NoReplicas);
    for (state, refused, refused_if_optional) in [
        (present(ignored), None, None),
        (present(observed("a", 0)), None, None),
        (DependentState::Unknown, Some("no"), Some("no")),
        (DependentState::Absent, Some("not found"), None),
        (
            no_kind,
            Some("no such kind, or its plural is unusual"),
            None,
        ),
        (
            no_replicas,
            Some("it has no spec.replicas"),
            Some("it has no spec.replicas"),
        ),
    ] {
        let optional = CONFIG.replace("  scaleUp", "  optional: true\n  scaleUp");
        for (config, refused) in [(CONFIG, refused), (&*optional, refused_if_optional)] {
            let mut stage = Stage::rehearsed(Outcome::Refused("no".to_owned()));
            stage.env = env(config);
            stage.follow(state.clone(), 200);
            assert_eq!(stage.refused().as_deref(), refused, "{state:?}");
            // What is unknown may be as it was.
            let is_due = state == DependentState::Unknown;
            assert_eq!(stage.due().is_some(), is_due, "{state:?}");
        }
    }
}

#[test]
fn answers_are_told_apart() {
    let mut stage = Stage::new(1);
    stage.follow(present(observed("a", 2)), 0);
    let (_, id, change) = stage.rehearsals.next().unwrap();
    assert_eq!(id, ID);
    let done = change.after(String::new());
    let (mut raised, mut unmarked) = (done.clone(), done.clone());
    raised.replicas = 2;
    unmarked.marks = Marks::default();
    for (answer, refused) in [
        (done, None),
        (raised, Some("the answer sets spec.replicas to 2 again")),
        (
            unmarked,
            Some("the answer drops the watchdog's annotations"),
        ),
    ] {
        let expected = refused.map_or(Outcome::Accepted, |words| Outcome::Refused(words.into()));
        assert_eq!(Outcome::of(change, Ok(present(answer))), expected);
    }
    let said = "ä".repeat(150);
    let refused = Outcome::Refused(format!("{}...", "ä".repeat(100)));
    let no_dry_run = r#"admission webhook "w" does not support dry run"#.to_owned();
    for (refusal, outcome) in [
        (
            Refusal::Denied {
                code: 403,
                said: said.clone(),
            },
            refused.clone(),
        ),
        (
            Refusal::Unavailable {
                code: 500,
                said: said.clone(),
            },
            refused,
        ),
        (
            Refusal::Unavailable { code: 503, said },
            Outcome::Unanswered,
        ),
        (
            Refusal::Status {
                code: 400,
                said: no_dry_run,
            },
            Outcome::Unsupported,
        ),
        (
            Refusal::Conflict(DependentState::Unknown),
            Outcome::Overtaken,
        ),
        (Refusal::Timeout, Outcome::Unanswered),
    ] {
        let of = Outcome::of(change, Err(refusal.clone()));
        assert_eq!(of, outcome, "{refusal}");
    }
}
