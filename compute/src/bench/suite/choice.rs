//! Which devices and engines a suite runs on.

use super::Target;
use crate::engine::{Device, DeviceKind, EngineKind, Listing};

/// Why no device could be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChooseError {
    /// Nothing fits what was asked for.
    #[error("{asked}; there are: {available}")]
    NoMatch {
        /// What was asked for and why it can't be had.
        asked: String,
        /// Devices and engines that exist.
        available: String,
    },
}

/// Devices to run on. Without engine and device: a real GPU, through CUDA where that works, else through WGSL, which on
/// an NVIDIA GPU is explained; else the CPU reference with the reason. A software adapter only when it or its engine is
/// named, in the latter case with the reason. A device may be named by its identifier in any engine, its UUID or its PCI
/// address; without an engine it is taken once, on the first that works.
///
/// # Errors
/// [`ChooseError`] when a named engine or device does not exist or is unavailable.
pub fn choose(listings: &[Listing], engines: &[EngineKind], devices: &[String]) -> Result<Vec<Target>, ChooseError> {
    if engines.is_empty() && devices.is_empty() {
        return best_of_all(listings).map(|target| vec![target]);
    }
    let mut targets: Vec<Target> = Vec::new();
    if devices.is_empty() {
        for &engine in engines {
            targets.push(best_of_engine(listings, engine)?);
        }
    }
    for id in devices {
        targets.extend(named(listings, engines, id)?);
    }
    let mut once: Vec<Target> = Vec::new();
    for target in targets {
        if !once.iter().any(|other| other.listing == target.listing) {
            once.push(target);
        }
    }
    Ok(once)
}

fn best_of_all(listings: &[Listing]) -> Result<Target, ChooseError> {
    let gpu = best(listings, |listing| listing.engine != EngineKind::Cpu && is_gpu(listing.device.kind));
    if let Some(listing) = gpu {
        let reason = why_not_cuda(listings, &listing);
        return Ok(Target { listing, reason });
    }
    let cpu = best(listings, |listing| listing.engine == EngineKind::Cpu);
    let listing = cpu.ok_or_else(|| no_match(listings, "no device can be used".to_owned()))?;
    let others: Vec<String> = listings.iter().filter(|other| other.engine != EngineKind::Cpu).map(why_not).collect();
    let reason = if others.is_empty() { "no GPU was found".to_owned() } else { others.join("; ") };
    Ok(Target { listing, reason: Some(format!("the CPU reference is used: {reason}")) })
}

/// Why an NVIDIA GPU is reached through another engine than CUDA.
fn why_not_cuda(listings: &[Listing], chosen: &Listing) -> Option<String> {
    if chosen.engine == EngineKind::Cuda || chosen.device.vendor.as_deref() != Some("NVIDIA") {
        return None;
    }
    let cuda = listings.iter().find(|other| other.engine == EngineKind::Cuda && other.unavailable.is_some())?;
    Some(format!("engine {} is used: {}", chosen.engine, why_not(cuda)))
}

fn best_of_engine(listings: &[Listing], engine: EngineKind) -> Result<Target, ChooseError> {
    let listing = best(listings, |listing| listing.engine == engine).ok_or_else(|| {
        let why: Vec<String> = listings.iter().filter(|other| other.engine == engine).map(why_not).collect();
        let why = if why.is_empty() { "it found no device".to_owned() } else { why.join("; ") };
        no_match(listings, format!("engine {engine} can't be used: {why}"))
    })?;
    let software = listing.device.kind == DeviceKind::Software;
    let reason =
        software.then(|| format!("{} is a software adapter, engine {engine} found no GPU", listing.device.name));
    Ok(Target { listing, reason })
}

/// The device on each of the engines, or without any on the first that can.
fn named(listings: &[Listing], engines: &[EngineKind], id: &str) -> Result<Vec<Target>, ChooseError> {
    let of_device: Vec<&Listing> = listings.iter().filter(|listing| is_called(&listing.device, id)).collect();
    if of_device.is_empty() {
        return Err(no_match(listings, format!("unknown device {id:?}")));
    }
    let usable = |engine: Option<EngineKind>| {
        let asked = || of_device.iter().filter(|listing| engine.is_none_or(|engine| listing.engine == engine));
        asked().find(|listing| listing.unavailable.is_none()).ok_or_else(|| {
            let why: Vec<String> = asked().map(|listing| why_not(listing)).collect();
            let why = if why.is_empty() { "that engine does not have it".to_owned() } else { why.join("; ") };
            let on = engine.map_or(String::new(), |engine| format!(" on engine {engine}"));
            no_match(listings, format!("device {id:?} can't be used{on}: {why}"))
        })
    };
    let listings: Result<Vec<&&Listing>, ChooseError> = if engines.is_empty() {
        usable(None).map(|listing| vec![listing])
    } else {
        engines.iter().map(|&engine| usable(Some(engine))).collect()
    };
    Ok(listings?.into_iter().map(|&listing| Target { listing: listing.clone(), reason: None }).collect())
}

/// Whether a device is what a user calls `id`: its identifier, UUID or PCI address. Two engines that reach one GPU need
/// not call it the same.
fn is_called(device: &Device, id: &str) -> bool {
    let names = [Some(&device.id), device.uuid.as_ref(), device.pci_address.as_ref()];
    names.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(id))
}

/// The first usable device of the best kind, through the first engine of [`EngineKind::ALL`] that reaches it.
fn best(listings: &[Listing], fits: impl Fn(&Listing) -> bool) -> Option<Listing> {
    let usable = listings.iter().filter(|listing| listing.unavailable.is_none() && fits(listing));
    usable.min_by_key(|listing| (rank(listing.device.kind), listing.engine)).cloned()
}

const fn rank(kind: DeviceKind) -> u8 {
    match kind {
        DeviceKind::Discrete => 0,
        DeviceKind::Virtual => 1,
        DeviceKind::Integrated => 2,
        DeviceKind::Other => 3,
        DeviceKind::Cpu => 4,
        DeviceKind::Software => 5,
    }
}

const fn is_gpu(kind: DeviceKind) -> bool {
    !matches!(kind, DeviceKind::Software | DeviceKind::Cpu)
}

fn why_not(listing: &Listing) -> String {
    let name = &listing.device.name;
    match &listing.unavailable {
        Some(reason) => format!("{name}: {reason}"),
        None => format!("{name} is a software adapter, to be chosen by --device {}", listing.device.id),
    }
}

fn no_match(listings: &[Listing], asked: String) -> ChooseError {
    let available: Vec<String> = listings
        .iter()
        .filter(|listing| listing.unavailable.is_none())
        .map(|listing| format!("{} ({}, engine {})", listing.device.id, listing.device.name, listing.engine))
        .collect();
    let available = if available.is_empty() { "none".to_owned() } else { available.join(", ") };
    ChooseError::NoMatch { asked, available }
}
