//! What a watch shows of the objects of one kind, as changes: each object pruned, a list as a whole
//! at its end.

use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
}

/// All objects, by namespace and name; none for an object that cannot be read: what was known of
/// it still holds.
pub type Listed<V> = HashMap<String, HashMap<String, Option<V>>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<V> {
    /// A list, at the start and after each time in which nothing was observed.
    Listed(Listed<V>),
    /// An object is new or changed.
    Applied(Key, V),
    /// An object is gone, or not of interest any more.
    Gone(Key),
    /// A watch is open, and goes on from where the last list or watch ended: nothing was missed.
    Watched,
    /// The watch ended as watches do, or for a list that was wanted. It is about to go on.
    Ended,
    /// The watch broke: what happens until the next list or watch is not observed.
    Lost,
}
