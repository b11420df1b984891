//! Lists sorted by name, as API servers return them.

/// Returns the index of `wanted` in `sorted`. Tries `expected` first, since API servers list
/// objects in a stable order.
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
