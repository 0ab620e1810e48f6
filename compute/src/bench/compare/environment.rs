//! What differs around the numbers: two equal GPUs with different drivers are not one machine.

use std::collections::{BTreeMap, BTreeSet};

use super::Member;
use crate::bench::export::{Source, clock};
use crate::bench::store::host_of;

/// A property of the environment that is not the same in every column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs, such as `"device driver"` or `"library wgpu"`.
    pub property: String,
    /// Its value in each column; absent where it is not known.
    pub values: Vec<Option<String>>,
}

/// Properties that are not the same in every column.
pub(super) fn differences(sources: &[Source<'_>], members: &[Member<'_>]) -> Vec<Difference> {
    let properties: Vec<BTreeMap<String, String>> =
        members.iter().map(|member| properties(&sources[member.source], member)).collect();
    let mut names: Vec<&String> = Vec::new();
    for name in properties.iter().flat_map(BTreeMap::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let all = names.into_iter().map(|name| Difference {
        property: name.clone(),
        values: properties.iter().map(|properties| properties.get(name).cloned()).collect(),
    });
    all.filter(|difference| difference.values.iter().any(|value| *value != difference.values[0])).collect()
}

fn properties(source: &Source<'_>, member: &Member<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            found.insert(name.to_owned(), value);
        }
    };
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
    set("program", Some(source.file.program.clone()));
    if let Some(record) = member.records.first() {
        let host = host_of(source.file, record);
        set("operating system", Some(host.os));
        set("processor", Some(host.cpu));
        set("processor cores", host.cores.map(|cores| cores.to_string()));
        set("main memory", host.memory_bytes.map(gib));
        set("graphics driver", host.driver);
    }
    if let Some(device) = member.device.and_then(|index| source.file.devices.get(index)) {
        set("device", Some(device.name.clone()));
        set("device memory", device.memory_bytes.map(gib));
        set("device driver", device.driver.clone());
        set("interface", device.api.clone());
    }
    let mut libraries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut clocks = BTreeSet::new();
    for record in &member.records {
        for (library, version) in &record.libraries {
            libraries.entry(library).or_default().insert(version);
        }
        clocks.extend(record.timing.iter().map(|timing| clock(timing.clock)));
    }
    set("clock", Some(clocks.into_iter().collect::<Vec<_>>().join(" and ")));
    for (library, versions) in libraries {
        set(&format!("library {library}"), Some(versions.into_iter().collect::<Vec<_>>().join(" and ")));
    }
    found
}
