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
        self.0
            .get(place.saturating_sub(1))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// All, the smallest first.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}
