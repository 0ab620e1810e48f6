//! The devices of this machine as the window knows them: what was found, what is chosen, and why nothing can run.

use compute::bench::suite::Target;
use compute::engine::{DeviceKind, Listing};

use super::text;

/// What is known of this machine's devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Devices {
    /// How far the search is.
    pub search: Search,
    /// Whether software adapters may be chosen.
    pub is_software_allowed: bool,
}

/// How far the search for devices is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Search {
    /// It is under way.
    #[default]
    Looking,
    /// These were found.
    Found(Vec<Choice>),
    /// It failed, and why.
    Failed(String),
}

/// One device with one engine, to be chosen or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What the engine says of it.
    pub listing: Listing,
    /// Whether it is to be measured.
    pub is_chosen: bool,
}

impl Devices {
    /// What was found, with one device chosen to begin with: a GPU with its own memory before one without, the processor
    /// where there is no GPU, a software adapter never.
    pub fn found(listings: Vec<Listing>) -> Self {
        let preselected = (0..listings.len())
            .filter(|&index| listings[index].unavailable.is_none())
            .filter_map(|index| Some((preference(listings[index].device.kind)?, index)))
            .min()
            .map(|(_, index)| index);
        let choices = listings
            .into_iter()
            .enumerate()
            .map(|(index, listing)| Choice { listing, is_chosen: Some(index) == preselected })
            .collect();
        Self { search: Search::Found(choices), is_software_allowed: false }
    }

    /// Devices found so far.
    pub fn choices(&self) -> &[Choice] {
        match &self.search {
            Search::Found(choices) => choices,
            Search::Looking | Search::Failed(_) => &[],
        }
    }

    /// What the engines say of the devices found so far.
    pub fn listings(&self) -> impl Iterator<Item = &Listing> {
        self.choices().iter().map(|choice| &choice.listing)
    }

    /// Whether this machine has a software adapter.
    pub fn has_software(&self) -> bool {
        self.choices().iter().any(|choice| choice.listing.device.kind == DeviceKind::Software)
    }

    /// Whether the processor is all that can be measured here.
    pub fn has_only_processor(&self) -> bool {
        let mut usable = self.choices().iter().filter(|choice| choice.listing.unavailable.is_none());
        let kind = |choice: &Choice| choice.listing.device.kind;
        usable.clone().any(|choice| kind(choice) == DeviceKind::Cpu)
            && usable.all(|choice| matches!(kind(choice), DeviceKind::Cpu | DeviceKind::Software))
    }

    /// Why a device can't be chosen; absent when it can.
    pub fn refusal<'a>(&self, choice: &'a Choice) -> Option<&'a str> {
        if let Some(reason) = &choice.listing.unavailable {
            return Some(reason);
        }
        let is_software = choice.listing.device.kind == DeviceKind::Software;
        (is_software && !self.is_software_allowed).then_some(text::software_refused())
    }

    /// Chooses a device or not; one that is refused stays as it is.
    pub fn choose(&mut self, index: usize, is_chosen: bool) {
        let is_refused = self.choices().get(index).is_none_or(|choice| self.refusal(choice).is_some());
        if let Search::Found(choices) = &mut self.search
            && !is_refused
        {
            choices[index].is_chosen = is_chosen;
        }
    }

    /// Allows software adapters or not; those that were chosen are given up again.
    pub fn allow_software(&mut self, is_allowed: bool) {
        self.is_software_allowed = is_allowed;
        if let Search::Found(choices) = &mut self.search
            && !is_allowed
        {
            for choice in choices.iter_mut().filter(|choice| choice.listing.device.kind == DeviceKind::Software) {
                choice.is_chosen = false;
            }
        }
    }

    /// The chosen devices.
    pub fn targets(&self) -> Vec<Target> {
        self.choices()
            .iter()
            .filter(|choice| choice.is_chosen && self.refusal(choice).is_none())
            .map(|choice| Target { listing: choice.listing.clone(), reason: None })
            .collect()
    }

    /// Why nothing can be run; absent when something can.
    pub fn run_refusal(&self) -> Option<&'static str> {
        match &self.search {
            Search::Looking => Some(text::run_while_looking()),
            Search::Failed(_) => Some(text::run_without_device_list()),
            Search::Found(_) if !self.targets().is_empty() => None,
            Search::Found(choices) if choices.iter().any(|choice| self.refusal(choice).is_none()) => {
                Some(text::run_without_choice())
            }
            Search::Found(_) if self.has_software() => Some(text::run_only_software()),
            Search::Found(_) => Some(text::run_without_device()),
        }
    }
}

/// Which kind of device is chosen to begin with, the smallest first; absent for one that never is.
const fn preference(kind: DeviceKind) -> Option<u8> {
    match kind {
        DeviceKind::Discrete => Some(0),
        DeviceKind::Virtual => Some(1),
        DeviceKind::Integrated => Some(2),
        DeviceKind::Other => Some(3),
        DeviceKind::Cpu => Some(4),
        DeviceKind::Software => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use compute::engine::{Device, EngineKind};
    use compute::shape::Precision;

    use super::*;

    pub(crate) fn listing(id: &str, kind: DeviceKind) -> Listing {
        let engine = if kind == DeviceKind::Cpu { EngineKind::Cpu } else { EngineKind::Wgsl };
        let device = Device { id: id.into(), name: id.into(), kind, ..Device::default() };
        Listing { engine, device, precisions: vec![Precision::F32], remarks: Vec::new(), unavailable: None }
    }

    fn chosen(devices: &Devices) -> Vec<String> {
        devices.targets().into_iter().map(|target| target.listing.device.id).collect()
    }

    #[test]
    fn a_gpu_with_its_own_memory_is_chosen_to_begin_with() {
        let (cpu, soft) = (listing("cpu", DeviceKind::Cpu), listing("llvmpipe", DeviceKind::Software));
        let (igpu, dgpu) = (listing("intel", DeviceKind::Integrated), listing("nvidia", DeviceKind::Discrete));
        let broken = Listing { unavailable: Some("the device was lost".into()), ..dgpu.clone() };
        let cases = [
            (vec![igpu.clone(), dgpu.clone()], vec!["nvidia"]),
            (vec![cpu.clone(), soft.clone(), igpu.clone()], vec!["intel"]),
            (vec![broken.clone(), igpu.clone()], vec!["intel"]),
            (vec![broken.clone(), dgpu.clone()], vec!["nvidia"]),
            (vec![soft.clone(), cpu.clone()], vec!["cpu"]),
            (vec![soft.clone()], vec![]),
            (vec![], vec![]),
        ];
        for (listings, expected) in cases {
            let ids: Vec<_> = listings.iter().map(|listing| listing.device.id.clone()).collect();
            assert_eq!(chosen(&Devices::found(listings)), expected, "{ids:?}");
        }
    }

    #[test]
    fn a_machine_without_gpu_is_told_from_one_with() {
        let (cpu, soft) = (listing("cpu", DeviceKind::Cpu), listing("llvmpipe", DeviceKind::Software));
        let gpu = listing("nvidia", DeviceKind::Discrete);
        let broken = Listing { unavailable: Some("the device was lost".into()), ..gpu.clone() };
        assert!(Devices::found(vec![cpu.clone(), soft.clone()]).has_only_processor());
        assert!(Devices::found(vec![cpu.clone(), broken]).has_only_processor());
        assert!(!Devices::found(vec![cpu, gpu]).has_only_processor());
        assert!(!Devices::found(vec![soft]).has_only_processor());
    }

    #[test]
    fn a_software_adapter_runs_only_when_it_is_forced() {
        let mut devices = Devices::found(vec![listing("llvmpipe", DeviceKind::Software)]);
        assert_eq!(devices.run_refusal(), Some(text::run_only_software()));
        devices.choose(0, true);
        assert!(devices.targets().is_empty(), "it can't be chosen");
        devices.allow_software(true);
        assert_eq!(devices.run_refusal(), Some(text::run_without_choice()), "it is not chosen by itself");
        devices.choose(0, true);
        assert_eq!((chosen(&devices), devices.run_refusal()), (vec!["llvmpipe".into()], None));
        devices.allow_software(false);
        devices.allow_software(true);
        assert!(devices.targets().is_empty(), "it is given up again");
    }

    #[test]
    fn every_reason_not_to_run_is_said() {
        let mut unavailable = listing("nvidia", DeviceKind::Discrete);
        unavailable.unavailable = Some("the driver is too old".into());
        let mut nothing_chosen = Devices::found(vec![listing("nvidia", DeviceKind::Discrete)]);
        nothing_chosen.choose(0, false);
        let cases = [
            (Devices::default(), text::run_while_looking()),
            (Devices { search: Search::Failed("no".into()), ..Devices::default() }, text::run_without_device_list()),
            (Devices::found(vec![]), text::run_without_device()),
            (Devices::found(vec![unavailable]), text::run_without_device()),
            (nothing_chosen, text::run_without_choice()),
        ];
        for (devices, reason) in cases {
            assert_eq!(devices.run_refusal(), Some(reason));
        }
    }
}
