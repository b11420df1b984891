//! Shoots whose API server is in memory.

mod nodes;
mod shoot;

pub use nodes::{LeaseRenewer, MemoryNodes};
pub use shoot::MemoryShootPlan;
