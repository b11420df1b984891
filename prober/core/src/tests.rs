//! What is tested of all that decides together: every state of two replicas against one object, and
//! simulated hours with clocks that are off. Tests of one module stand beside it.

mod chaos;
mod explore;
mod model;
mod rent;
pub(crate) mod scene;
mod simulation;
mod two_replicas;
