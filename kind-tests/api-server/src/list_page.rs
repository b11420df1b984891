//! One page of a list, whatever its items are.

/// One page of a list.
#[derive(Debug)]
pub(crate) struct ListPage<T> {
    pub revision: u64,
    pub items: Vec<T>,
    /// Token of the next page and how many objects are left.
    pub rest: Option<(String, usize)>,
}

impl<T: Clone> ListPage<T> {
    /// The page that begins at `start`; `token` names the one that begins behind it.
    pub fn of(
        all: &[T],
        start: usize,
        limit: usize,
        revision: u64,
        token: impl Fn(usize) -> String,
    ) -> Self {
        let behind = all.get(start..).unwrap_or_default();
        let count = if limit == 0 {
            behind.len()
        } else {
            behind.len().min(limit)
        };
        let left = behind.len() - count;
        Self {
            revision,
            items: behind[..count].to_vec(),
            rest: (left > 0).then(|| (token(start + count), left)),
        }
    }

    pub fn map<U>(self, form: impl FnMut(T) -> U) -> ListPage<U> {
        ListPage {
            revision: self.revision,
            items: self.items.into_iter().map(form).collect(),
            rest: self.rest,
        }
    }
}
