use super::*;
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

fn workload(model: Model) -> Workload {
    Workload { model, pass: Pass::ForwardBackward, precision: Precision::F16, minibatch: 64 }
}

fn wish(shares: &[(Model, f64)]) -> Wish {
    let shares = shares.iter().map(|&(model, weight)| Share { workload: workload(model), weight }).collect();
    let software = Software::anywhere("PyTorch");
    Wish { shares, budget: None, memory_bytes: None, power_watt: None, by: By::Throughput, software }
}

fn known(gpu: &str, model: Model, throughput_per_sec: f64, from: KnownFrom) -> Known {
    let evidence = Evidence {
        gpu: catalog::find(gpu).expect("it is in the catalog"),
        workload: workload(model),
        throughput_per_sec,
        software: "Batchmark".to_owned(),
        source: "here".to_owned(),
        is_alike: false,
        includes_update: false,
    };
    Known { evidence, from }
}

fn of<'a>(decision: &'a Decision, gpu: &str) -> Option<&'a Candidate> {
    decision.candidates.iter().find(|candidate| candidate.gpu.name == gpu)
}

#[test]
fn a_mix_takes_the_time_of_its_parts() {
    let known = [
        known("GeForce RTX 4090", Model::Resnet50, 1000.0, KnownFrom::Measured),
        known("GeForce RTX 4090", Model::Vgg16, 250.0, KnownFrom::Measured),
    ];
    let fit = Fit::new(&[]);
    // 3 samples at 1 ms and one at 4 ms: 4 samples in 7 ms.
    let decision = decide(&wish(&[(Model::Resnet50, 3.0), (Model::Vgg16, 1.0)]), &Prices::default(), &known, &fit);
    let card = of(&decision, "GeForce RTX 4090").expect("both parts are known");
    assert!((card.throughput_per_sec - 4.0 / 0.007).abs() < 1e-9, "{}", card.throughput_per_sec);
    assert_eq!(card.interval, None);
    // Without evidence nobody else is guessed at.
    assert_eq!(decision.candidates.len(), 1);
    assert!(decision.left_out.iter().any(|left| matches!(left.reason, Reason::TooLittle(_))));
    assert_eq!(decision.candidates.len() + decision.left_out.len(), catalog::all().len());
}

#[test]
fn what_was_measured_here_goes_before_what_others_say() {
    let model = Model::Resnet50;
    let known = [
        known("GeForce RTX 4090", model, 3000.0, KnownFrom::Published),
        known("GeForce RTX 4090", model, 900.0, KnownFrom::Measured),
        known("GeForce RTX 4090", model, 2000.0, KnownFrom::File),
        known("GeForce RTX 3090", model, 500.0, KnownFrom::Published),
        known("GeForce RTX 3090", model, 600.0, KnownFrom::Published),
    ];
    let decision = decide(&wish(&[(model, 1.0)]), &Prices::default(), &known, &Fit::new(&[]));
    let rates: Vec<f64> = decision.candidates.iter().map(|candidate| candidate.throughput_per_sec).collect();
    assert_eq!(rates, [900.0, 600.0]);
}

#[test]
fn every_condition_is_kept_and_named() {
    let model = Model::Resnet50;
    let cards = ["GeForce RTX 4090", "GeForce RTX 3090", "GeForce RTX 2080 Ti"];
    let known = cards.map(|card| known(card, model, 1000.0, KnownFrom::File));
    let fit = Fit::new(&[]);
    let mut prices = Prices::default();
    let reason = |wish: &Wish, prices: &Prices, card: &str| {
        let decision = decide(wish, prices, &known, &fit);
        decision.left_out.into_iter().find(|left| left.gpu.name == card).map(|left| left.reason)
    };
    let any = wish(&[(model, 1.0)]);
    assert_eq!(reason(&any, &prices, cards[0]), None);
    assert_eq!(reason(&Wish { budget: Some(1500.0), ..any.clone() }, &prices, cards[0]), Some(Reason::Budget));
    prices.given.insert(cards[0].to_owned(), 1400.0);
    assert_eq!(
        reason(&Wish { budget: Some(1500.0), ..any.clone() }, &prices, cards[0]),
        None,
        "the user's price counts"
    );
    let memory = Wish { memory_bytes: Some(24 << 30), ..any.clone() };
    assert_eq!(reason(&memory, &prices, cards[2]), Some(Reason::Memory));
    assert_eq!(reason(&Wish { power_watt: Some(400.0), ..any.clone() }, &prices, cards[0]), Some(Reason::Power));
    let euros = Prices { currency: "EUR".to_owned(), ..Prices::default() };
    assert_eq!(reason(&Wish { budget: Some(1e6), ..any }, &euros, cards[1]), Some(Reason::NoPrice));
}

/// What does not fit into the memory is no candidate, whatever the user says.
#[test]
fn the_memory_that_plans_need_is_asked_for() {
    let model = Model::Vgg16;
    let large = Workload { minibatch: 512, ..workload(model) };
    let mut wish = wish(&[(model, 1.0)]);
    wish.shares[0].workload = large;
    let mut card = known("GeForce RTX 2080 Ti", model, 1000.0, KnownFrom::File);
    card.evidence.workload = large;
    let decision = decide(&wish, &Prices::default(), &[card], &Fit::new(&[]));
    assert!(decision.needed_bytes > 11 << 30 && decision.candidates.is_empty());
}

#[test]
fn ranking_by_price_and_power_differs_from_that_by_speed() {
    let model = Model::Resnet50;
    let known = [
        known("GeForce RTX 4090", model, 1000.0, KnownFrom::File),
        known("GeForce RTX 3060 12 GB", model, 400.0, KnownFrom::File),
    ];
    let first = |by: By| {
        let wish = Wish { by, ..wish(&[(model, 1.0)]) };
        decide(&wish, &Prices::default(), &known, &Fit::new(&[])).candidates[0].gpu.name.clone()
    };
    assert_eq!((first(By::Throughput), first(By::Price)), ("GeForce RTX 4090".into(), "GeForce RTX 3060 12 GB".into()));
    assert_eq!(first(By::Power), "GeForce RTX 3060 12 GB".to_owned());
}

/// A network that is nearly the one asked for tells estimates something, but is not the answer.
#[test]
fn what_is_only_alike_is_no_known_number() {
    let mut alike = known("GeForce RTX 4090", Model::Resnet50, 1000.0, KnownFrom::Published);
    alike.evidence.is_alike = true;
    let decision = decide(&wish(&[(Model::Resnet50, 1.0)]), &Prices::default(), &[alike], &Fit::new(&[]));
    assert!(decision.candidates.is_empty());
}

/// The catalog has the power of the board, but the speed of one of its two GPUs.
#[test]
fn a_board_of_two_gpus_is_not_put_into_proportion() {
    let mut wish = wish(&[(Model::Resnet50, 1.0)]);
    wish.shares[0].workload.precision = Precision::F32;
    let mut half = known("Tesla K80", Model::Resnet50, 50.0, KnownFrom::Published);
    half.evidence.workload.precision = Precision::F32;
    let decision = decide(&wish, &Prices::default(), &[half], &Fit::new(&[]));
    let card = of(&decision, "Tesla K80").expect("it is known");
    assert_eq!((card.per_watt, card.per_price), (None, None));
}
