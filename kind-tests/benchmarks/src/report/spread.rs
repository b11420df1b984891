//! Many values of one kind, in order.

/// Sorted values.
#[derive(Clone, Debug, Default)]
pub struct Spread(Vec<f64>);

impl FromIterator<f64> for Spread {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl Spread {
    /// The value below which this share of them lies; not a number when there are none.
    pub fn at(&self, share: f64) -> f64 {
        let place = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// All, the smallest first.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Spread = (1..=100).rev().map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| values.at(share)), [1.0, 50.0, 99.0, 100.0]);
        assert_eq!(Spread::from_iter([7.0]).at(0.01), 7.0);
        assert!(Spread::default().at(0.5).is_nan());
    }
}
