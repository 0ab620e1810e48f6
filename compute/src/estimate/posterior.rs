//! Bayesian linear regression with independent normal priors: shrunken means of crossed and nested groups, all at once.

use std::collections::BTreeMap;

use super::terms::{NOISE_SD, Term, Terms};

/// Amounts of columns, by their number.
type Sparse = Vec<(usize, f64)>;

/// What is known of the factors after the evidence: with rows `x` and targets `y`, noise variance `s²` and prior
/// variances `v`, their covariance is `C = (xᵀx / s² + diag(1 / v))⁻¹` and their mean `C xᵀy / s²`.
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    columns: BTreeMap<Term, usize>,
    means: Vec<f64>,
    /// Row-major, a row a column of the evidence.
    covariance: Vec<f64>,
}

impl Posterior {
    /// What rows, each terms and the target, say of the factors.
    pub(super) fn new(rows: &[(Terms, f64)]) -> Self {
        let mut columns = BTreeMap::new();
        for (term, _) in rows.iter().flat_map(|(terms, _)| terms) {
            if !columns.contains_key(term) {
                columns.insert(term.clone(), columns.len());
            }
        }
        let n = columns.len();
        let weight = 1.0 / (NOISE_SD * NOISE_SD);
        let mut precision = vec![0.0; n * n];
        for (term, &place) in &columns {
            precision[place * n + place] = term.prior_sd().powi(-2);
        }
        let mut moments = vec![0.0; n];
        for (terms, target) in rows {
            let row: Sparse = terms.iter().map(|(term, amount)| (columns[term], *amount)).collect();
            for &(i, a) in &row {
                moments[i] += a * target * weight;
                for &(j, b) in &row {
                    precision[i * n + j] += a * b * weight;
                }
            }
        }
        let covariance = inverse(precision, n);
        let means = (0..n).map(|i| dot(&covariance[i * n..(i + 1) * n], &moments)).collect();
        Self { columns, means, covariance }
    }

    /// Mean of a sum of factors, and its variance. Factors that the evidence says nothing of have mean 0 and the variance of
    /// their prior.
    pub(super) fn predict(&self, terms: &Terms) -> (f64, f64) {
        let known = self.known(terms);
        let mean = known.iter().map(|&(i, amount)| amount * self.means[i]).sum();
        let unknown = terms.iter().filter(|(term, _)| !self.columns.contains_key(term));
        let unknown: f64 = unknown.map(|(term, amount)| (amount * term.prior_sd()).powi(2)).sum();
        (mean, self.between(&known, &known) + unknown)
    }

    /// For rows that were part of the evidence, with their targets: mean and variance (noise included) of each target, had
    /// none of these rows been there.
    ///
    /// With `h = x C xᵀ / s²` of these rows, the errors without them are `(1 - h)⁻¹` times those with them, and their
    /// covariance is `s² (1 - h)⁻¹`; the factors are the same as those of a fit without the rows.
    pub(super) fn without(&self, rows: &[&(Terms, f64)]) -> Vec<(f64, f64)> {
        let n = rows.len();
        let noise = NOISE_SD * NOISE_SD;
        let known: Vec<Sparse> = rows.iter().map(|(terms, _)| self.known(terms)).collect();
        let mut kept = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let share = self.between(&known[i], &known[j]) / noise;
                kept[i * n + j] = f64::from(u8::from(i == j)) - share;
                kept[j * n + i] = kept[i * n + j];
            }
        }
        let inverse = inverse(kept, n);
        let errors: Vec<f64> = rows.iter().map(|(terms, target)| target - self.predict(terms).0).collect();
        let row = |i: usize| &inverse[i * n..(i + 1) * n];
        (0..n).map(|i| (rows[i].1 - dot(row(i), &errors), noise * row(i)[i])).collect()
    }

    fn known(&self, terms: &Terms) -> Sparse {
        terms.iter().filter_map(|(term, amount)| Some((*self.columns.get(term)?, *amount))).collect()
    }

    /// Covariance of two sums of factors.
    fn between(&self, a: &Sparse, b: &Sparse) -> f64 {
        let n = self.means.len();
        a.iter().map(|&(i, x)| b.iter().map(|&(j, y)| x * y * self.covariance[i * n + j]).sum::<f64>()).sum()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Inverse of a symmetric positive definite matrix, row-major, through its Cholesky factor.
///
/// # Panics
/// When the matrix is not positive definite, which those of this module always are.
fn inverse(mut matrix: Vec<f64>, n: usize) -> Vec<f64> {
    // The lower triangle becomes the factor, row by row.
    for i in 0..n {
        for j in 0..=i {
            let (row, other) = (&matrix[i * n..i * n + j], &matrix[j * n..j * n + j]);
            let rest = matrix[i * n + j] - dot(row, other);
            if i == j {
                assert!(rest > 0.0, "a covariance must be positive definite, pivot {i} is {rest}");
                matrix[i * n + i] = rest.sqrt();
            } else {
                matrix[i * n + j] = rest / matrix[j * n + j];
            }
        }
    }
    // Column k of the factor's inverse, stored as row k, so that the sums run over neighbors.
    let mut columns = vec![0.0; n * n];
    for k in 0..n {
        columns[k * n + k] = 1.0 / matrix[k * n + k];
        for i in k + 1..n {
            let sum = dot(&matrix[i * n + k..i * n + i], &columns[k * n + k..k * n + i]);
            columns[k * n + i] = -sum / matrix[i * n + i];
        }
    }
    let mut result = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let value = dot(&columns[i * n + i..(i + 1) * n], &columns[j * n + i..(j + 1) * n]);
            result[i * n + j] = value;
            result[j * n + i] = value;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_gives_the_identity() {
        let matrix = vec![4.0, 1.0, 0.5, 1.0, 3.0, -0.2, 0.5, -0.2, 2.0];
        let inverse = inverse(matrix.clone(), 3);
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| matrix[i * 3 + k] * inverse[k * 3 + j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j}: {product}");
            }
        }
    }

    fn row(gpu: &str, launch: f64, target: f64) -> (Terms, f64) {
        (vec![(Term::All, 1.0), (Term::Launch, launch), (Term::Gpu(gpu.to_owned()), 1.0)], target)
    }

    /// Leaving rows out by the formula is the same as fitting without them.
    #[test]
    fn without_is_a_fit_without_them() {
        let rows: Vec<(Terms, f64)> =
            [("a", 0.1, 1.0), ("a", 0.4, 1.3), ("b", 0.2, 0.7), ("b", 0.9, 1.1), ("c", 0.5, 0.2)]
                .map(|(gpu, launch, target)| row(gpu, launch, target))
                .to_vec();
        let left_out = Posterior::new(&rows).without(&[&rows[2], &rows[3]]);
        let fewer = [rows[0].clone(), rows[1].clone(), rows[4].clone()];
        let fewer = Posterior::new(&fewer);
        for (row, (mean, variance)) in rows[2..4].iter().zip(left_out) {
            let (expected, expected_variance) = fewer.predict(&row.0);
            assert!((mean - expected).abs() < 1e-9, "{mean} {expected}");
            assert!(
                (variance - expected_variance - NOISE_SD * NOISE_SD).abs() < 1e-9,
                "{variance} {expected_variance}"
            );
        }
    }

    #[test]
    fn many_rows_outweigh_the_prior_and_none_leave_it() {
        let rows: Vec<(Terms, f64)> = (0..200).map(|_| (vec![(Term::Family("a".to_owned()), 1.0)], 0.5)).collect();
        let posterior = Posterior::new(&rows);
        let (mean, variance) = posterior.predict(&rows[0].0);
        assert!((mean - 0.5).abs() < 0.01 && variance < 0.001, "{mean} {variance}");
        let (mean, variance) = posterior.predict(&vec![(Term::Family("b".to_owned()), 1.0)]);
        assert_eq!((mean, variance), (0.0, Term::Family(String::new()).prior_sd().powi(2)));
    }
}
