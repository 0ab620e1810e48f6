//! How the name that a driver gives a device finds its row in the catalog.
//!
//! A name is taken apart into words, form factor (`SXM4`, `PCIe`, `NVL`) and memory. Words must agree in full, so that a
//! `"GeForce RTX 4090 Laptop GPU"`, another chip, is not found; form factor and memory must agree where both state them.
//! Vendors, trademarks and words without meaning are left out on both sides.

use super::{Gpu, all};

/// Words that tell no two GPUs apart.
const NOISE: [&str; 15] = [
    "nvidia",
    "amd",
    "intel",
    "mesa",
    "geforce",
    "tesla",
    "graphics",
    "gpu",
    "workstation",
    "edition",
    "generation",
    "with",
    "design",
    "tm",
    "r",
];

/// Names of drivers that say less or other things than the catalog, taken apart and put together again.
const DRIVERS_NAMES: [(&str, &str); 6] = [
    // The modules are called after the chip alone, the cards "H200 NVL".
    ("h200", "H200 SXM 141 GB"),
    ("h100 hbm3 80gb", "H100 SXM5 80 GB"),
    // The processor's memory, not the GPU's.
    ("gh200 480gb", "GH200 96 GB"),
    ("gb200", "GB200 (per GPU)"),
    ("gb200 186gb", "GB200 (per GPU)"),
    // As wgpu and CUDA have it in former years.
    ("titan black", "GeForce GTX TITAN BLACK"),
];

/// Share by which the memory that a driver reports may differ from the catalog's: error correction, and a firmware's
/// own part.
const MEMORY_TOLERANCE: f64 = 0.12;

/// A name in its parts.
struct Parts {
    words: Vec<String>,
    form: Option<String>,
    memory_gb: Option<u64>,
}

/// The GPU that a driver calls `name`, such as `"NVIDIA GeForce RTX 4090"` or `"Tesla V100-SXM2-16GB"`. Nothing where
/// several fit, unless one has exactly this name.
pub fn find(name: &str) -> Option<&'static Gpu> {
    find_with_memory(name, None)
}

/// As [`find`], where the memory that the driver reports, in bytes, tells apart what shares a name, such as the
/// GeForce RTX 4060 Ti with 8 and with 16 GB. A GPU of another memory is not found.
pub fn find_with_memory(name: &str, memory_bytes: Option<u64>) -> Option<&'static Gpu> {
    // What stands in brackets belongs to the name, as in "TITAN X (Pascal)", or is a driver's or chip's, as in
    // "(RADV NAVI31)".
    choose(&parts(name), memory_bytes).or_else(|| {
        let bare = without_brackets(name);
        (bare != name).then(|| choose(&parts(&bare), memory_bytes)).flatten()
    })
}

fn choose(name: &Parts, memory_bytes: Option<u64>) -> Option<&'static Gpu> {
    let joined = name.joined();
    if let Some((_, row)) = DRIVERS_NAMES.iter().find(|(driver, _)| *driver == joined) {
        return all().iter().find(|gpu| gpu.name == *row);
    }
    let mut fitting: Vec<(&'static Gpu, Parts)> = all().iter().map(|gpu| (gpu, parts(&gpu.name))).collect();
    fitting.retain(|(gpu, row)| {
        let gib = gpu.memory_bytes.map(|bytes| bytes >> 30);
        let agrees = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
        row.words == name.words
            && (name.form.is_none() || name.form == row.form)
            && agrees(name.memory_gb, row.memory_gb.or(gib))
            && memory_bytes.is_none_or(|bytes| is_near(bytes, gpu.memory_bytes))
    });
    let exact = fitting.iter().find(|(_, row)| row.joined() == joined).map(|(gpu, _)| *gpu);
    match fitting.as_slice() {
        [(gpu, _)] => Some(gpu),
        _ => exact,
    }
}

/// Whether a driver's memory can be that of the catalog, where the catalog states it.
fn is_near(bytes: u64, stated: Option<u64>) -> bool {
    stated.is_none_or(|stated| (bytes as f64 / stated as f64 - 1.0).abs() <= MEMORY_TOLERANCE)
}

impl Parts {
    fn joined(&self) -> String {
        let memory = self.memory_gb.map(|gb| format!("{gb}gb"));
        let all = self.words.iter().chain(&self.form).cloned().chain(memory);
        all.collect::<Vec<String>>().join(" ")
    }
}

fn parts(name: &str) -> Parts {
    let lower = name.to_lowercase();
    let mut parts = Parts { words: Vec::new(), form: None, memory_gb: None };
    for word in lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if word == "gb" {
            // "16 GB" is "16GB".
            parts.memory_gb = parts.words.pop().and_then(|number| number.parse().ok());
        } else if let Some(gb) = word.strip_suffix("gb").and_then(|number| number.parse().ok()) {
            parts.memory_gb = Some(gb);
        } else if is_form(word) {
            parts.form = Some(word.to_owned());
        } else if !NOISE.contains(&word) {
            parts.words.push(word.to_owned());
        }
    }
    // "Radeon Instinct MI100" became "Instinct MI300X" in the drivers.
    if parts.words.get(1).is_some_and(|word| word == "instinct") {
        parts.words.remove(0);
    }
    parts
}

fn is_form(word: &str) -> bool {
    matches!(word, "pcie" | "nvl") || word.strip_prefix("sxm").is_some_and(|rest| rest.len() <= 1)
}

/// The name without what stands in brackets, unless that says that it is another chip.
fn without_brackets(name: &str) -> String {
    let mut bare = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('(') {
        let Some((inside, after)) = after.split_once(')') else { break };
        bare.push_str(before);
        if ["laptop", "mobile", "max-q"].iter().any(|word| inside.to_lowercase().contains(word)) {
            bare.push_str(inside);
        }
        rest = after;
    }
    bare.push_str(rest);
    bare
}
