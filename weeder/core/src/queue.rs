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
        let known = self.places.get(name).copied();
        if known == place {
            return;
        }
        if let Some(known) = known {
            self.order.remove(&(known, name.to_owned()));
            self.places.remove(name);
        }
        if let Some(place) = place {
            self.order.insert((place, name.to_owned()));
            self.places.insert(name.to_owned(), place);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(crate) fn first(&self) -> Option<(P, &str)> {
        let (place, name) = self.order.first()?;
        Some((*place, name))
    }

    pub(crate) fn pop(&mut self) -> Option<String> {
        let (_, name) = self.order.pop_first()?;
        self.places.remove(&name);
        Some(name)
    }

    /// Removes and returns the first name if its place is at most `last`.
    pub(crate) fn pop_until(&mut self, last: P) -> Option<String> {
        self.first()
            .is_some_and(|(place, _)| place <= last)
            .then(|| self.pop())?
    }
}
