use super::*;
use crate::bench::origin::{Figure, Origin, OriginKind};
use crate::bench::record::{Record, ResultFile, Status};
use crate::catalog::{self, Gpu};
use crate::published;

/// All evidence of the tree: the published sets and the files measured on an H200.
fn bundled() -> Vec<Evidence> {
    let sets = published::sets().expect("the embedded sets are whole");
    let mut evidence: Vec<Evidence> = sets.iter().flat_map(|set| Evidence::of(&set.file)).collect();
    for folder in ["measured", "measured/pytorch"] {
        let folder = format!("{}/../datasets/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        for path in files {
            let file: ResultFile = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            evidence.extend(Evidence::of(&file));
        }
    }
    evidence
}

fn gpu(name: &str) -> &'static Gpu {
    catalog::find(name).unwrap_or_else(|| panic!("{name} is in the catalog"))
}

fn workload(model: Model, precision: Precision, minibatch: usize) -> Workload {
    Workload { model, pass: Pass::Forward, precision, minibatch }
}

/// GPUs of two generations, and how much slower than nominal the synthetic software is on each.
const GPUS: [(&str, f64); 6] = [
    ("GeForce GTX 1080", 1.5),
    ("GeForce GTX 1080 Ti", 1.5),
    ("TITAN Xp", 1.5),
    ("GeForce RTX 2080 Ti", 1.0),
    ("TITAN RTX", 1.0),
    ("Tesla T4", 1.0),
];

/// Figures of a software whose times are its factor, that of the generation, and the nominal time.
fn synthetic(software: &str, factor: f64, gpus: &[(&str, f64)]) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    for &(name, generation) in gpus {
        for model in [Model::Alexnet, Model::Vgg16, Model::Resnet50] {
            for minibatch in [16, 32, 64] {
                let (gpu, workload) = (gpu(name), workload(model, Precision::F32, minibatch));
                let peak = gpu.peak(Precision::F32).unwrap();
                let nominal = work::Nominal::new(&workload, peak, gpu.bandwidth_bytes_per_sec.unwrap());
                evidence.push(Evidence {
                    gpu,
                    workload,
                    throughput_per_sec: minibatch as f64 / (nominal.secs * factor * generation),
                    software: software.to_owned(),
                    source: "synthetic".to_owned(),
                    is_alike: false,
                    includes_update: false,
                });
            }
        }
    }
    evidence
}

fn of(engine: &str) -> Software {
    Software { source: Some("synthetic".to_owned()), ..Software::anywhere(engine) }
}

#[test]
fn known_factors_are_found_again() {
    let mut evidence = synthetic("Slow 1.0", 2.0, &GPUS);
    evidence.extend(synthetic("Fast 1.0", 0.5, &GPUS));
    let fit = Fit::new(&evidence);
    let (pascal, turing) = (gpu("Quadro P6000"), gpu("Quadro RTX 8000"));
    let workload = workload(Model::Resnet50, Precision::F32, 32);
    for (name, factor) in [("slow", 2.0), ("fast", 0.5)] {
        for (gpu, generation) in [(pascal, 1.5), (turing, 1.0)] {
            let estimate = fit.estimate(gpu, &workload, &of(name)).unwrap();
            let peak = gpu.peak(Precision::F32).unwrap();
            let nominal = work::Nominal::new(&workload, peak, gpu.bandwidth_bytes_per_sec.unwrap());
            let expected = 32.0 / (nominal.secs * factor * generation);
            let error = estimate.throughput_per_sec / expected - 1.0;
            assert!(error.abs() < 0.08, "{name} on {}: {error}", gpu.name);
            assert!(estimate.interval[0] < expected && expected < estimate.interval[1], "{name} on {}", gpu.name);
        }
    }
}

#[test]
fn a_ratio_is_that_of_the_estimates_and_sharper_where_the_software_is_not_known() {
    let fit = Fit::new(&synthetic("Slow 1.0", 2.0, &GPUS));
    let gpus = [gpu("Quadro RTX 8000"), gpu("Quadro P6000")];
    let workload = workload(Model::Vgg16, Precision::F32, 32);
    let software = Software::anywhere("slow");
    let ratio = fit.ratio(gpus, &workload, &software).unwrap();
    let estimates = gpus.map(|gpu| fit.estimate(gpu, &workload, &software).unwrap());
    let expected = estimates[0].throughput_per_sec / estimates[1].throughput_per_sec;
    assert!((ratio.ratio / expected - 1.0).abs() < 1e-9, "{} {expected}", ratio.ratio);
    let width = |interval: [f64; 2]| interval[1] / interval[0];
    assert!(width(ratio.interval) < width(estimates[0].interval) * width(estimates[1].interval));
}

#[test]
fn an_interval_widens_with_what_is_not_known() {
    let width = |gpus: &[(&str, f64)], name: &str, software: &Software| {
        let fit = Fit::new(&synthetic("Slow 1.0", 2.0, gpus));
        let workload = workload(Model::Resnet50, Precision::F32, 32);
        let [low, high] = fit.estimate(gpu(name), &workload, software).unwrap().interval;
        high / low
    };
    let slow = of("slow");
    let many = width(&GPUS, "Quadro RTX 8000", &slow);
    assert!(width(&GPUS, "TITAN RTX", &slow) < many, "a measured GPU is known better than another");
    assert!(many < width(&GPUS[..4], "Quadro RTX 8000", &slow), "three GPUs say more than one");
    assert!(many < width(&GPUS, "GeForce RTX 4090", &slow), "a known generation is known better");
    assert!(many < width(&GPUS, "Quadro RTX 8000", &Software::anywhere("slow")), "a known source is known better");
}

#[test]
fn too_little_is_said_and_not_guessed() {
    let fit = Fit::new(&synthetic("Slow 1.0", 2.0, &GPUS[..3]));
    let ask = |name, precision, minibatch, software: &str| {
        let workload = workload(Model::Resnet50, precision, minibatch);
        fit.estimate(gpu(name), &workload, &of(software)).map(|_| ()).unwrap_err()
    };
    type Check = fn(&TooLittle) -> bool;
    let cases: [(TooLittle, Check); 7] = [
        (ask("GeForce RTX 4090", Precision::F32, 1, "slow"), |error| matches!(error, TooLittle::Generation { .. })),
        (ask("GeForce GTX 1080", Precision::F32, 1, "fast"), |error| matches!(error, TooLittle::Software { .. })),
        (ask("Radeon VII", Precision::F32, 1, "slow"), |error| matches!(error, TooLittle::Software { .. })),
        (ask("Arc A770", Precision::F32, 1, "slow"), |error| matches!(error, TooLittle::Software { .. })),
        (ask("Apple M3", Precision::F32, 1, "slow"), |error| matches!(error, TooLittle::Peak { .. })),
        (ask("GeForce GTX 1080", Precision::Tf32, 1, "slow"), |error| matches!(error, TooLittle::Peak { .. })),
        (ask("GeForce GTX 1080", Precision::F32, 0, "slow"), |error| *error == TooLittle::EmptyMinibatch),
    ];
    for (idx, (error, is_expected)) in cases.into_iter().enumerate() {
        assert!(is_expected(&error), "case {idx}: {error}");
    }
}

#[test]
fn without_evidence_there_is_too_little() {
    let workload = workload(Model::Resnet50, Precision::F32, 1);
    let error = Fit::new(&[]).estimate(gpu("GeForce GTX 1080"), &workload, &of("slow")).unwrap_err();
    assert!(matches!(error, TooLittle::Software { .. }), "{error}");
    assert_eq!(evaluate(&[]).scores(), []);
}

fn published_record() -> Record {
    let figure = Figure {
        model: "ResNet-50".to_owned(),
        phase: "train_step".to_owned(),
        precision: "fp32".to_owned(),
        metric: "images_per_s".to_owned(),
        value: 100.0,
        input: Some("224x224".to_owned()),
        n_devices: None,
    };
    let origin = Origin {
        kind: OriginKind::Published,
        source: "somewhere".to_owned(),
        title: None,
        authors: None,
        date: None,
        url: None,
        licence: None,
        obtained: None,
        sha256: None,
        figure,
        doubt: None,
        extra: serde_json::Map::new(),
    };
    let mut record = origin.record(Pass::ForwardBackward, Precision::F32);
    record.model = "resnet50".to_owned();
    record.definition = "resnet50/1 e33affa31afc58c7".to_owned();
    record.minibatch = 32;
    record.engine = "PyTorch 1.12 (timm), channels-last".to_owned();
    record.device = Some(0);
    record.throughput_per_sec = Some(100.0);
    record
}

#[test]
fn only_sound_figures_are_evidence() {
    let device = |name: &str| {
        serde_json::from_value(serde_json::json!({ "id": "0", "name": name, "kind": "discrete" })).unwrap()
    };
    let devices = vec![device("GeForce GTX 1080"), device("a processor")];
    let evidence = |change: fn(&mut Record)| {
        let mut record = published_record();
        change(&mut record);
        Evidence::of(&ResultFile { records: vec![record], devices: devices.clone(), ..ResultFile::default() })
    };
    let sound = evidence(|_| {});
    assert_eq!(sound.len(), 1);
    assert_eq!(sound[0].series().to_string(), "pytorch of somewhere");
    assert!(sound[0].includes_update);
    let alike = evidence(|record| {
        record.definition.clear();
        record.model = "ResNet-50 (tf_cnn_benchmarks, v1)".to_owned();
    });
    assert_eq!(alike[0].workload.model, Model::Resnet50);

    let unsound: [fn(&mut Record); 11] = [
        |record| record.origin.as_mut().unwrap().doubt = Some("above the peak".to_owned()),
        |record| record.origin.as_mut().unwrap().figure.n_devices = Some(2),
        |record| record.origin.as_mut().unwrap().figure.precision.clear(),
        |record| record.notes.push("synthetic data; TF32 may be in use on Ampere".to_owned()),
        |record| record.status = Status::Incorrect,
        |record| record.throughput_per_sec = None,
        |record| record.minibatch = 0,
        |record| record.device = Some(1),
        |record| record.device = None,
        |record| record.definition.clear(),
        |record| record.precision = Precision::Tf32,
    ];
    for (idx, change) in unsound.into_iter().enumerate() {
        assert_eq!(evidence(change), [], "case {idx}");
    }
}

/// Of settings of one software the fastest counts, wherever it stands.
#[test]
fn the_fastest_setting_counts() {
    let mut evidence = synthetic("Slow 1.0", 2.0, &GPUS);
    evidence.extend(synthetic("Slow 1.0, tuned", 1.0, &GPUS));
    let fit = Fit::new(&evidence);
    let tuned = Fit::new(&synthetic("Slow 1.0, tuned", 1.0, &GPUS));
    let workload = workload(Model::Resnet50, Precision::F32, 32);
    let ask = |fit: &Fit| fit.estimate(gpu("Quadro RTX 8000"), &workload, &of("slow")).unwrap();
    assert_eq!(ask(&fit), ask(&tuned));
    evidence.reverse();
    assert_eq!(ask(&Fit::new(&evidence)), ask(&tuned), "the order of the evidence does not matter");
    assert_eq!(fit.software(), [Known { software: of("slow"), n_figures: 54, n_gpus: 6 }]);
}

/// The numbers of the module's documentation, with some room: figures come and go with the published sets.
#[test]
fn held_out_figures_are_estimated_as_well_as_stated() {
    let evidence = bundled();
    let evaluation = evaluate(&evidence);
    assert_eq!(evaluate(&evidence), evaluation, "the same evidence gives the same estimates");
    let scores = evaluation.scores();
    assert_eq!(evaluation.table().rows.len(), scores.len());
    let score = |group, name| {
        scores.iter().find(|score| (score.group, score.name.as_str()) == (group, name)).expect("there is such a group")
    };
    let known = score("all", "known source");
    assert!(known.n_figures > 1400 && known.n_gpus >= 35, "{known:?}");
    assert!(known.median_error < 0.16, "{known:?}");
    assert!((0.87..=0.97).contains(&known.inside), "{known:?}");
    let new = score("all", "new generation");
    assert!(new.median_error < 0.27 && new.inside > 0.85, "{new:?}");
    for name in ["Ampere", "Pascal", "Turing", "Volta"] {
        let generation = score("generation", name);
        assert!(generation.median_error < 0.2 && generation.inside > 0.82, "{generation:?}");
    }
    for name in ["f32", "f16", "tf32"] {
        let precision = score("precision", name);
        assert!(precision.median_error < 0.2 && precision.inside > 0.82, "{precision:?}");
    }
}

/// What was measured on the H200 with this program's engines lies in the intervals of a fit that knows it.
#[test]
fn measured_figures_lie_in_their_intervals() {
    let evidence = bundled();
    let fit = Fit::new(&evidence);
    for (engine, precision) in [("cuda", Precision::Bf16), ("cuda", Precision::F16), ("wgsl", Precision::F32)] {
        let software = Software::measured(engine);
        let figures = evidence.iter().filter(|figure| figure.series() == software);
        let workload = Workload { model: Model::Resnet50, pass: Pass::ForwardBackward, precision, minibatch: 64 };
        let best = figures.filter(|figure| figure.workload == workload).map(|figure| figure.throughput_per_sec);
        let best = best.fold(0.0, f64::max);
        let [low, high] = fit.estimate(gpu("H200 SXM 141 GB"), &workload, &software).unwrap().interval;
        assert!(low < best && best < high, "{engine} {precision}: {best} is not in {low} to {high}");
    }
}
