//! Lists that are kept sorted by name, as API servers send them.

/// Where `wanted` is in `sorted`, if it is there; most likely at `expected`, since all that an API
/// server lists comes in the same order each time.
pub(super) fn position<T>(
    sorted: &[T],
    name: impl Fn(&T) -> &str,
    wanted: &str,
    expected: usize,
) -> Option<usize> {
    match sorted.get(expected) {
        Some(item) if name(item) == wanted => Some(expected),
        _ => sorted.binary_search_by(|item| name(item).cmp(wanted)).ok(),
    }
}
