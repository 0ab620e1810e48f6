//! Where a library may lie: what the system's loader knows, toolkit folders, Python environments, the user's folders.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::Part;

/// Environment variable with folders that a user names, separated as in `PATH`.
pub(super) const USER_FOLDERS: &str = "BATCHMARK_LIBRARIES";

/// Environment variables that the search reads.
const VARIABLES: [&str; 12] = [
    USER_FOLDERS,
    "APPDATA",
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_ROOT",
    "HOME",
    "PATH",
    "ProgramFiles",
    "PYTHONPATH",
    "USERPROFILE",
    "VIRTUAL_ENV",
];

/// What the search sees of the machine.
#[derive(Clone, Debug, Default)]
pub(in crate::engine::cuda) struct Surroundings {
    /// Environment variables.
    pub(super) variables: BTreeMap<String, OsString>,
    /// Folder that stands for `/`.
    pub(super) root: PathBuf,
    /// Whether the system's loader is asked; tests look in folders alone.
    pub(super) has_loader: bool,
}

/// Where to try a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// By name, wherever the system's loader finds it.
    Loader(String),
    /// This file.
    File(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loader(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Surroundings {
    /// Those of this process.
    pub(in crate::engine::cuda) fn of_process() -> Self {
        let variables = VARIABLES.iter().filter_map(|&name| Some((name.to_owned(), std::env::var_os(name)?)));
        Self { variables: variables.collect(), root: PathBuf::from("/"), has_loader: true }
    }

    /// Where to try a library, in this order.
    pub(super) fn places(&self, part: Part) -> Vec<Place> {
        let by_name = loader_names(part).into_iter().map(Place::Loader).filter(|_| self.has_loader);
        let mut places: Vec<Place> = by_name.collect();
        for folder in self.folders(part).into_iter().flat_map(|(_, folders)| folders) {
            for file in files_of(part, &folder).into_iter().map(Place::File) {
                if !places.contains(&file) {
                    places.push(file);
                }
            }
        }
        places
    }

    /// Where a library was looked for, in a few words.
    pub(super) fn searched(&self, part: Part) -> String {
        let loader = self.has_loader.then(|| "the system's library folders".to_owned());
        let others = self.folders(part).into_iter().map(|(kind, folders)| match folders.as_slice() {
            [folder] => format!("{kind} ({})", folder.display()),
            folders => format!("{kind} ({} folders)", folders.len()),
        });
        let all: Vec<String> = loader.into_iter().chain(others).collect();
        if all.is_empty() { "any folder".to_owned() } else { all.join(", ") }
    }

    /// Folders that exist, by kind, in the order in which they are tried.
    fn folders(&self, part: Part) -> Vec<(&'static str, Vec<PathBuf>)> {
        let kinds = match part {
            Part::Driver => vec![("driver folders", self.driver_folders())],
            _ => vec![("CUDA toolkits", self.toolkit_folders(part)), ("Python environments", self.wheel_folders(part))],
        };
        let user = (USER_FOLDERS, self.paths(USER_FOLDERS));
        let existing = |(kind, folders): (&'static str, Vec<PathBuf>)| {
            let mut once: Vec<PathBuf> = Vec::new();
            for folder in folders {
                if folder.is_dir() && !once.contains(&folder) {
                    once.push(folder);
                }
            }
            (!once.is_empty()).then_some((kind, once))
        };
        kinds.into_iter().chain([user]).filter_map(existing).collect()
    }

    /// Where drivers lie that the loader is not told of: containers, WSL, NixOS.
    fn driver_folders(&self) -> Vec<PathBuf> {
        let folders = ["usr/lib/wsl/lib", "usr/local/nvidia/lib64", "usr/lib64/nvidia", "run/opengl-driver/lib"];
        folders.iter().map(|folder| self.root.join(folder)).collect()
    }

    fn toolkit_folders(&self, part: Part) -> Vec<PathBuf> {
        let named = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].iter().filter_map(|name| self.path(name));
        let mut roots: Vec<PathBuf> = named.collect();
        for parent in ["usr/local", "opt"] {
            let parent = self.root.join(parent);
            roots.push(parent.join("cuda"));
            roots.extend(children(&parent, "cuda-"));
        }
        if let Some(programs) = self.path("ProgramFiles") {
            roots.extend(children(&programs.join("NVIDIA GPU Computing Toolkit/CUDA"), "v"));
            if part == Part::Cudnn {
                let versions = children(&programs.join("NVIDIA/CUDNN"), "v9");
                roots.extend(versions.into_iter().flat_map(|version| children(&version.join("bin"), "")));
            }
        }
        let inside = ["", "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "bin", "bin/x64"];
        roots.iter().flat_map(|root| inside.iter().map(|folder| root.join(folder))).collect()
    }

    /// Folders of the `nvidia` wheels of every Python environment: `nvidia/cu13/lib`, `nvidia/<part>/lib`; on Windows
    /// `bin` for `lib`. Environments of Conda have a folder of their own beside.
    fn wheel_folders(&self, part: Part) -> Vec<PathBuf> {
        let own = match part {
            Part::Driver => return Vec::new(),
            Part::Nvrtc => "cuda_nvrtc",
            Part::CublasLt => "cublas",
            Part::Cudnn => "cudnn",
        };
        let mut folders: Vec<PathBuf> = Vec::new();
        for packages in self.package_folders() {
            let nvidia = packages.join("nvidia");
            for wheel in std::iter::once(nvidia.join(own)).chain(children(&nvidia, "cu1")) {
                folders.extend(["lib", "bin", "bin/x86_64"].iter().map(|folder| wheel.join(folder)));
            }
        }
        let conda = self.path("CONDA_PREFIX").into_iter();
        folders
            .extend(conda.flat_map(|conda| ["lib", "targets/x86_64-linux/lib", "Library/bin"].map(|f| conda.join(f))));
        folders
    }

    /// Folders that hold Python packages: of the active environment, of the one that `PATH` reaches, of the user, of the
    /// system.
    fn package_folders(&self) -> Vec<PathBuf> {
        let mut prefixes: Vec<PathBuf> =
            ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| self.path(name)).collect();
        let in_path = self.paths("PATH").into_iter().filter(|bin| bin.join("python3").exists());
        prefixes.extend(in_path.filter_map(|bin| bin.parent().map(Path::to_owned)));
        let home = self.path("HOME").or_else(|| self.path("USERPROFILE"));
        if let Some(home) = &home {
            prefixes.extend([".local", "miniconda3", "anaconda3", "miniforge3"].map(|folder| home.join(folder)));
            prefixes.extend(children(&home.join(".pyenv/versions"), "3"));
        }
        prefixes.extend(["usr/local", "usr", "opt/conda", "opt/venv"].map(|folder| self.root.join(folder)));
        let mut folders = self.paths("PYTHONPATH");
        for prefix in prefixes {
            let lib = prefix.join("lib");
            for python in children(&lib, "python3") {
                folders.extend(["site-packages", "dist-packages"].map(|packages| python.join(packages)));
            }
            folders.push(prefix.join("Lib/site-packages"));
        }
        if let Some(data) = self.path("APPDATA") {
            folders.extend(children(&data.join("Python"), "Python3").into_iter().map(|f| f.join("site-packages")));
        }
        folders
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    fn paths(&self, name: &str) -> Vec<PathBuf> {
        let value = self.variables.get(name);
        let folders = value.into_iter().flat_map(std::env::split_paths);
        folders.filter(|folder| !folder.as_os_str().is_empty()).collect()
    }
}

/// Names under which the system's loader may know a library, of both major versions of CUDA and of one to come (R19).
/// They begin in the order in which cudarc tries them, so that both settle on the same file.
pub(super) fn loader_names(part: Part) -> Vec<String> {
    let names: &[&str] = match part {
        Part::Driver if cfg!(windows) => &["nvcuda.dll"],
        Part::Driver => &["libcuda.so", "libcuda.so.1"],
        Part::Nvrtc if cfg!(windows) => &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"],
        Part::Nvrtc => &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.14"],
        Part::CublasLt if cfg!(windows) => &["cublasLt64_13.dll", "cublasLt64_12.dll"],
        Part::CublasLt => &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.14"],
        Part::Cudnn if cfg!(windows) => &["cudnn64_9.dll"],
        Part::Cudnn => &["libcudnn.so", "libcudnn.so.9"],
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Files of a folder that are a library, the newest version first. Of several names of one version only that with the
/// major version alone is taken, which is how others will ask for it.
fn files_of(part: Part, folder: &Path) -> Vec<PathBuf> {
    let stem = match part {
        Part::Driver => "cuda",
        Part::Nvrtc => "nvrtc",
        Part::CublasLt => "cublasLt",
        Part::Cudnn => "cudnn",
    };
    let is_library = |name: &str| {
        let version = if cfg!(windows) {
            let rest = name.strip_prefix(if part == Part::Driver { "nvcuda" } else { stem });
            rest.and_then(|rest| rest.strip_suffix(".dll")).map(|rest| rest.trim_start_matches("64_"))
        } else {
            name.strip_prefix("lib").and_then(|rest| rest.strip_prefix(stem)).and_then(|rest| rest.strip_prefix(".so"))
        };
        version.is_some_and(|version| version.trim_start_matches('.').chars().all(|c| c.is_ascii_digit() || c == '_'))
    };
    let mut files = entries(folder, is_library);
    files.sort_by_key(|file| std::cmp::Reverse(numbers(file)));
    files
}

/// Folders of `parent` whose names begin with `prefix`, the highest version first.
fn children(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut folders = entries(parent, |name| name.starts_with(prefix));
    folders.retain(|folder| folder.is_dir());
    folders.sort_by_key(|folder| std::cmp::Reverse(numbers(folder)));
    folders
}

fn entries(folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let fitting = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(&fits));
    fitting.map(|entry| entry.path()).collect()
}

/// Numbers in a file's name, as a version.
fn numbers(path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
