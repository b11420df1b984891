//! Names ordered by a value of each, such as a time.

use std::collections::{BTreeSet, HashMap};

/// Finds the first name and moves a name in logarithmic time.
#[derive(Debug)]
pub(crate) struct NameQueue<P> {
    places: HashMap<String, P>,
    order: BTreeSet<(P, String)>,
}

impl<P> Default for NameQueue<P> {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<P: Copy + Ord> NameQueue<P> {
    /// Sets the place of a name; `None` removes it.
    pub(crate) fn set(&mut self, name: &str, place: Option<P>) {
        if let Some(known) = self.places.remove(name) {
            self.order.remove(&(known, name.to_owned()));
        }
        if let Some(place) = place {
            self.order.insert((place, name.to_owned()));
            self.places.insert(name.to_owned(), place);
        }
    }

    /// The first name with its place.
    pub(crate) fn first(&self) -> Option<&(P, String)> {
        self.order.first()
    }

    /// The first name, if its place is at most `last`.
    pub(crate) fn first_until(&self, last: P) -> Option<String> {
        let (place, name) = self.first()?;
        (*place <= last).then(|| name.clone())
    }
}
