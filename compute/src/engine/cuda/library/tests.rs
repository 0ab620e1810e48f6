use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::judge::Facts;
use super::*;
use crate::engine::cuda::nvrtc::{Target, target};

mod stubs;

/// A machine of empty files that stand for libraries, and what each says of itself.
struct Machine {
    folder: tempfile::TempDir,
    files: Vec<(String, Facts)>,
    variables: BTreeMap<String, OsString>,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, files: Vec::new(), variables: BTreeMap::new() }
    }

    /// A machine with a driver and, in its toolkit, every library.
    fn complete(driver: Version) -> Self {
        Self::new()
            .with("usr/lib/wsl/lib/libcuda.so.1", driver, None)
            .with("usr/local/cuda/lib64/libnvrtc.so.13", (13, 0), Some(13))
            .with("usr/local/cuda/lib64/libcublasLt.so.13", (13, 1), Some(13))
            .with("usr/local/cuda/lib64/libcudnn.so.9", (9, 14), Some(13))
    }

    /// Adds a library.
    fn with(mut self, path: &str, version: Version, cuda_major: Option<u32>) -> Self {
        let file = self.folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
        self.files.push((path.to_owned(), Facts { version, cuda_major, lacks: None }));
        self
    }

    /// Says of the last library that it lacks a function.
    fn lacking(mut self, function: &'static str) -> Self {
        self.files.last_mut().unwrap().1.lacks = Some(function);
        self
    }

    /// Takes away a library.
    fn without(self, part: Part) -> Self {
        let folder = self.folder.path();
        for (path, _) in self.files.iter().filter(|(path, _)| path.contains(stem(part))) {
            fs::remove_file(folder.join(path)).unwrap();
        }
        self
    }

    /// Sets an environment variable to a folder of the machine.
    fn pointing(mut self, variable: &str, folder: &str) -> Self {
        self.variables.insert(variable.to_owned(), self.folder.path().join(folder).into());
        self
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings { variables: self.variables.clone(), root: self.folder.path().to_owned(), has_loader: false }
    }

    fn open(&self, place: &Place) -> Result<Opened, Refusal> {
        let Place::File(path) = place else { return Err(Refusal::Absent) };
        let known = self.files.iter().find(|(file, _)| self.folder.path().join(file) == *path);
        let (_, facts) = known.ok_or_else(|| Refusal::Broken("invalid ELF header".to_owned()))?;
        Ok(Opened { library: stubs::this_program(), facts: facts.clone(), folder: None })
    }

    fn find(&self, part: Part, driver: Option<Version>) -> Presence {
        find(part, &self.surroundings(), driver, &|_, place: &Place| self.open(place))
    }

    /// What is said of the libraries, with paths as they would be on a real machine.
    fn remarks(&self, libraries: &Libraries) -> Vec<String> {
        let root = self.folder.path().to_str().unwrap();
        libraries.remarks().into_iter().map(|remark| remark.replace(root, "")).collect()
    }

    fn libraries(&self) -> Libraries {
        Libraries::find(&self.surroundings(), |_, place| self.open(place))
    }
}

fn stem(part: Part) -> &'static str {
    match part {
        Part::Driver => "libcuda.",
        Part::Nvrtc => "libnvrtc.",
        Part::CublasLt => "libcublasLt.",
        Part::Cudnn => "libcudnn.",
    }
}

/// Version that is found, or what is said where none will do.
fn outcome(presence: Presence) -> Result<Version, String> {
    presence.map(|found| found.version).map_err(|missing| missing.to_string())
}

/// R17: of all libraries only cuDNN 9, under the name with its major version.
#[test]
fn cudnn_9_is_found_under_the_name_with_its_version() {
    let machine = Machine::new().with("libs/libcudnn.so.9", (9, 14), Some(13)).pointing(search::USER_FOLDERS, "libs");
    assert_eq!(outcome(machine.find(Part::Cudnn, Some((13, 0)))), Ok((9, 14)));
    for part in [Part::Driver, Part::Nvrtc, Part::CublasLt] {
        let said = outcome(machine.find(part, Some((13, 0)))).unwrap_err();
        for expected in ["not found in BATCHMARK_LIBRARIES (", "/libs); ", "install"] {
            assert!(part == Part::Driver || said.contains(expected), "{expected:?} in {said}");
        }
        assert!(said.contains(part.purpose()) || part == Part::Driver, "{said}");
    }
    let libraries = machine.libraries();
    assert!(libraries.driver.is_err() && libraries.cudnn.is_err(), "without a driver nothing else is looked for");
}

/// R18: what is too old is said to be, and what it needs.
#[test]
fn an_old_driver_is_refused_with_the_version_that_is_needed() {
    let with = |version| Machine::new().with("usr/lib/wsl/lib/libcuda.so.1", version, None);
    assert_eq!(outcome(with((12, 0)).find(Part::Driver, None)), Ok((12, 0)));
    let said = outcome(with((11, 8)).find(Part::Driver, None)).unwrap_err();
    for expected in
        ["libcuda.so.1: it supports CUDA 11.8 and is too old, CUDA 12.0 is needed", "version 525.60 or later"]
    {
        assert!(said.contains(expected), "{expected:?} in {said}");
    }
    let said = outcome(with((12, 0)).lacking("cuGraphLaunch").find(Part::Driver, None)).unwrap_err();
    assert!(said.contains("lacks the function cuGraphLaunch; a driver for CUDA 12.0 or later has it"), "{said}");
    // Only what is called is demanded: these came with CUDA 12.5 and 12.8.
    for newer in ["cuCtxCreate_v4", "cuEventElapsedTime_v2"] {
        assert!(!open::functions(Part::Driver).contains(&newer), "{newer}");
    }
}

#[test]
fn old_libraries_are_refused() {
    let machine = Machine::new()
        .with("usr/local/cuda/lib64/libcudnn.so.8", (8, 9), Some(12))
        .with("usr/local/cuda/lib64/libnvrtc.so.11", (11, 8), Some(11))
        .with("usr/local/cuda/lib64/libcublasLt.so.12", (12, 1), Some(12))
        .lacking("cublasLtMatmul");
    for (part, expected) in [
        (Part::Cudnn, "libcudnn.so.8: it is version 8.9, version 9 is needed; install it"),
        (Part::Nvrtc, "version 11.8 is too old, 12.0 is needed"),
        (Part::CublasLt, "version 12.1 lacks the function cublasLtMatmul"),
    ] {
        let said = outcome(machine.find(part, Some((12, 4)))).unwrap_err();
        assert!(said.contains(expected), "{expected:?} in {said}");
    }
    fs::write(machine.folder.path().join("usr/local/cuda/lib64/libcudnn.so.9"), "text").unwrap();
    let said = outcome(machine.find(Part::Cudnn, Some((12, 4)))).unwrap_err();
    assert!(said.contains("invalid ELF header") && said.contains("nvidia-cudnn-cu12"), "{said}");
}

/// R19: names of both major versions, whatever this program was compiled for.
#[test]
fn both_major_versions_are_looked_for() {
    for part in [Part::Nvrtc, Part::CublasLt] {
        let names = search::loader_names(part);
        for major in ["12", "13"] {
            assert!(names.iter().any(|name| name.contains(major)), "{major} in {names:?}");
        }
    }
    let machine = Machine::new().with("usr/local/cuda-12.9/lib64/libcublasLt.so.12", (12, 9), Some(12)).with(
        "usr/local/cuda-13.0/lib64/libcublasLt.so.13",
        (13, 0),
        Some(13),
    );
    assert_eq!(outcome(machine.find(Part::CublasLt, Some((13, 0)))), Ok((13, 0)));
    assert_eq!(outcome(machine.find(Part::CublasLt, Some((12, 4)))), Ok((12, 9)));
    let machine = machine.without(Part::CublasLt).with("opt/cuda/lib64/libcublasLt.so.13", (13, 0), Some(13));
    let said = outcome(machine.find(Part::CublasLt, Some((12, 4)))).unwrap_err();
    assert!(said.contains("built for CUDA 13 and newer than the driver, which supports CUDA 12.4"), "{said}");
    assert!(said.contains("pip install nvidia-cublas-cu12"), "{said}");
}

/// R20: a compiler newer than the driver compiles to machine code, and the two versions are told.
#[test]
fn a_compiler_newer_than_the_driver_is_the_second_choice() {
    let machine = Machine::new().with("usr/local/cuda/lib64/libnvrtc.so.13", (13, 0), Some(13));
    let found = machine.find(Part::Nvrtc, Some((12, 4))).unwrap();
    let remark = found.remark.unwrap();
    for expected in ["NVRTC 13.0 is newer than the driver, which supports CUDA 12.4", "CUBIN", "nvidia-cuda-nvrtc-cu12"]
    {
        assert!(remark.contains(expected), "{expected:?} in {remark}");
    }
    assert_eq!(target((8, 6), &[75, 80, 86, 89, 90]), Some(Target::Cubin("sm_86".to_owned())));
    let machine = machine.with("opt/cuda-12.4/lib64/libnvrtc.so.12", (12, 4), Some(12));
    let found = machine.find(Part::Nvrtc, Some((12, 4))).unwrap();
    assert_eq!((found.version, found.remark), ((12, 4), None));
    // The minor version does not matter.
    let machine = Machine::new().with("opt/cuda/lib64/libnvrtc.so.12", (12, 9), Some(12));
    assert_eq!(machine.find(Part::Nvrtc, Some((12, 0))).unwrap().remark, None);
}

/// R24: what is said with each library missing in turn.
#[test]
fn each_missing_library_is_named_with_what_is_lost() {
    let place = "in /usr/local/cuda/lib64";
    let machine = Machine::complete((13, 0));
    let all = machine.libraries();
    let summary = format!("cuDNN 9.14 {place}, cuBLASLt 13.1 {place}, NVRTC 13.0 {place}");
    assert_eq!((all.tier(), machine.remarks(&all)), (Tier::Vendor, vec![summary]));
    let keys: BTreeSet<String> = all.versions().into_keys().collect();
    assert_eq!(keys, ["cublaslt", "cuda", "cudnn", "nvrtc"].map(str::to_owned).into());
    for (part, tier, expected) in [
        (Part::Cudnn, Tier::Own, format!("own kernels only (cuBLASLt 13.1 {place}, NVRTC 13.0 {place} found)")),
        (Part::CublasLt, Tier::Own, format!("own kernels only (cuDNN 9.14 {place}, NVRTC 13.0 {place} found)")),
        (
            Part::Nvrtc,
            Tier::Ahead,
            format!("own kernels only, compiled ahead of time (cuDNN 9.14 {place}, cuBLASLt 13.1 {place} found)"),
        ),
    ] {
        let machine = Machine::complete((13, 0)).without(part);
        let libraries = machine.libraries();
        assert_eq!(libraries.tier(), tier, "{part:?}");
        let remarks = machine.remarks(&libraries);
        let [summary, reason] = &remarks[..] else { panic!("{remarks:?}") };
        assert_eq!(*summary, expected);
        for expected in [part.name(), part.purpose(), "was not found in CUDA toolkits (", "pip install nvidia-"] {
            assert!(reason.contains(expected), "{expected:?} in {reason}");
        }
    }
    let libraries = Machine::complete((13, 0)).without(Part::Driver).libraries();
    let said = libraries.driver.unwrap_err().to_string();
    assert!(said.starts_with("no NVIDIA driver was found in ") && said.contains("install its driver"), "{said}");
}

#[test]
fn places_are_tried_in_their_order() {
    let machine = Machine::new()
        .with("usr/local/cuda/lib64/libnvrtc.so.13", (13, 0), Some(13))
        .with("usr/local/cuda-12.9/lib64/libnvrtc.so.12", (12, 9), Some(12))
        .with("usr/local/cuda-13.5/lib64/libnvrtc.so.13", (13, 5), Some(13))
        .with("toolkit/lib/libnvrtc.so.13", (13, 2), Some(13))
        .with("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", (13, 1), Some(13))
        .with("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", (12, 8), Some(12))
        .with("home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", (12, 1), Some(12))
        .with("home/.local/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", (12, 2), Some(12))
        .with("packages/nvidia/cu13/lib/libnvrtc.so.13", (13, 4), Some(13))
        .with("tools/bin/python3", (0, 0), None)
        .with("tools/lib/python3.13/site-packages/nvidia/cu13/lib/libnvrtc.so.13", (13, 3), Some(13))
        .with("mine/libnvrtc.so.13", (13, 6), Some(13))
        .with("mine/libnvrtc.alt.so.13", (0, 0), None)
        .with("mine/libnvrtc-builtins.so.13.6", (0, 0), None)
        .pointing("CUDA_HOME", "toolkit")
        .pointing("VIRTUAL_ENV", "venv")
        .pointing("HOME", "home")
        .pointing("PYTHONPATH", "packages")
        .pointing("PATH", "tools/bin")
        .pointing(search::USER_FOLDERS, "mine");
    let root = machine.folder.path();
    let places = machine.surroundings().places(Part::Nvrtc);
    let places: Vec<&str> = places
        .iter()
        .map(|place| match place {
            Place::File(path) => path.strip_prefix(root).unwrap().to_str().unwrap(),
            Place::Loader(name) => name,
        })
        .collect();
    let expected = [
        "toolkit/lib/libnvrtc.so.13",
        "usr/local/cuda/lib64/libnvrtc.so.13",
        "usr/local/cuda-13.5/lib64/libnvrtc.so.13",
        "usr/local/cuda-12.9/lib64/libnvrtc.so.12",
        "packages/nvidia/cu13/lib/libnvrtc.so.13",
        "venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
        "tools/lib/python3.13/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
        "home/.local/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "mine/libnvrtc.so.13",
    ];
    assert_eq!(places, expected);
    let by_name = Surroundings { has_loader: true, ..machine.surroundings() }.places(Part::Nvrtc);
    assert_eq!(by_name[..2], ["libnvrtc.so", "libnvrtc.so.13"].map(|name| Place::Loader(name.to_owned())));
}

/// What a binding demands is listed, so that a library without it is refused by its name and place.
#[test]
fn every_function_that_is_looked_up_is_listed() {
    let bindings = [
        (Part::Driver, include_str!("../driver.rs")),
        (Part::Nvrtc, include_str!("../nvrtc.rs")),
        (Part::CublasLt, include_str!("../cublaslt/api.rs")),
        (Part::Cudnn, include_str!("../cudnn/api.rs")),
    ];
    // Asked of a library before anything else.
    let asked = ["nvrtcVersion", "cudnnGetVersion"];
    for (part, text) in bindings {
        let calls = text.split("symbol(library, \"").skip(1);
        let demanded = calls.filter_map(|call| call.split_once('"')).filter(|(_, rest)| rest.starts_with(")?"));
        let mut count = 0;
        for (name, _) in demanded.filter(|(name, _)| !asked.contains(name)) {
            assert!(open::functions(part).contains(&name), "{part:?} lists no {name}");
            count += 1;
        }
        assert!(count > 5, "{part:?}: {count} functions");
    }
}
