//! Memory: what each model needs by its plan, against the memory of devices, without running anything.

use compute::estimate::Workload;
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;

/// Minibatches that the largest fitting one is looked for among.
const LARGEST_MINIBATCH: usize = 65_536;

/// Memory of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capacity {
    /// Bytes.
    pub bytes: u64,
    /// The device.
    pub name: String,
}

/// What runs need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// The minibatch.
    pub minibatch: usize,
    /// One row a model of the suite.
    pub rows: Vec<Need>,
    /// Memories to compare with, ascending.
    pub capacities: Vec<Capacity>,
}

/// What one model needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The model.
    pub model: Model,
    /// Bytes at the minibatch; absent when it can't be planned.
    pub bytes: Option<u64>,
    /// For each capacity, the largest power of two that fits as a minibatch; absent when not even one sample does.
    pub largest: Vec<Option<usize>>,
}

/// What every model of the suite needs for a pass, precision and minibatch.
pub fn needs(pass: Pass, precision: Precision, minibatch: usize, mut capacities: Vec<Capacity>) -> Needs {
    capacities.sort();
    capacities.dedup();
    let row = |model: Model| {
        let bytes = |minibatch| Workload { model, pass, precision, minibatch }.planned_bytes();
        let powers = || std::iter::successors(Some(1), |m| Some(m * 2)).take_while(|m| *m <= LARGEST_MINIBATCH);
        let fits =
            |minibatch: usize, capacity: &Capacity| bytes(minibatch).is_some_and(|bytes| bytes <= capacity.bytes);
        let largest = |capacity: &Capacity| powers().take_while(|minibatch| fits(*minibatch, capacity)).last();
        Need { model, bytes: bytes(minibatch), largest: capacities.iter().map(largest).collect() }
    };
    let rows = Model::ALL.into_iter().map(row).collect();
    Needs { minibatch, rows, capacities }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_minibatch_fits_and_its_double_does_not() {
        let capacity = Capacity { bytes: 8 << 30, name: "8 GiB".into() };
        let needs = needs(Pass::ForwardBackward, Precision::F32, 64, vec![capacity.clone()]);
        assert_eq!(needs.rows.len(), Model::ALL.len());
        for row in &needs.rows {
            let largest = row.largest[0].expect("one sample of each fits into 8 GiB");
            let (model, pass, precision) = (row.model, Pass::ForwardBackward, Precision::F32);
            let bytes = |minibatch| Workload { model, pass, precision, minibatch }.planned_bytes().unwrap();
            assert!(bytes(largest) <= capacity.bytes && bytes(2 * largest) > capacity.bytes, "{} {largest}", row.model);
            assert_eq!(row.bytes, Some(bytes(64)));
        }
    }

    #[test]
    fn nothing_fits_where_not_even_a_sample_does() {
        let capacities = vec![Capacity { bytes: 1 << 20, name: "tiny".into() }; 2];
        let needs = needs(Pass::Forward, Precision::F32, 1, capacities);
        assert_eq!(needs.capacities.len(), 1, "the same device twice is one");
        assert!(needs.rows.iter().all(|row| row.largest == [None]));
    }
}
