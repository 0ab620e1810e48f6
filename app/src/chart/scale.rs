//! The value axis of a bar chart: from zero to a little past the largest value, with round ticks.

/// A linear axis from zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Value at the far end.
    pub max: f64,
    /// Round values to be marked, zero first.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// An axis that holds `largest` and has about `count` ticks.
    pub fn from_zero_to(largest: f64, count: usize) -> Self {
        if !(largest.is_finite() && largest > 0.0) {
            return Self { max: 1.0, ticks: vec![0.0] };
        }
        let raw = largest / count.max(1) as f64;
        let magnitude = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * magnitude).find(|step| *step >= raw * 0.999);
        let step = step.unwrap_or(10.0 * magnitude);
        let n_ticks = (largest / step * 1.0001).floor() as usize;
        Self { max: largest, ticks: (0..=n_ticks).map(|i| i as f64 * step).collect() }
    }

    /// Where a value lies, from 0 at zero to 1 at the far end.
    pub fn position(&self, value: f64) -> f32 {
        (value / self.max).clamp(0.0, 1.0) as f32
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
    fn an_axis_without_values_is_still_an_axis() {
        for largest in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Scale::from_zero_to(largest, 5), Scale { max: 1.0, ticks: vec![0.0] });
        }
    }
}
