//! One page of a list, whatever its items are.

use serde_json::{Value, json};

use crate::selector::Filter;
use crate::status::{ApiError, bad_request};

/// What a list asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    pub filter: Filter,
    /// Page size; 0 means everything.
    pub limit: usize,
    /// The revision of a list that is continued, and where in it the page begins.
    pub begun: Option<(u64, usize)>,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct ListPage<T> {
    pub metadata: Value,
    pub items: Vec<T>,
}

/// Reads the token of a page.
pub(crate) fn read_token(token: &str) -> Result<Option<(u64, usize)>, ApiError> {
    let read = || {
        let (revision, start) = token.split_once('.')?;
        Some((revision.parse().ok()?, start.parse().ok()?))
    };
    match (token, read()) {
        ("", _) => Ok(None),
        (_, None) => Err(bad_request("continue key is not valid")),
        (_, begun) => Ok(begun),
    }
}

impl<T> ListPage<T> {
    /// The page that is asked for of all items at a revision.
    pub fn of(revision: u64, all: impl IntoIterator<Item = T>, query: &ListQuery) -> Self {
        let start = query.begun.map_or(0, |(_, start)| start);
        let mut items: Vec<T> = all.into_iter().skip(start).collect();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if (1..items.len()).contains(&query.limit) {
            metadata["continue"] = json!(format!("{revision}.{}", start + query.limit));
            metadata["remainingItemCount"] = json!(items.len() - query.limit);
            items.truncate(query.limit);
        }
        Self { metadata, items }
    }
}
