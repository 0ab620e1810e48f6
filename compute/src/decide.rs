//! Which GPU to buy for a mix of work: every GPU of the catalog that meets the conditions, ranked, with where each number
//! comes from.
//!
//! A number that was measured here goes before one from a file, that before a published one, and that before an estimate
//! ([`crate::estimate`]); of several of a kind the highest counts, since the software that reaches it can be had. Numbers of
//! different software stand side by side: each says which it is of.

mod price;

use serde::{Deserialize, Serialize};

use crate::catalog::{self, Gpu};
use crate::estimate::{Evidence, Fit, Software, Workload};

pub use price::{Price, PriceBasis, Prices};

/// The software that estimates are of where nobody says otherwise: PyTorch with recent versions and the fastest settings,
/// on recent GPUs. Of all sources of figures its estimates have the narrowest intervals (2026-12-01).
pub const DEFAULT_SOFTWARE: &str = "pytorch of timm_results";

/// What is wished for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// What is to be computed; at least one share has a weight above zero.
    pub shares: Vec<Share>,
    /// The most to pay, in the prices' currency; absent for any.
    pub budget: Option<f64>,
    /// Memory that a GPU has at least, in bytes; what the work needs by its plans is asked for in any case.
    pub memory_bytes: Option<u64>,
    /// Rated power that a GPU has at most, in watts; absent for any.
    pub power_watt: Option<f64>,
    /// What comes first.
    pub by: By,
    /// The software that estimates are of.
    pub software: Software,
}

/// One part of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The work.
    pub workload: Workload,
    /// Share of its samples in all samples, in any unit.
    pub weight: f64,
}

/// What candidates are ranked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Samples a second.
    #[default]
    Throughput,
    /// Samples a second for the price.
    Price,
    /// Samples a second for the rated power.
    Power,
}

/// A measured or published number, and how close it is to the user.
#[derive(Clone, Debug)]
pub struct Known {
    /// The number.
    pub evidence: Evidence,
    /// Where it comes from.
    pub from: KnownFrom,
}

/// Where a known number comes from, the closest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownFrom {
    /// It was published.
    Published,
    /// It is from a file of somebody's.
    File,
    /// It was measured on this machine.
    Measured,
}

/// A GPU that meets every condition.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The GPU.
    pub gpu: &'static Gpu,
    /// Its price; absent where none is known.
    pub price: Option<Price>,
    /// One figure for each share of the wish, in its order.
    pub figures: Vec<Figure>,
    /// Samples a second of the mix: its samples over the time that they take one after the other.
    pub throughput_per_sec: f64,
    /// The same with every estimate at the ends of its interval; absent where nothing is estimated.
    pub interval: Option<[f64; 2]>,
    /// Samples a second for a unit of the currency; absent without a price, and where the price is that of a board with
    /// several GPUs.
    pub per_price: Option<f64>,
    /// Samples a second for a watt of rated power; absent where that is not known or is a board's with several GPUs.
    pub per_watt: Option<f64>,
}

/// The number of one share.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Samples a second.
    pub throughput_per_sec: f64,
    /// Where it comes from.
    pub basis: Basis,
}

/// Where the number of a share comes from.
#[derive(Clone, Debug)]
pub enum Basis {
    /// It is known.
    Known {
        /// How close it is.
        from: KnownFrom,
        /// The software that it was reached with.
        software: String,
        /// Name of the file or publication.
        source: String,
    },
    /// It is estimated.
    Estimated {
        /// Its interval of 90%.
        interval: [f64; 2],
        /// What it rests on, in words.
        basis: String,
    },
}

/// A GPU that does not meet a condition.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// The GPU.
    pub gpu: &'static Gpu,
    /// Which condition it does not meet.
    pub reason: Reason,
}

/// Why a GPU is no candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Its memory is too small, or not known.
    Memory,
    /// It costs more.
    Budget,
    /// There is a budget, and its price is not known.
    NoPrice,
    /// It draws more, or how much is not known.
    Power,
    /// Nobody measured this work on it, and there is too little evidence for an estimate; in words.
    TooLittle(String),
}

/// The outcome.
#[derive(Clone, Debug)]
pub struct Decision {
    /// GPUs that meet every condition, the best first.
    pub candidates: Vec<Candidate>,
    /// All others.
    pub left_out: Vec<LeftOut>,
    /// Memory that the work needs by its plans, in bytes.
    pub needed_bytes: u64,
}

/// Ranks the GPUs of the catalog.
pub fn decide(wish: &Wish, prices: &Prices, known: &[Known], fit: &Fit) -> Decision {
    let computed = wish.shares.iter().filter(|share| share.weight > 0.0);
    let planned = computed.filter_map(|share| share.workload.planned_bytes());
    let needed_bytes = planned.max().unwrap_or(0);
    let (mut candidates, mut left_out) = (Vec::new(), Vec::new());
    for gpu in catalog::all() {
        match candidate(gpu, wish, prices, known, fit, needed_bytes) {
            Ok(candidate) => candidates.push(candidate),
            Err(reason) => left_out.push(LeftOut { gpu, reason }),
        }
    }
    let key = |candidate: &Candidate| match wish.by {
        By::Throughput => Some(candidate.throughput_per_sec),
        By::Price => candidate.per_price,
        By::Power => candidate.per_watt,
    };
    // Those without what they are ranked by come last.
    candidates.sort_by(|a, b| key(b).unwrap_or(0.0).total_cmp(&key(a).unwrap_or(0.0)));
    Decision { candidates, left_out, needed_bytes }
}

fn candidate(
    gpu: &'static Gpu,
    wish: &Wish,
    prices: &Prices,
    known: &[Known],
    fit: &Fit,
    needed_bytes: u64,
) -> Result<Candidate, Reason> {
    let memory = gpu.memory_bytes.ok_or(Reason::Memory)?;
    if memory < needed_bytes.max(wish.memory_bytes.unwrap_or(0)) {
        return Err(Reason::Memory);
    }
    if let Some(limit) = wish.power_watt
        && gpu.tdp_watt.is_none_or(|power| power > limit)
    {
        return Err(Reason::Power);
    }
    let price = prices.of(gpu);
    if let Some(budget) = wish.budget {
        match &price {
            None => return Err(Reason::NoPrice),
            Some(price) if price.amount > budget => return Err(Reason::Budget),
            Some(_) => {}
        }
    }
    let figures: Vec<Figure> = wish
        .shares
        .iter()
        .map(|share| figure(gpu, &share.workload, wish, known, fit))
        .collect::<Result<_, Reason>>()?;
    let throughput_per_sec = mix(wish, figures.iter().map(|figure| figure.throughput_per_sec));
    let is_estimated = figures.iter().any(|figure| matches!(figure.basis, Basis::Estimated { .. }));
    let bound = |end: usize| {
        mix(
            wish,
            figures.iter().map(|figure| match &figure.basis {
                Basis::Estimated { interval, .. } => interval[end],
                Basis::Known { .. } => figure.throughput_per_sec,
            }),
        )
    };
    let is_alone = !gpu.shares_its_board();
    Ok(Candidate {
        interval: is_estimated.then(|| [bound(0), bound(1)]),
        // The throughput is of one GPU, power and price of the board that holds several.
        per_price: price.as_ref().filter(|_| is_alone).map(|price| throughput_per_sec / price.amount),
        per_watt: gpu.tdp_watt.filter(|_| is_alone).map(|power| throughput_per_sec / power),
        gpu,
        price,
        figures,
        throughput_per_sec,
    })
}

/// Samples a second of a mix: Σ weight / Σ (weight / throughput).
fn mix(wish: &Wish, throughputs: impl Iterator<Item = f64>) -> f64 {
    let shares = || wish.shares.iter().map(|share| share.weight.max(0.0));
    let time: f64 = shares().zip(throughputs).map(|(weight, per_sec)| weight / per_sec).sum();
    shares().sum::<f64>() / time
}

/// The closest number of a workload on a GPU.
fn figure(gpu: &'static Gpu, workload: &Workload, wish: &Wish, known: &[Known], fit: &Fit) -> Result<Figure, Reason> {
    let is_this = |known: &&Known| {
        let Evidence { gpu: other, workload: other_work, is_alike, .. } = &known.evidence;
        std::ptr::eq(*other, gpu) && other_work == workload && !is_alike
    };
    let rank = |known: &&Known| (known.from, known.evidence.throughput_per_sec);
    let by_rank = |a: &&Known, b: &&Known| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1));
    if let Some(best) = known.iter().filter(is_this).max_by(by_rank) {
        let Evidence { throughput_per_sec, software, source, .. } = best.evidence.clone();
        return Ok(Figure { throughput_per_sec, basis: Basis::Known { from: best.from, software, source } });
    }
    let estimate =
        fit.estimate(gpu, workload, &wish.software).map_err(|reason| Reason::TooLittle(reason.to_string()))?;
    Ok(Figure {
        throughput_per_sec: estimate.throughput_per_sec,
        basis: Basis::Estimated { interval: estimate.interval, basis: estimate.basis },
    })
}

#[cfg(test)]
mod tests;
