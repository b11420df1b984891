//! What may stand in a config file, in words: one table for the reader, which knows by it what is
//! misspelt, and for the documentation, which is made of it.

#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub takes: &'static str,
    /// What holds when nothing does; empty: it must be there.
    pub default: &'static str,
    pub meaning: &'static str,
}
