use super::*;
use crate::engine::{Device, DeviceKind, EngineKind};

fn listing(engine: EngineKind, id: &str, kind: DeviceKind) -> Listing {
    let precisions = match engine {
        EngineKind::Cpu => vec![Precision::F32],
        _ => vec![Precision::F32, Precision::F16],
    };
    let device = Device { id: id.to_owned(), name: format!("the {id}"), kind, ..Device::default() };
    Listing { engine, device, precisions, remarks: Vec::new(), unavailable: None }
}

fn cpu() -> Listing {
    listing(EngineKind::Cpu, "cpu", DeviceKind::Cpu)
}

fn wgsl(id: &str, kind: DeviceKind) -> Listing {
    listing(EngineKind::Wgsl, id, kind)
}

fn cuda(id: &str) -> Listing {
    let mut listing = listing(EngineKind::Cuda, id, DeviceKind::Discrete);
    listing.device.vendor = Some("NVIDIA".to_owned());
    listing.device.uuid = Some(id.to_owned());
    listing.device.pci_address = Some("0000:01:00.0".to_owned());
    listing
}

/// The GPU of [`cuda`], reached through WGSL.
fn nvidia() -> Listing {
    let mut listing = wgsl("0000:01:00.0", DeviceKind::Discrete);
    listing.device.vendor = Some("NVIDIA".to_owned());
    listing.device.uuid = Some("GPU-a".to_owned());
    listing.device.pci_address = Some(listing.device.id.clone());
    listing
}

fn broken(mut listing: Listing) -> Listing {
    listing.unavailable = Some("driver too old".to_owned());
    listing
}

/// Devices there are, engines and devices named, devices chosen, and what is said.
type Choice<'a> = (Vec<Listing>, &'a [EngineKind], &'a [&'a str], &'a [&'a str], &'a str);

/// R26: the discrete GPU is preferred; R27: a software adapter is never chosen silently.
#[test]
fn the_best_device_is_chosen_and_anything_else_is_explained() {
    let integrated = || wgsl("igpu", DeviceKind::Integrated);
    let discrete = || wgsl("dgpu", DeviceKind::Discrete);
    let software = || wgsl("llvmpipe", DeviceKind::Software);
    let (cpu_engine, wgsl_engine) = ([EngineKind::Cpu], [EngineKind::Wgsl]);
    let both = [EngineKind::Wgsl, EngineKind::Cpu];
    let cases: [Choice<'_>; 13] = [
        (vec![integrated(), discrete(), cpu()], &[], &[], &["dgpu"], ""),
        (vec![integrated(), broken(discrete()), cpu()], &[], &[], &["igpu"], ""),
        (vec![software(), cpu()], &[], &[], &["cpu"], "the llvmpipe is a software adapter"),
        (vec![broken(discrete()), cpu()], &[], &[], &["cpu"], "driver too old"),
        (vec![cpu()], &[], &[], &["cpu"], "no GPU was found"),
        (vec![software(), cpu()], &wgsl_engine, &[], &["llvmpipe"], "software adapter"),
        (vec![software(), cpu()], &[], &["LLVMPIPE"], &["llvmpipe"], ""),
        (vec![software(), discrete(), cpu()], &both, &[], &["dgpu", "cpu"], ""),
        (vec![discrete(), cpu()], &cpu_engine, &[], &["cpu"], ""),
        (vec![discrete(), cpu()], &cpu_engine, &["cpu", "cpu"], &["cpu"], ""),
        (vec![discrete(), integrated(), cpu()], &[], &["cpu", "igpu"], &["cpu", "igpu"], ""),
        (vec![cpu()], &wgsl_engine, &[], &[], "engine wgsl can't be used: it found no device; there are: cpu"),
        (vec![discrete(), cpu()], &cpu_engine, &["dgpu"], &[], "does not have it"),
    ];
    check(cases);
}

/// What is chosen, in order, and what is said of the first.
fn check<const N: usize>(cases: [Choice<'_>; N]) {
    for (listings, engines, devices, chosen, said) in cases {
        let devices: Vec<String> = devices.iter().map(|&id| id.to_owned()).collect();
        match choose(&listings, engines, &devices) {
            Ok(targets) => {
                let ids: Vec<&str> = targets.iter().map(|target| target.listing.device.id.as_str()).collect();
                assert_eq!(ids, chosen, "{engines:?} {devices:?}");
                let reason = targets[0].reason.as_deref().unwrap_or("");
                assert!(reason.contains(said) && reason.is_empty() == said.is_empty(), "{reason:?}");
            }
            Err(error) => {
                assert!(chosen.is_empty(), "{error}");
                assert!(error.to_string().contains(said), "{error}");
            }
        }
    }
}

/// A GPU that CUDA and WGSL reach is measured once, through CUDA where that works; either is chosen by name.
#[test]
fn cuda_comes_first_where_it_works() {
    let none = || Listing::nothing(EngineKind::Cuda, "no NVIDIA driver was found".to_owned());
    let (cuda_engine, wgsl_engine) = ([EngineKind::Cuda], [EngineKind::Wgsl]);
    let both = [EngineKind::Cuda, EngineKind::Wgsl];
    let others = || vec![nvidia(), wgsl("igpu", DeviceKind::Integrated), cpu()];
    let with = |cuda: Listing| std::iter::once(cuda).chain(others()).collect::<Vec<_>>();
    let pci = "0000:01:00.0";
    let cases: [Choice<'_>; 11] = [
        (with(cuda("GPU-a")), &[], &[], &["GPU-a"], ""),
        (with(broken(cuda("GPU-a"))), &[], &[], &[pci], "engine wgsl is used: the GPU-a: driver too old"),
        (with(none()), &[], &[], &[pci], "no NVIDIA driver was found"),
        (vec![none(), wgsl("radeon", DeviceKind::Discrete), cpu()], &[], &[], &["radeon"], ""),
        (vec![none(), cpu()], &[], &[], &["cpu"], "the CPU reference is used: no device: no NVIDIA driver was found"),
        (with(cuda("GPU-a")), &wgsl_engine, &[], &[pci], ""),
        (with(cuda("GPU-a")), &both, &["gpu-A"], &["GPU-a", pci], ""),
        (with(cuda("GPU-a")), &[], &[pci], &["GPU-a"], ""),
        (with(broken(cuda("GPU-a"))), &[], &["GPU-a"], &[pci], ""),
        (with(cuda("GPU-a")), &[], &[pci, "GPU-a"], &["GPU-a"], ""),
        (with(none()), &cuda_engine, &[], &[], "engine cuda can't be used: no device: no NVIDIA driver was found"),
    ];
    check(cases);
}

#[test]
fn an_unknown_or_unavailable_device_is_refused_with_the_choices() {
    let listings = [broken(wgsl("dgpu", DeviceKind::Discrete)), cpu()];
    for (id, said) in [("gpu7", "unknown device"), ("dgpu", "driver too old")] {
        let error = choose(&listings, &[], &[id.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("cpu (the cpu, engine cpu)"), "{error}");
    }
}

fn targets() -> Vec<Target> {
    [wgsl("dgpu", DeviceKind::Discrete), cpu()].map(|listing| Target { listing, reason: None }).to_vec()
}

#[test]
fn suites_have_their_fixed_runs() {
    let count = |suite, target: usize| {
        let selection = Selection { suite: Some(suite), ..Selection::default() };
        runs(&selection, &targets()[target..=target]).len()
    };
    assert_eq!((count(Suite::Quick, 0), count(Suite::Standard, 0), count(Suite::Sweep, 0)), (4, 32, 60));
    // The CPU computes no half precision.
    assert_eq!((count(Suite::Quick, 1), count(Suite::Standard, 1), count(Suite::Sweep, 1)), (4, 16, 60));
}

#[test]
fn a_selection_replaces_the_lists_it_names() {
    let selection = Selection {
        tier: Tier::default(),
        suite: Some(Suite::Sweep),
        models: vec![Model::Vgg16],
        passes: vec![Pass::Forward],
        precisions: vec![Precision::F16, Precision::F16],
        minibatches: vec![8, 2, 8],
        iterations: Some(5),
        max_seconds: None,
        profile: true,
    };
    let runs = runs(&selection, &targets()[..1]);
    let minibatches: Vec<usize> = runs.iter().map(|run| run.minibatch).collect();
    assert_eq!(minibatches, [2, 8], "ascending, each once");
    assert!(runs.iter().all(|run| run.model == Model::Vgg16 && run.precision == Precision::F16));
    assert_eq!((runs[0].bounds.iterations, runs[0].bounds.max_seconds), (5, 20.0));
}

/// R16: what is not asked for is f32, never a faster precision under that name.
#[test]
fn without_a_suite_the_precision_is_f32() {
    let selection = Selection { models: vec![Model::Alexnet], ..Selection::default() };
    let runs = runs(&selection, &targets());
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run.precision == Precision::F32 && run.minibatch == 64));
}
