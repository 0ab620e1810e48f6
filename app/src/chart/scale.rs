//! The value axis of a chart, with round ticks: linear from zero, or logarithmic over the values' decades.

/// A value axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Value at the near end: zero, or the power of ten below the smallest value of a logarithmic axis.
    pub min: f64,
    /// Value at the far end.
    pub max: f64,
    /// Round values to be marked, ascending.
    pub ticks: Vec<f64>,
    is_logarithmic: bool,
}

impl Scale {
    /// A linear axis that holds `largest` and has about `count` ticks.
    pub fn from_zero_to(largest: f64, count: usize) -> Self {
        if !(largest.is_finite() && largest > 0.0) {
            return Self { min: 0.0, max: 1.0, ticks: vec![0.0], is_logarithmic: false };
        }
        let raw = largest / count.max(1) as f64;
        let magnitude = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * magnitude).find(|step| *step >= raw * 0.999);
        let step = step.unwrap_or(10.0 * magnitude);
        let n_ticks = (largest / step * 1.0001).floor() as usize;
        let ticks = (0..=n_ticks).map(|i| i as f64 * step).collect();
        Self { min: 0.0, max: largest, ticks, is_logarithmic: false }
    }

    /// A logarithmic axis that holds positive values from `smallest` to `largest`. Bars begin at a power of ten, so that
    /// the smallest has a length too.
    pub fn logarithmic(smallest: f64, largest: f64) -> Self {
        if !(smallest.is_finite() && largest.is_finite() && smallest > 0.0 && smallest <= largest) {
            return Self::from_zero_to(largest, 1);
        }
        let first = (smallest * 0.999).log10().floor() as i32;
        let min = 10f64.powi(first);
        let decades = (largest.log10().floor() as i32 - first).max(0);
        let within: &[f64] = if decades <= 1 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = (0..=decades).flat_map(|decade| within.iter().map(move |m| m * 10f64.powi(first + decade)));
        let ticks = ticks.filter(|tick| *tick <= largest * 1.0001).collect();
        Self { min, max: largest, ticks, is_logarithmic: true }
    }

    /// Where a value lies, from 0 at the near end to 1 at the far end.
    pub fn position(&self, value: f64) -> f32 {
        let share = if self.is_logarithmic {
            (value / self.min).log10() / (self.max / self.min).log10().max(1e-9)
        } else {
            value / self.max
        };
        share.clamp(0.0, 1.0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let cases = [
            (905.0, vec![0.0, 200.0, 400.0, 600.0, 800.0]),
            (14_200.0, vec![0.0, 5_000.0, 10_000.0]),
            (1.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ];
        for (largest, expected) in cases {
            let ticks = Scale::from_zero_to(largest, 5).ticks;
            assert_eq!(ticks.len(), expected.len(), "{largest}: {ticks:?}");
            assert!(ticks.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9 * largest), "{largest}: {ticks:?}");
        }
    }

    #[test]
    fn a_logarithmic_axis_covers_whole_decades() {
        let scale = Scale::logarithmic(14.0, 14_200.0);
        assert_eq!((scale.min, scale.ticks.as_slice()), (10.0, [10.0, 100.0, 1000.0, 10_000.0].as_slice()));
        assert_eq!((scale.position(10.0), scale.position(14_200.0)), (0.0, 1.0));
        assert!((scale.position(119.16) - 0.34).abs() < 0.01, "halfway in digits: {}", scale.position(119.16));
        let narrow = Scale::logarithmic(10.0, 60.0);
        assert_eq!((narrow.min, narrow.ticks.as_slice()), (1.0, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].as_slice()));
    }

    #[test]
    fn an_axis_without_values_is_still_an_axis() {
        for largest in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let scale = Scale::from_zero_to(largest, 5);
            assert_eq!((scale.max, scale.ticks.as_slice()), (1.0, [0.0].as_slice()));
            assert_eq!(Scale::logarithmic(1.0, largest).max, 1.0);
        }
    }
}
