use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Compute capabilities that a compiler of CUDA 13 knows, of those that kernels are written for.
const CAPABILITIES: [(u32, u32); 7] = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)];

/// The compiler; `None` after saying that there is none.
///
/// # Panics
/// When there is none and the environment variable `BATCHMARK_REQUIRE_NVRTC` is `1`.
fn compiler() -> Option<&'static Nvrtc> {
    let found = library::compiler();
    if found.is_none() {
        let required = std::env::var_os("BATCHMARK_REQUIRE_NVRTC").is_some_and(|value| value == "1");
        assert!(!required, "NVRTC is required and was not found; name its folder in BATCHMARK_LIBRARIES");
        eprintln!("skipped: NVRTC was not found; name its folder in BATCHMARK_LIBRARIES");
    }
    found
}

#[test]
fn every_kernel_compiles_for_every_capability() {
    let Some(compiler) = compiler() else { return };
    let mut work = Vec::new();
    for file in kernels::files() {
        for precision in Precision::ALL.into_iter().filter(|&precision| kernels::serves(file, precision)) {
            let capabilities = CAPABILITIES.into_iter().filter(|&capability| kernels::computes(capability, precision));
            work.extend(capabilities.map(|capability| (file, precision, capability)));
        }
    }
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let compile = || {
        while let Some(&(file, precision, capability)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = compiler.kernel(file, precision, capability) {
                failures.lock().unwrap().push(format!("{file} in {precision} for {capability:?}: {error}"));
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..threads).for_each(|_| drop(scope.spawn(compile)));
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_fault_in_a_text_is_shown_with_its_line() {
    let Some(compiler) = compiler() else { return };
    let text = "extern \"C\" __global__ void scale(float* y) {\n    y[0] = nonsense;\n}\n";
    let error = compiler.compile(text, "scale", (8, 0)).unwrap_err().to_string();
    assert!(error.contains("compiling scale.cu for sm_80") && error.contains("scale.cu(2)"), "{error}");
    assert!(error.contains("\"nonsense\" is undefined"), "{error}");
    // The image of machine code is an ELF file; that of PTX a text with a zero byte behind it.
    let text = text.replace("nonsense", "1.0f");
    assert!(compiler.compile(&text, "scale", (8, 0)).unwrap().starts_with(b"\x7fELF"));
    let ptx = compiler.compile_ptx(&text, "scale", "compute_75").unwrap();
    assert!(ptx.ends_with(b"\0") && String::from_utf8(ptx).unwrap().contains(".target sm_75"));
    // A device of a later generation than the compiler.
    let image = compiler.compile(&text, "scale", (99, 0)).unwrap();
    assert!(String::from_utf8(image).is_ok_and(|text| text.contains(".entry scale")));
    let error = compiler.compile(&text, "scale", (2, 0)).unwrap_err();
    assert!(matches!(error, EngineError::NotSupported { reason } if reason.contains("older major version")));
}

#[test]
fn machine_code_is_compiled_where_the_compiler_knows_the_device() {
    let of_cuda_12 = [50, 60, 70, 75, 80, 86, 87, 89, 90];
    let of_cuda_13 = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];
    let cubin = |name: &str| Some(Target::Cubin(name.to_owned()));
    let ptx = |name: &str| Some(Target::Ptx(name.to_owned()));
    for (capability, architectures, expected) in [
        ((7, 5), &of_cuda_13[..], cubin("sm_75")),
        ((9, 0), &of_cuda_13, cubin("sm_90a")),
        ((12, 0), &of_cuda_13, cubin("sm_120")),
        ((12, 0), &of_cuda_12, ptx("compute_90")),
        ((10, 7), &of_cuda_13, ptx("compute_103")),
        ((14, 0), &of_cuda_13, ptx("compute_121")),
        ((6, 1), &of_cuda_12, ptx("compute_60")),
        ((6, 1), &of_cuda_13, None),
    ] {
        assert_eq!(target(capability, architectures), expected, "{capability:?}");
    }
}

/// R23: a path with letters of another alphabet can't be misread where no path is passed.
#[test]
fn no_option_names_a_path() {
    for target in [Target::Cubin("sm_90a".to_owned()), Target::Ptx("compute_80".to_owned())] {
        let options = options(&target);
        assert_eq!(options[0], format!("--gpu-architecture={target}"));
        for option in options {
            let is_include = option.starts_with("-I") || option.contains("include") || option.contains("-dir");
            assert!(!is_include && !option.contains(['/', '\\']), "{option}");
        }
    }
}

/// R21: two cards of different generations in one machine.
#[test]
fn devices_of_two_generations_get_an_image_each() {
    let kept = Mutex::default();
    let compiled = RefCell::new(Vec::new());
    let image = |capability: (u32, u32), version: (u32, u32), file, precision| {
        let key = Key { capability, version, file, precision };
        let architectures = [75, 80, 86];
        cached(&kept, key, || {
            let target = target(capability, &architectures).unwrap().to_string();
            compiled.borrow_mut().push(target.clone());
            Ok(target.into_bytes())
        })
        .unwrap()
    };
    let turing = image((7, 5), (13, 0), "cast", Precision::F16);
    let ampere = image((8, 6), (13, 0), "cast", Precision::F16);
    assert_eq!((turing.as_slice(), ampere.as_slice()), (&b"sm_75"[..], &b"sm_86"[..]));
    assert_eq!(image((7, 5), (13, 0), "cast", Precision::F16), turing, "kept");
    image((7, 5), (12, 9), "cast", Precision::F16);
    image((7, 5), (13, 0), "dropout", Precision::F16);
    image((7, 5), (13, 0), "cast", Precision::F32);
    assert_eq!(*compiled.borrow(), ["sm_75", "sm_86", "sm_75", "sm_75", "sm_75"]);
}

#[test]
fn a_failed_compilation_is_tried_again() {
    let kept = Mutex::default();
    let key = || Key { capability: (8, 0), version: (13, 0), file: "cast", precision: Precision::F32 };
    let failed = EngineError::Failed { what: "compiling".into(), reason: "no memory".into() };
    assert_eq!(cached(&kept, key(), || Err(failed.clone())), Err(failed));
    assert_eq!(*cached(&kept, key(), || Ok(vec![1])).unwrap(), [1]);
}
