//! The Markdown table that llama-bench prints, with the device above it and the build below.

use serde_json::Value;

use super::{Draft, Fact, Measured, Test, entry};
use crate::import::Fault;
use crate::import::text::{quoted, shorten};

/// Whether a line is the head of such a table.
pub(super) fn is_header(line: &str) -> bool {
    let cells = cells(line);
    cells.contains(&"model") && cells.contains(&"test") && cells.contains(&"t/s")
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    let inside = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inside.map(|inside| inside.split('|').map(str::trim).collect()).unwrap_or_default()
}

/// Reads every row.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let build = text.lines().find_map(build);
    let devices: Vec<&str> = text.lines().filter_map(device).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (line, number) in text.lines().zip(1u64..) {
        let cells = cells(line);
        if is_header(line) {
            columns = cells;
            continue;
        }
        let is_rule = cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' ')));
        if cells.is_empty() || columns.is_empty() || is_rule {
            continue;
        }
        if cells.len() != columns.len() {
            let reason = format!("it has {} cells where the header has {}", cells.len(), columns.len());
            return Err(Fault::at(number, reason));
        }
        let cell = |name: &str| columns.iter().position(|column| *column == name).map_or("", |place| cells[place]);
        let test = test(cell("test")).ok_or_else(|| {
            Fault::at(number, format!("the test is {}, expected one such as pp512 or tg128", quoted(cell("test"))))
        })?;
        let rate = cell("t/s");
        let mut parts = rate.split(['±', '\u{fffd}']).map(|part| part.trim().parse::<f64>().ok());
        let mean = parts.next().flatten().filter(|mean| mean.is_finite());
        let mean =
            mean.ok_or_else(|| Fault::at(number, format!("{} is no rate such as 118.88 ± 1.04", quoted(rate))))?;
        let measured =
            if mean > 0.0 { Measured::Other } else { Measured::Failed(format!("its file gives {mean} tokens/s")) };
        let mut entry = entry(cell("model"), &test, mean, measured);
        entry.device = match devices[..] {
            [device] => Fact::Stated(device.to_owned()),
            [device, ..] => {
                Fact::Guessed(device.to_owned(), "its file lists every GPU of the machine, not the ones that were used")
            }
            [] => Fact::Unknown,
        };
        entry.engine = "llama.cpp".to_owned();
        if let Some((commit, number)) = &build {
            entry.engine = format!("llama.cpp b{number}");
            entry.libraries.insert("llama.cpp".to_owned(), format!("b{number} {commit}"));
        }
        let deviation = parts.next().flatten().filter(|deviation| deviation.is_finite());
        entry.extra.extend(deviation.map(|deviation| ("stddev_ts".to_owned(), Value::from(deviation))));
        for (column, cell) in
            columns.iter().zip(&cells).filter(|(column, _)| !["model", "test", "t/s"].contains(column))
        {
            entry.extra.insert(shorten(column, 40), Value::from(shorten(cell, 100)));
        }
        draft.add(entry);
    }
    Ok(())
}

/// The test of a cell such as `pp512`, `tg128`, `pp512+tg128` or `pp512 @ d4096`.
fn test(cell: &str) -> Option<Test> {
    let (kind, depth) = cell.split_once('@').unwrap_or((cell, ""));
    let mut test = Test { n_prompt: 0, n_gen: 0, n_depth: 0 };
    for part in kind.split('+').map(str::trim) {
        if let Some(n) = part.strip_prefix("pp") {
            test.n_prompt = n.parse().ok()?;
        } else {
            test.n_gen = part.strip_prefix("tg")?.parse().ok()?;
        }
    }
    if !depth.is_empty() {
        test.n_depth = depth.trim().strip_prefix('d')?.parse().ok()?;
    }
    Some(test)
}

/// Commit and number of a line such as `build: 1d36b361 (3436)`.
fn build(line: &str) -> Option<(String, u64)> {
    let (commit, rest) = line.trim().strip_prefix("build: ")?.split_once(" (")?;
    Some((commit.to_owned(), rest.trim_end_matches(')').parse().ok()?))
}

/// The name in a line such as `Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes`.
fn device(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("Device ")?;
    let (index, rest) = rest.split_once(": ")?;
    index.parse::<u32>().ok()?;
    Some(rest.split(',').next().unwrap_or(rest).trim())
}
