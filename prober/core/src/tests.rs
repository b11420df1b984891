//! What is tested of all that decides together: every state of two replicas against one object, and
//! simulated hours with clocks that are off. Tests of one module stand beside it.

mod chaos;
mod duels;
mod figures;
mod life;
mod model;
pub(crate) mod scene;
mod simulation;
