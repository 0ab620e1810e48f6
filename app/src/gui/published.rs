//! Published results in the library: hidden until they are asked for, one by one or as one of the two comparisons that
//! this program continues.

use compute::bench::store::Loaded;
use compute::plan::Pass;
use compute::published::Set;

use super::library::Entry;
use super::state::{State, Tab};
use crate::chart::series::{Series, SourceId};
use crate::chart::settings::{Settings, Unit};

/// Sources of published results are numbered from here, those of files from one.
const FIRST_ID: usize = usize::MAX / 2;

/// A published comparison, as far as its figures are text. What was printed as pictures alone is shown by figures of others
/// on the same GPUs, with the same frameworks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// GPU × network × framework, by Addfor in 2017: DLInfBench's figures on its GPUs, inference at minibatch 64.
    Gpus2017,
    /// Framework × precision on one GPU, by Synced in 2019: NVIDIA's figures on a V100, inference at minibatch 32.
    Frameworks2019,
}

impl Comparison {
    /// Both, in the order of their years.
    pub const ALL: [Self; 2] = [Self::Gpus2017, Self::Frameworks2019];

    /// The sets that it is made of, with the devices whose series are shown.
    const fn parts(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::Gpus2017 => {
                &[("dlinfbench", &["GeForce GTX 1080", "TITAN X Pascal"]), ("addfor_2017", &["GeForce GTX 1080"])]
            }
            Self::Frameworks2019 => &[("nvidia_dle", &["Tesla V100 SXM2 16 GB"]), ("synced_2019", &["TITAN RTX"])],
        }
    }

    /// Whether a series of a set belongs to it.
    fn holds(self, set: &str, series: &Series) -> bool {
        let device = series.device.as_deref().unwrap_or_default();
        self.parts().iter().any(|(id, devices)| *id == set && devices.contains(&device))
    }

    fn settings(self, before: &Settings) -> Settings {
        let minibatch = match self {
            Self::Gpus2017 => 64,
            Self::Frameworks2019 => 32,
        };
        Settings {
            pass: Pass::Forward,
            precision: None,
            minibatch: Some(minibatch),
            unit: Unit::SamplesPerSec,
            baseline: None,
            ..before.clone()
        }
    }
}

impl State {
    /// Takes the published sets into the library; what was shown of them before is shown again.
    pub(super) fn take_published(&mut self, sets: Vec<Set>) {
        let entries = sets.into_iter().enumerate().map(|(number, set)| {
            let loaded = Loaded { file: set.file, notes: Vec::new(), n_left_out: 0 };
            Entry::published(SourceId(FIRST_ID + number), set.id, loaded)
        });
        self.library.published = entries.collect();
        let all: Vec<Series> = self.library.published.iter().flat_map(|entry| entry.series.clone()).collect();
        self.library.hidden.extend(all);
        for kept in std::mem::take(&mut self.published_before) {
            kept.restore_published(self);
        }
        self.is_chart_stale = true;
    }

    /// Shows a comparison and hides all other published results.
    pub(super) fn compare_published(&mut self, comparison: Comparison) {
        let entries: Vec<(String, Vec<Series>)> =
            self.library.published.iter().map(|entry| (entry.name.clone(), entry.series.clone())).collect();
        for (set, all) in entries {
            for series in all {
                let is_shown = comparison.holds(&set, &series);
                self.library.show(&series, is_shown);
            }
        }
        self.settings = comparison.settings(&self.settings);
        self.tab = Tab::Throughput;
        self.is_chart_stale = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_comparisons_fill_a_chart_with_one_action() {
        let mut state = State::default();
        state.take_published(compute::published::sets().unwrap());
        state.refresh();
        assert!(!state.library.has_records() && state.chart.groups.is_empty(), "hidden until they are asked for");
        for (comparison, n_models, n_series) in [(Comparison::Gpus2017, 7, 10), (Comparison::Frameworks2019, 1, 6)] {
            state.compare_published(comparison);
            state.refresh();
            assert!(state.chart.groups.len() >= n_models, "{comparison:?}: {:?}", state.chart.groups.len());
            assert!(state.chart.series.len() >= n_series, "{comparison:?}: {:?}", state.chart.series.len());
            assert_eq!(state.chart.cautions, [], "{comparison:?}");
        }
    }
}
