//! `batchmark decide`: which GPU to buy for a mix of work.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use compute::bench::export::{Cell, Column, Format, Table, significant};
use compute::decide::{
    Basis, By, Candidate, DEFAULT_SOFTWARE, Decision, Known, KnownFrom, PriceBasis, Prices, Reason, Share, Wish, decide,
};
use compute::estimate::{Evidence, Fit, Software, Workload};
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;
use compute::{catalog, published};

use super::files::Files;
use super::output::print;
use super::run::{parse_minibatch, parse_positive};
use super::{Outcome, WrongArguments};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Result files whose numbers count before published ones
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Networks and their shares of the samples, such as resnet50=3,vgg16; a share is 1 if none is given
    #[arg(long, value_delimiter = ',', value_name = "MODEL[=SHARE]", default_value = "resnet50")]
    model: Vec<Part>,
    /// Passes; each network is computed in every one
    #[arg(long, value_delimiter = ',', value_name = "PASS", default_value = "forward_backward")]
    pass: Vec<Pass>,
    /// Precision; f16 and bf16 are mixed precision in training
    #[arg(long, value_name = "PRECISION", default_value = "f16")]
    precision: Precision,
    /// Minibatch
    #[arg(long, value_name = "N", default_value = "64", value_parser = parse_minibatch)]
    minibatch: usize,
    /// The most to pay for the GPU
    #[arg(long, value_name = "AMOUNT", value_parser = parse_positive)]
    budget: Option<f64>,
    /// Currency of budget and prices; prices at launch are known in US dollars alone
    #[arg(long, value_name = "CODE", default_value = Prices::DOLLARS)]
    currency: String,
    /// What a GPU costs you, such as "GeForce RTX 4090=1800"; may be repeated
    #[arg(long, value_name = "GPU=AMOUNT")]
    price: Vec<String>,
    /// Memory that a GPU has at least, in GiB
    #[arg(long, value_name = "GIB", value_parser = parse_positive)]
    memory: Option<f64>,
    /// Rated power that a GPU has at most, in W
    #[arg(long, value_name = "WATT", value_parser = parse_positive)]
    power: Option<f64>,
    /// Framework, or engine of this program, that estimates are of, such as "PyTorch", or "PyTorch of lambda_dlbench" for it as
    /// one source of figures runs it
    #[arg(long, value_name = "NAME", default_value = DEFAULT_SOFTWARE)]
    software: String,
    /// What comes first
    #[arg(long, value_enum, default_value_t = Ranking::Throughput)]
    by: Ranking,
    /// GPUs to show
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,
    /// How to write the table: text, md, csv or json; what is left out is part of text and md alone
    #[arg(long, default_value = "text")]
    format: Format,
}

/// A network and its share.
#[derive(Clone, Copy, Debug)]
struct Part {
    model: Model,
    weight: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ranking {
    /// Samples a second
    Throughput,
    /// Samples a second for the price
    Price,
    /// Samples a second for the rated power
    Power,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, weight) =
            text.split_once('=').map_or((text, Ok(1.0)), |(name, share)| (name, parse_positive(share)));
        let model = Model::from_str(name).map_err(|error| error.to_string())?;
        Ok(Self { model, weight: weight.map_err(|error| format!("share of {name}: {error}"))? })
    }
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let files = Files::load(&arguments.files);
    let prices = prices(arguments)?;
    let sets = published::sets().context("the published results can't be read")?;
    let publications = sets.iter().flat_map(|set| Evidence::of(&set.file));
    let mut known: Vec<Known> = publications.map(|evidence| Known { evidence, from: KnownFrom::Published }).collect();
    for source in files.sources() {
        let evidence = Evidence::of(source.file).into_iter();
        known.extend(evidence.map(|evidence| Known { evidence, from: KnownFrom::File }));
    }
    let evidence: Vec<Evidence> = known.iter().map(|known| known.evidence.clone()).collect();
    let wish = wish(arguments);
    let decision = decide(&wish, &prices, &known, &Fit::new(&evidence));
    let table = table(&decision, &wish, &prices, arguments.top).render(arguments.format);
    let text = match arguments.format {
        Format::Csv | Format::Json => table,
        Format::Text | Format::Markdown => {
            format!("{}\n{table}{}", question(&wish, &prices, &decision), left_out(&decision))
        }
    };
    print(&text)?;
    Ok(files.outcome)
}

fn wish(arguments: &Arguments) -> Wish {
    let Arguments { precision, minibatch, .. } = *arguments;
    let shares = arguments.model.iter().flat_map(|part| {
        arguments.pass.iter().map(|&pass| {
            let workload = Workload { model: part.model, pass, precision, minibatch };
            Share { workload, weight: part.weight }
        })
    });
    Wish {
        shares: shares.collect(),
        budget: arguments.budget,
        memory_bytes: arguments.memory.map(|gib| (gib * (1u64 << 30) as f64) as u64),
        power_watt: arguments.power,
        software: Software::named(&arguments.software),
        by: match arguments.by {
            Ranking::Throughput => By::Throughput,
            Ranking::Price => By::Price,
            Ranking::Power => By::Power,
        },
    }
}

fn prices(arguments: &Arguments) -> Result<Prices, WrongArguments> {
    let mut given = BTreeMap::new();
    for text in &arguments.price {
        let (name, amount) = text.rsplit_once('=').ok_or_else(|| {
            WrongArguments(format!("{text:?} is no price, expected such as \"GeForce RTX 4090=1800\""))
        })?;
        let amount = parse_positive(amount).map_err(|error| WrongArguments(format!("price of {name:?}: {error}")))?;
        let gpu = catalog::find(name).ok_or_else(|| {
            WrongArguments(format!("{name:?} is no GPU of the catalog, or more than one has this name"))
        })?;
        given.insert(gpu.name.clone(), amount);
    }
    Ok(Prices { currency: arguments.currency.to_uppercase(), given })
}

/// What is ranked, in a sentence.
fn question(wish: &Wish, prices: &Prices, decision: &Decision) -> String {
    let gib = |bytes: u64| significant(bytes as f64 / (1u64 << 30) as f64);
    let work = wish.shares.iter().map(|share| {
        let Workload { model, pass, precision, minibatch } = share.workload;
        let weight = if share.weight == 1.0 { String::new() } else { format!("{} x ", share.weight) };
        format!("{weight}{model} {} {precision} minibatch {minibatch}", pass.name())
    });
    let work: Vec<String> = work.collect();
    let mut text = format!("{}\nneeds {} GiB by its plans", work.join(" + "), gib(decision.needed_bytes));
    if let Some(bytes) = wish.memory_bytes {
        let _ = write!(text, "; at least {} GiB asked for", gib(bytes));
    }
    if let Some(budget) = wish.budget {
        let _ = write!(text, "; at most {budget} {}", prices.currency);
    }
    if let Some(power) = wish.power_watt {
        let _ = write!(text, "; at most {power} W");
    }
    text.push_str("\nPrices without a source of yours are those at launch; nobody may ask for them today.\n");
    text
}

fn table(decision: &Decision, wish: &Wish, prices: &Prices, top: usize) -> Table {
    let columns = vec![
        Column::new("rank", "rank"),
        Column::new("gpu", "GPU"),
        Column::new("memory_gib", "memory (GiB)"),
        Column::new("power_watt", "power (W)"),
        Column::new("price", &format!("price ({})", prices.currency)),
        Column::new("price_basis", "price from"),
        Column::new("throughput_per_sec", "samples/s"),
        Column::new("interval", "90% interval"),
        Column::new("per_price", &format!("samples/s per 1000 {}", prices.currency)),
        Column::new("per_watt", "samples/J"),
        Column::new("evidence", "evidence"),
    ];
    let rows = decision.candidates.iter().take(top).enumerate();
    let rows = rows.map(|(place, candidate)| row(place + 1, candidate, wish)).collect();
    Table { columns, rows }
}

fn row(rank: usize, candidate: &Candidate, wish: &Wish) -> Vec<Cell> {
    let gpu = candidate.gpu;
    let interval = candidate.interval.map(|[low, high]| format!("{} to {}", significant(low), significant(high)));
    let basis = candidate.price.as_ref().map(|price| match &price.basis {
        PriceBasis::Given => "you".to_owned(),
        PriceBasis::AtLaunch(Some(month)) => format!("launch {month}"),
        PriceBasis::AtLaunch(None) => "launch".to_owned(),
    });
    let evidence = wish.shares.iter().zip(&candidate.figures).map(|(share, figure)| {
        let Workload { model, pass, .. } = share.workload;
        let which = if wish.shares.len() > 1 { format!("{model} {}: ", pass.name()) } else { String::new() };
        format!("{which}{}", basis_in_words(figure.throughput_per_sec, &figure.basis))
    });
    let evidence: Vec<String> = evidence.collect();
    vec![
        Cell::Count(rank as u64),
        Cell::Text(gpu.name.clone()),
        gpu.memory_bytes.map(|bytes| bytes as f64 / (1u64 << 30) as f64).into(),
        gpu.tdp_watt.into(),
        candidate.price.as_ref().map(|price| price.amount).into(),
        basis.map_or(Cell::Empty, Cell::Text),
        Cell::Number(candidate.throughput_per_sec),
        interval.map_or(Cell::Empty, Cell::Text),
        candidate.per_price.map(|rate| rate * 1000.0).into(),
        candidate.per_watt.into(),
        Cell::Text(evidence.join("; ")),
    ]
}

fn basis_in_words(per_sec: f64, basis: &Basis) -> String {
    let per_sec = significant(per_sec);
    match basis {
        Basis::Known { from, software, source } => {
            let from = match from {
                KnownFrom::Published => "published by",
                KnownFrom::File | KnownFrom::Measured => "from",
            };
            format!("{per_sec} {from} {source}, {software}")
        }
        Basis::Estimated { basis, .. } => format!("{per_sec} estimated from {basis}"),
    }
}

/// How many GPUs are left out for each reason.
fn left_out(decision: &Decision) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for left in &decision.left_out {
        let reason = match left.reason {
            Reason::Memory => "too little memory",
            Reason::Budget => "above the budget",
            Reason::NoPrice => "no known price",
            Reason::Power => "above the power limit, or its power is not known",
            Reason::TooLittle(_) => "too little evidence for an estimate",
        };
        *counts.entry(reason).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
    if counts.is_empty() { String::new() } else { format!("\nNot candidates: {}\n", counts.join("; ")) }
}
