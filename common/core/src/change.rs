//! Changes of the objects of one kind, from a watch. Objects are pruned, and a list arrives as a
//! whole.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
}

/// All objects by namespace and name. `None` stands for an object that cannot be decoded and keeps
/// its last known state.
pub type Listed<V> = BTreeMap<String, BTreeMap<String, Option<V>>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<V> {
    /// A list, at the start and after each time in which nothing was observed.
    Listed(Listed<V>),
    Applied(Key, V),
    /// The object was deleted, or is no longer selected.
    Gone(Key),
    /// A watch works, and has continued from the last list or watch, so nothing was missed.
    Watched,
    /// The watch ended normally, or for a requested list, and is about to continue.
    Ended,
    /// The watch failed: changes up to the next list or watch are not observed.
    Lost,
}
