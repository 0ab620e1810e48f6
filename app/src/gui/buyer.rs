//! What a buyer wishes for, and what comes of it: the ranking of the page Decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use compute::decide::{By, DEFAULT_SOFTWARE, Decision, Known, KnownFrom, Prices, Share, Wish, decide};
use compute::estimate::{Evidence, Fit, Software, Workload};
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;
use serde::{Deserialize, Serialize};

use super::action::Effect;
use super::library::THIS_MACHINE;
use super::state::{State, Tab};

/// What the user chose on the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buyer {
    /// Share of each network in the samples, by its name; those without one are not computed.
    pub shares: BTreeMap<String, f64>,
    /// Whether inference is part of the work.
    pub is_inferring: bool,
    /// Whether training is part of the work.
    pub is_training: bool,
    /// The precision.
    pub precision: Precision,
    /// The minibatch.
    pub minibatch: usize,
    /// The most to pay; absent for any.
    pub budget: Option<f64>,
    /// Memory at least, in GiB; absent for what the work needs.
    pub memory_gib: Option<f64>,
    /// Rated power at most, in watts; absent for any.
    pub power_watt: Option<f64>,
    /// What comes first.
    pub by: By,
    /// Code of the currency.
    pub currency: String,
    /// Prices that the user gave, by the catalog's names.
    pub prices: BTreeMap<String, f64>,
}

impl Default for Buyer {
    fn default() -> Self {
        Self {
            shares: [(Model::Resnet50.name().to_owned(), 1.0)].into(),
            is_inferring: false,
            is_training: true,
            precision: Precision::F16,
            minibatch: 64,
            budget: None,
            memory_gib: None,
            power_watt: None,
            by: By::Throughput,
            currency: Prices::DOLLARS.to_owned(),
            prices: BTreeMap::new(),
        }
    }
}

impl Buyer {
    /// What is wished for.
    pub fn wish(&self) -> Wish {
        let passes: Vec<Pass> = [(self.is_inferring, Pass::Forward), (self.is_training, Pass::ForwardBackward)]
            .into_iter()
            .filter_map(|(is_chosen, pass)| is_chosen.then_some(pass))
            .collect();
        let shares = Model::ALL.into_iter().flat_map(|model| {
            let weight = self.shares.get(model.name()).copied().filter(|weight| *weight > 0.0);
            let passes = passes.iter().filter_map(move |&pass| Some((pass, weight?)));
            passes.map(move |(pass, weight)| Share {
                workload: Workload { model, pass, precision: self.precision, minibatch: self.minibatch },
                weight,
            })
        });
        Wish {
            shares: shares.collect(),
            budget: self.budget,
            memory_bytes: self.memory_gib.map(|gib| (gib * (1u64 << 30) as f64) as u64),
            power_watt: self.power_watt,
            by: self.by,
            software: Software::named(DEFAULT_SOFTWARE),
        }
    }

    /// What GPUs cost the user.
    pub fn prices(&self) -> Prices {
        Prices { currency: self.currency.trim().to_uppercase(), given: self.prices.clone() }
    }
}

/// What the page rests on, and what it shows.
#[derive(Debug, Default)]
pub struct Deciding {
    known: Vec<Known>,
    fit: Option<Arc<Fit>>,
    /// The ranking; absent until it can be made.
    pub decision: Option<Decision>,
    /// Whether results have come or gone since the numbers were gathered.
    pub(super) is_stale: bool,
}

impl State {
    /// Gathers the known numbers anew and asks for estimates from them, where the page is shown and they have changed.
    pub(super) fn gather_numbers(&mut self) -> Option<Effect> {
        if self.tab != Tab::Decide || !self.deciding.is_stale {
            return None;
        }
        self.deciding.is_stale = false;
        let mut known = Vec::new();
        for source in self.library.all_sources() {
            let is_published = self.library.is_published(source.id);
            let from = match source.id {
                THIS_MACHINE => KnownFrom::Measured,
                _ if is_published => KnownFrom::Published,
                _ => KnownFrom::File,
            };
            let named = Evidence::of(source.file).into_iter().map(|evidence| {
                let source = if is_published { evidence.source.clone() } else { source.name.to_owned() };
                Known { evidence: Evidence { source, ..evidence }, from }
            });
            known.extend(named);
        }
        let evidence = known.iter().map(|known| known.evidence.clone()).collect();
        self.deciding.known = known;
        Some(Effect::Fit(evidence))
    }

    /// Takes the estimates.
    pub(super) fn take_fit(&mut self, fit: Arc<Fit>) {
        self.deciding.fit = Some(fit);
        self.is_page_stale = true;
    }

    /// Ranks the GPUs anew.
    pub(super) fn rank(&mut self) {
        let wish = self.buyer.wish();
        let Some(fit) = self.deciding.fit.as_ref().filter(|_| !wish.shares.is_empty()) else {
            self.deciding.decision = None;
            return;
        };
        self.deciding.decision = Some(decide(&wish, &self.buyer.prices(), &self.deciding.known, fit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page was open at the last end, and the published figures come after its first frame.
    #[test]
    fn what_has_just_come_is_among_the_numbers() {
        let mut state = State { tab: Tab::Decide, ..State::default() };
        state.refresh();
        state.take_published(compute::published::sets().unwrap());
        let Some(Effect::Fit(evidence)) = state.refresh() else { panic!("nothing is asked for") };
        assert!(evidence.len() > 1000, "{}", evidence.len());
        assert_eq!(state.refresh(), None, "once is enough");
    }
}
