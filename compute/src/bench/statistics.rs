//! Statistics of a run's samples. Units are the caller's; nothing here knows of iterations.

/// Summary of positive samples, in their unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Median.
    pub median: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation, zero for a single sample.
    pub stddev: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 95% confidence interval of the median.
    pub ci95: [f64; 2],
    /// Median of the last fifth over that of the first fifth, minus one; absent for fewer than ten samples.
    pub drift: Option<f64>,
}

/// Samples that are no measurement.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// There is none.
    #[error("no samples")]
    Empty,
    /// A sample is zero, negative, infinite or not a number.
    #[error("sample {index} is {value}, not a positive finite time")]
    NotPositive {
        /// Place of the first such sample.
        index: usize,
        /// Its value.
        value: f64,
    },
}

impl Summary {
    /// Summarizes samples in the order they were taken.
    ///
    /// # Errors
    /// [`SampleError`] when there is no sample, or one is not a positive finite number.
    pub fn of(samples: &[f64]) -> Result<Self, SampleError> {
        if let Some((index, &value)) = samples.iter().enumerate().find(|(_, x)| !(x.is_finite() && **x > 0.0)) {
            return Err(SampleError::NotPositive { index, value });
        }
        if samples.is_empty() {
            return Err(SampleError::Empty);
        }
        let sorted = sorted(samples);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let squares: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
        let rank = median_interval_rank(sorted.len());
        Ok(Self {
            median: percentile(&sorted, 0.5),
            mean,
            stddev: if sorted.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 },
            p5: percentile(&sorted, 0.05),
            p95: percentile(&sorted, 0.95),
            ci95: [sorted[rank], sorted[sorted.len() - 1 - rank]],
            drift: drift(samples),
        })
    }
}

/// Median of samples that are not empty; zero of none.
pub fn median(samples: &[f64]) -> f64 {
    if samples.is_empty() { 0.0 } else { percentile(&sorted(samples), 0.5) }
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Percentile of sorted samples by linear interpolation between the closest ranks.
///
/// Source: definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Rank, counted from 0 at either end, of the order statistics that bound the median with at least 95% confidence. Up
/// to five samples can't give that; their extremes are the widest statement there is.
///
/// Formula: the largest `r` with `P(B < r + 1) ≤ 0.025` for `B` binomial with `n` trials of probability one half; above
/// 1000 samples its normal approximation.
///
/// Source: David and Nagaraja, "Order Statistics", 3rd edition, 2003, section 7.1.
fn median_interval_rank(n: usize) -> usize {
    if n > 1000 {
        let n = n as f64;
        return ((n - 1.96 * n.sqrt()) / 2.0).floor() as usize - 1;
    }
    let mut probability = 0.5f64.powi(n as i32);
    let mut cumulated = probability;
    let mut rank = 0;
    // `cumulated` is P(B ≤ rank), which an interval that begins at rank `rank` misses on one side.
    while rank < n / 2 {
        probability *= (n - rank) as f64 / (rank + 1) as f64;
        if cumulated + probability > 0.025 {
            break;
        }
        cumulated += probability;
        rank += 1;
    }
    rank
}

fn drift(samples: &[f64]) -> Option<f64> {
    if samples.len() < 10 {
        return None;
    }
    let fifth = samples.len() / 5;
    Some(median(&samples[samples.len() - fifth..]) / median(&samples[..fifth]) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_equals_the_one_worked_out_by_hand() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.median, summary.mean), (2.5, 2.5));
        assert!((summary.stddev - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((summary.p5 - 1.15).abs() < 1e-12 && (summary.p95 - 3.85).abs() < 1e-12);
        assert_eq!((summary.ci95, summary.drift), ([1.0, 4.0], None));
        let single = Summary::of(&[7.0]).unwrap();
        assert_eq!((single.median, single.stddev, single.ci95), (7.0, 0.0, [7.0, 7.0]));
    }

    /// Ranks, counted from 1, from the table of the sign test's confidence interval for the median.
    #[test]
    fn the_interval_of_the_median_has_the_tabulated_ranks() {
        for (n, rank) in [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (50, 18), (100, 40), (1000, 469)] {
            assert_eq!(median_interval_rank(n) + 1, rank, "n = {n}");
        }
        assert_eq!(median_interval_rank(1001) + 1, 469);
    }

    #[test]
    fn what_is_no_time_is_an_error() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Summary::of(&[1.0, value]).unwrap_err();
            assert!(matches!(error, SampleError::NotPositive { index: 1, .. }), "{error}");
        }
        assert_eq!(Summary::of(&[]), Err(SampleError::Empty));
    }

    #[test]
    fn drift_compares_the_last_fifth_with_the_first() {
        let rising: Vec<f64> = (0..100).map(|i| 10.0 + 0.01 * f64::from(i)).collect();
        let drift = Summary::of(&rising).unwrap().drift.unwrap();
        assert!((drift - 0.8 / 10.095).abs() < 1e-9, "{drift}");
    }
}
