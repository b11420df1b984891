//! Walks through every state that a small model can reach, breadth first, so that what leads to a
//! wrong state is the shortest way there.
//!
//! ```text
//! start --actions--> states, each visited once --all invariants hold--> how many there were
//!                                      '--one is broken--> the actions that led there
//! ```

use std::collections::HashSet;
use std::fmt::{self, Debug};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A model: its states, and the ways between them.
pub trait Explorable {
    /// All that matters at one moment. Equal states must be indistinguishable by what follows.
    type Vertex: Clone + Eq + Hash + Debug;
    /// A way from one state to the next.
    type Edge: Copy + Debug;

    /// Tells `to` every action that is possible in a state and what comes of it: a state, or which
    /// invariant it breaks.
    fn steps(&self, state: &Self::Vertex, to: impl FnMut(Self::Edge, Result<Self::Vertex, String>));

    /// Checks the invariants of a state.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self, state: &Self::Vertex) -> Result<(), String>;
}

/// Result of an exploration.
#[derive(Debug)]
pub struct Explored {
    /// Different states that were visited.
    pub states: usize,
    /// Actions that were tried.
    pub actions: usize,
    /// Number of actions from the start to the farthest state.
    pub depth: usize,
    /// A way in which an invariant can be broken, if it can.
    pub counterexample: Option<Counterexample>,
}

/// The shortest way to a broken invariant.
#[derive(Debug)]
pub struct Counterexample {
    /// The invariant.
    pub broken: String,
    /// Each action, and the state before it.
    pub way: Vec<String>,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.broken)?;
        self.way.iter().try_for_each(|step| writeln!(f, "  {step}"))
    }
}

/// A state, the place of the one it was first reached from, and by which action; and how far away
/// it is.
struct Visit<M: Explorable> {
    state: M::Vertex,
    from: Option<(usize, M::Edge)>,
    depth: usize,
}

/// A hash that is made in a moment. Nobody chooses states so that they collide.
#[derive(Default)]
struct Quick(u64);

impl Quick {
    fn mix(&mut self, word: u64) {
        // An odd number without a pattern, from the golden ratio: multiplying by it spreads small
        // differences over all bits.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix((*byte).into()));
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(byte.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word.cast_unsigned() as u64);
    }
}

/// Visits everything that can be reached from `start`, up to `limit` states.
///
/// # Panics
/// If there are more states: then the model is not as small as it was meant to be, and nothing is
/// proven.
pub fn explore<M: Explorable>(model: &M, start: M::Vertex, limit: usize) -> Explored {
    let mut visits: Vec<Visit<M>> = vec![Visit {
        state: start.clone(),
        from: None,
        depth: 0,
    }];
    let mut broken = model.check(&start).err().map(|broken| (0, None, broken));
    let mut known: HashSet<M::Vertex, BuildHasherDefault<Quick>> = HashSet::from_iter([start]);
    let (mut next, mut actions) = (0, 0);
    while broken.is_none() && next < visits.len() {
        let (state, depth) = (visits[next].state.clone(), visits[next].depth);
        model.steps(&state, |action, result| {
            actions += 1;
            match result {
                _ if broken.is_some() => {}
                Err(why) => broken = Some((next, Some(action), why)),
                Ok(state) => {
                    if !known.insert(state.clone()) {
                        return;
                    }
                    broken = model
                        .check(&state)
                        .err()
                        .map(|why| (visits.len(), None, why));
                    visits.push(Visit {
                        state,
                        from: Some((next, action)),
                        depth: depth + 1,
                    });
                }
            }
        });
        assert!(visits.len() <= limit, "more than {limit} states");
        next += 1;
    }
    let depth = visits.last().map_or(0, |visit| visit.depth);
    let counterexample = broken.map(|(at, action, broken)| Counterexample {
        broken,
        way: way(&visits, at, action),
    });
    Explored {
        states: visits.len(),
        actions,
        depth,
        counterexample,
    }
}

fn way<M: Explorable>(visits: &[Visit<M>], mut at: usize, last: Option<M::Edge>) -> Vec<String> {
    let mut way = vec![match last {
        Some(action) => format!("{:?}  --{action:?}-->  broken", visits[at].state),
        None => format!("{:?}", visits[at].state),
    }];
    while let Some((from, action)) = visits[at].from {
        way.push(format!("{:?}  --{action:?}-->", visits[from].state));
        at = from;
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up and down between 0 and 9; `forbidden` is not to be reached.
    struct Counter {
        forbidden: u8,
    }

    impl Explorable for Counter {
        type Vertex = u8;
        type Edge = char;

        fn steps(&self, state: &u8, mut to: impl FnMut(char, Result<u8, String>)) {
            if *state < 9 {
                to('+', Ok(state + 1));
            }
            to(
                '-',
                state
                    .checked_sub(1)
                    .ok_or_else(|| "below 0".to_owned())
                    .or(Ok(0)),
            );
        }

        fn check(&self, state: &u8) -> Result<(), String> {
            if *state == self.forbidden {
                Err(format!("{state} is reached"))
            } else {
                Ok(())
            }
        }
    }

    #[test]
    fn every_state_is_visited_once() {
        let explored = explore(&Counter { forbidden: 10 }, 0, 100);
        assert_eq!(
            (explored.states, explored.actions, explored.depth),
            (10, 19, 9)
        );
        assert!(explored.counterexample.is_none());
    }

    #[test]
    fn a_counterexample_is_the_shortest_way() {
        let found = explore(&Counter { forbidden: 3 }, 1, 100)
            .counterexample
            .expect("3 can be reached");
        assert_eq!(found.broken, "3 is reached");
        assert_eq!(found.way, ["1  --'+'-->", "2  --'+'-->", "3"]);
    }

    #[test]
    #[should_panic(expected = "more than 5 states")]
    fn too_large_a_model_proves_nothing() {
        explore(&Counter { forbidden: 10 }, 0, 5);
    }
}
