//! What may stand in a config file, in words: one table for the reader, which knows by it what is misspelt, and for the
//! documentation, which is made of it.

/// One key of an object.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// What may stand there.
    pub takes: &'static str,
    /// What holds when nothing does; empty: it must be there.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}
