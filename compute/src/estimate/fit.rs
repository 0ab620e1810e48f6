//! Factors fitted on evidence, and the estimates they give.

use std::collections::{BTreeMap, BTreeSet};

use super::posterior::Posterior;
use super::terms::{NOISE_SD, Terms, terms};
use super::work::{Nominal, native_peak};
use super::{CONFIDENCE, Estimate, Evidence, QUANTILE, Ratio, Software, TooLittle, Workload};
use crate::catalog::Gpu;

/// Generations of a vendor whose figures must be known before one without figures is estimated from them.
const LEAST_GENERATIONS: usize = 2;

/// Factors that evidence speaks for. Making one takes a tenth of a second, an estimate microseconds.
#[derive(Clone, Debug)]
pub struct Fit {
    posterior: Posterior,
    seen: Vec<Seen>,
}

/// A figure with its terms and the logarithm of its time over the nominal one.
pub(super) type Row<'a> = (&'a Evidence, (Terms, f64));

/// What a figure of the evidence was of.
#[derive(Clone, Debug)]
struct Seen {
    gpu: &'static Gpu,
    workload: Workload,
    software: Software,
}

/// One piece of software in the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The software; its source is given.
    pub software: Software,
    /// Figures of it that the fit rests on.
    pub n_figures: usize,
    /// GPUs that they are of.
    pub n_gpus: usize,
}

impl Fit {
    /// Fits the factors. Of figures that differ in version and settings only, the fastest counts.
    pub fn new(evidence: &[Evidence]) -> Self {
        Self::with_rows(evidence).0
    }

    /// The fit with the rows that it rests on, one a figure that counts.
    pub(super) fn with_rows(evidence: &[Evidence]) -> (Self, Vec<Row<'_>>) {
        let rows: Vec<Row<'_>> = Evidence::fastest(evidence)
            .into_iter()
            .filter_map(|figure| {
                let (nominal, terms) = question(figure.gpu, &figure.workload, &figure.series()).ok()?;
                let secs = figure.workload.minibatch as f64 / figure.throughput_per_sec;
                Some((figure, (terms, (secs / nominal.secs).ln())))
            })
            .collect();
        let targets: Vec<(Terms, f64)> = rows.iter().map(|(_, row)| row.clone()).collect();
        let seen = rows.iter().map(|(figure, _)| Seen {
            gpu: figure.gpu,
            workload: figure.workload,
            software: figure.series(),
        });
        (Self { posterior: Posterior::new(&targets), seen: seen.collect() }, rows)
    }

    /// The posterior of the factors.
    pub(super) const fn posterior(&self) -> &Posterior {
        &self.posterior
    }

    /// The software in the evidence, that with most figures first.
    pub fn software(&self) -> Vec<Known> {
        let mut all: BTreeMap<&Software, (usize, BTreeSet<&str>)> = BTreeMap::new();
        for seen in &self.seen {
            let entry = all.entry(&seen.software).or_default();
            entry.0 += 1;
            entry.1.insert(&seen.gpu.name);
        }
        let known = all.into_iter().map(|(software, (n_figures, gpus))| Known {
            software: software.clone(),
            n_figures,
            n_gpus: gpus.len(),
        });
        let mut known: Vec<Known> = known.collect();
        known.sort_by_key(|known| std::cmp::Reverse(known.n_figures));
        known
    }

    /// What a GPU reaches in a workload with some software.
    ///
    /// A figure of exactly this GPU, workload and software is evidence like any other and not returned as it is: show it
    /// instead of an estimate. Memory is not looked at: a minibatch that the GPU can't hold is estimated as if it could.
    ///
    /// # Errors
    /// [`TooLittle`], where the catalog or the evidence does not carry an estimate.
    pub fn estimate(&self, gpu: &Gpu, workload: &Workload, software: &Software) -> Result<Estimate, TooLittle> {
        let (nominal, terms) = question(gpu, workload, software)?;
        self.supports(gpu, software, |_| true)?;
        let (mean, variance) = self.posterior.predict(&terms);
        let throughput = workload.minibatch as f64 / (nominal.secs * mean.exp());
        let basis = self.basis(gpu, workload, software);
        Ok(Estimate::new(throughput, variance + NOISE_SD * NOISE_SD, basis))
    }

    /// Throughput of one GPU over that of another in the same workload and software. What is not known of the software
    /// weighs on both alike, so that the interval is narrower than that of two estimates by themselves. Where one of the two
    /// has a measured figure, an estimate of the other over that figure is sharper still.
    ///
    /// # Errors
    /// [`TooLittle`], where one of the two can't be estimated.
    pub fn ratio(&self, gpus: [&Gpu; 2], workload: &Workload, software: &Software) -> Result<Ratio, TooLittle> {
        let [(nominal, terms), (other_nominal, other)] =
            [question(gpus[0], workload, software)?, question(gpus[1], workload, software)?];
        self.supports(gpus[0], software, |_| true)?;
        self.supports(gpus[1], software, |_| true)?;
        let mut difference: BTreeMap<_, f64> = terms.into_iter().collect();
        for (term, amount) in other {
            *difference.entry(term).or_insert(0.0) -= amount;
        }
        let (mean, variance) = self.posterior.predict(&difference.into_iter().collect());
        let ratio = other_nominal.secs / (nominal.secs * mean.exp());
        let spread = spread(variance + 2.0 * NOISE_SD * NOISE_SD);
        Ok(Ratio { ratio, interval: [ratio / spread, ratio * spread], confidence: CONFIDENCE })
    }

    /// Whether the evidence of the GPUs that count carries an estimate.
    pub(super) fn supports(
        &self,
        gpu: &Gpu,
        software: &Software,
        counts: impl Fn(&Gpu) -> bool,
    ) -> Result<(), TooLittle> {
        let of_vendor: Vec<&Seen> =
            self.seen.iter().filter(|seen| counts(seen.gpu) && seen.gpu.vendor == gpu.vendor).collect();
        if !of_vendor.iter().any(|seen| seen.software.is_of(software)) {
            return Err(TooLittle::Software { software: software.clone(), vendor: gpu.vendor.clone() });
        }
        let generations: BTreeSet<&str> = of_vendor.iter().map(|seen| seen.gpu.architecture.as_str()).collect();
        if !generations.contains(gpu.architecture.as_str()) && generations.len() < LEAST_GENERATIONS {
            return Err(TooLittle::Generation {
                vendor: gpu.vendor.clone(),
                generation: gpu.architecture.clone(),
                n_generations: generations.len(),
            });
        }
        Ok(())
    }

    /// What an estimate rests on, in words.
    fn basis(&self, gpu: &Gpu, workload: &Workload, software: &Software) -> String {
        let count = |counts: &dyn Fn(&Seen) -> bool| {
            let seen: Vec<&Seen> = self.seen.iter().filter(|seen| counts(seen)).collect();
            let gpus: BTreeSet<&str> = seen.iter().map(|seen| seen.gpu.name.as_str()).collect();
            format!("{} of {}", plural(seen.len(), "figure"), plural(gpus.len(), "GPU"))
        };
        let generation = |seen: &Seen| seen.gpu.architecture == gpu.architecture && seen.gpu.vendor == gpu.vendor;
        let precision = |seen: &Seen| generation(seen) && seen.workload.precision == workload.precision;
        let of_this = self.seen.iter().filter(|seen| seen.gpu.name == gpu.name).count();
        format!(
            "{} with {software}; {} of {}, {} in {}; {} of this GPU",
            count(&|seen| seen.software.is_of(software)),
            count(&generation),
            gpu.architecture,
            count(&precision),
            workload.precision,
            plural(of_this, "figure"),
        )
    }
}

impl Estimate {
    /// An estimate with the variance of its logarithm.
    pub(super) fn new(throughput_per_sec: f64, variance: f64, basis: String) -> Self {
        let spread = spread(variance);
        let interval = [throughput_per_sec / spread, throughput_per_sec * spread];
        Self { throughput_per_sec, interval, confidence: CONFIDENCE, basis }
    }
}

/// Factor from the middle to an end of the interval.
fn spread(variance: f64) -> f64 {
    (QUANTILE * variance.sqrt()).exp()
}

fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Nominal time and terms of what is asked for.
fn question(gpu: &Gpu, workload: &Workload, software: &Software) -> Result<(Nominal, Terms), TooLittle> {
    if workload.minibatch == 0 {
        return Err(TooLittle::EmptyMinibatch);
    }
    let peak = native_peak(gpu, workload.precision)
        .ok_or_else(|| TooLittle::Peak { gpu: gpu.name.clone(), precision: workload.precision })?;
    let bandwidth = gpu.bandwidth_bytes_per_sec.ok_or_else(|| TooLittle::Bandwidth { gpu: gpu.name.clone() })?;
    let nominal = Nominal::new(workload, peak, bandwidth);
    Ok((nominal, terms(gpu, peak, nominal, workload, software)))
}
