//! What is tested of all that decides together: simulated hours of two replicas, with clocks that are
//! off, and all that may go wrong. Tests of one module stand beside it.

mod chaos;
mod life;
pub(crate) mod scene;
mod simulation;
