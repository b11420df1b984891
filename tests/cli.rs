//! The commands for operators of the real binary. Seeds, shoots and pods are in memory; probers are
//! processes of the real binary.

#[path = "cli/ask.rs"]
mod ask;
#[path = "cli/network.rs"]
mod network;
#[path = "cli/restore.rs"]
mod restore;
#[path = "cli/states.rs"]
mod states;
#[path = "cli/world.rs"]
mod world;
