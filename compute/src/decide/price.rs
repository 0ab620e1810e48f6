//! What a GPU costs: the user's price, else the one at launch as a hint.

use std::collections::BTreeMap;

use crate::catalog::Gpu;

/// What GPUs cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    /// Code of the currency, such as `"USD"`.
    pub currency: String,
    /// Prices that the user gave, by the catalog's names.
    pub given: BTreeMap<String, f64>,
}

/// The price of one GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Amount in the currency of [`Prices`].
    pub amount: f64,
    /// Where it comes from.
    pub basis: PriceBasis,
}

/// Where a price comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceBasis {
    /// The user gave it.
    Given,
    /// It is the price in US dollars at launch, in this month where that is known: nobody asks for it today.
    AtLaunch(Option<String>),
}

impl Default for Prices {
    fn default() -> Self {
        Self { currency: Self::DOLLARS.to_owned(), given: BTreeMap::new() }
    }
}

impl Prices {
    /// The currency of prices at launch.
    pub const DOLLARS: &str = "USD";

    /// The price of a GPU; absent where the user gave none, and there is none from the launch or it is in another currency.
    pub fn of(&self, gpu: &Gpu) -> Option<Price> {
        if let Some(amount) = self.given.get(&gpu.name) {
            return Some(Price { amount: *amount, basis: PriceBasis::Given });
        }
        let amount = gpu.launch_price_usd.filter(|_| self.currency == Self::DOLLARS)?;
        Some(Price { amount, basis: PriceBasis::AtLaunch(gpu.launch.clone()) })
    }
}
