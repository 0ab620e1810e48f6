//! Rules of the source tree that no compiler checks: who may use whom, where `unsafe` lives, which files have twins.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files below `folder` with one of the endings, as paths relative to the root, with their text.
fn files(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder exists") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| path.extension().is_some_and(|e| e == *ending)) {
                let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).expect("source text is UTF-8")));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no {endings:?} below {folder}");
    found
}

/// The part of a source file that is built into the program, without comments.
fn program_text(text: &str) -> String {
    // A test module at the end is cut off; one in a file of its own is only named here.
    let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    program.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_test(name: &str) -> bool {
    ["tests.rs", "fixture.rs"].iter().any(|ending| name.ends_with(ending)) || name.contains("/tests/")
}

/// No file of `folder` mentions any of `words`, outside comments and tests.
fn check_absent(folder: &str, words: &[&str]) {
    for (name, text) in files(folder, &["rs"]) {
        if is_test(&name) {
            continue;
        }
        let text = program_text(&text);
        for word in words {
            assert!(!text.contains(word), "{name} mentions {word:?}");
        }
    }
}

#[test]
fn compute_knows_no_window_and_no_arguments_and_prints_nothing() {
    check_absent("compute/src", &["egui", "eframe", "clap", "rfd::", "println!", "print!(", "dbg!"]);
}

#[test]
fn dependencies_run_one_way() {
    let all = ["crate::graph", "crate::models", "crate::plan", "crate::engine", "crate::bench"];
    let check = |path: &str, words: &[&str]| {
        let folder = path.trim_end_matches(".rs");
        let inside = if root().join(folder).is_dir() { files(folder, &["rs"]) } else { Vec::new() };
        let text = fs::read_to_string(root().join(path)).expect("the file exists");
        for (name, text) in inside.into_iter().chain([(path.to_owned(), text)]) {
            let text = program_text(&text);
            let found = words.iter().find(|word| text.contains(**word));
            assert!(is_test(&name) || found.is_none(), "{name} mentions {found:?}");
        }
    };
    check("compute/src/shape.rs", &all);
    check("compute/src/ops.rs", &all);
    check("compute/src/catalog.rs", &all);
    check("compute/src/graph.rs", &all[1..]);
    check("compute/src/models.rs", &all[2..]);
    check("compute/src/plan.rs", &["crate::models", "crate::engine", "crate::bench"]);
    check("compute/src/engine.rs", &["crate::graph", "crate::models", "crate::bench"]);
}

#[test]
fn unsafe_lives_in_the_cuda_engine_alone() {
    for (name, text) in files("compute/src", &["rs"]).into_iter().chain(files("app/src", &["rs"])) {
        let text = program_text(&text).replace("#[expect(unsafe_code", "");
        let is_cuda = name.starts_with("compute/src/engine/cuda");
        assert!(is_cuda || !text.contains("unsafe"), "{name} holds unsafe code");
    }
}

#[test]
fn no_file_silences_lints_as_a_whole() {
    for (name, text) in files("compute/src", &["rs"]).into_iter().chain(files("app/src", &["rs"])) {
        assert!(!text.contains("#![allow") && !text.contains("#[allow"), "{name}: use #[expect(…, reason = \"…\")]");
    }
}

/// A kernel text is named like the operation it computes. CUDA texts may also be what serves several
/// operations.
#[test]
fn shaders_are_named_like_operations() {
    let stem = |name: &str| Path::new(name).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let ops: BTreeSet<String> = files("compute/src/ops", &["rs"]).iter().map(|(name, _)| stem(name)).collect();
    let shared = ["element", "columns", "column_sums", "normalization", "gradient_finish", "check"];
    let mut computed = BTreeSet::new();
    for (name, text) in files("shaders", &["wgsl", "cu"]) {
        assert!(text.starts_with("//"), "{name} does not open with what it computes");
        let stem = stem(&name);
        let op = ops.iter().find(|op| stem == **op || stem.starts_with(&format!("{op}_")));
        let is_cuda = name.ends_with(".cu");
        let is_shared = is_cuda && shared.contains(&stem.as_str());
        assert!(op.is_some() || is_shared, "{name} is named like no operation of {ops:?}");
        computed.extend(op.map(|op| (op.clone(), is_cuda)));
    }
    // Twins: what one engine computes, the other does too.
    for (op, is_cuda) in &computed {
        let twin = if *is_cuda { "wgsl" } else { "cu" };
        assert!(computed.contains(&(op.clone(), !is_cuda)), "{op} has no text for the other engine, {op}*.{twin}");
    }
}

#[test]
fn the_top_level_holds_what_the_architecture_names() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md exists");
    for folder in ["app/", "compute/", "shaders/", "datasets/", "tests/"] {
        assert!(root().join(folder).is_dir(), "{folder} is missing");
        assert!(architecture.contains(folder), "ARCHITECTURE.md does not name {folder}");
    }
    for file in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", ".ci/run"] {
        assert!(root().join(file).is_file(), "{file} is missing");
    }
}
