//! The eight networks of the suite, one file a family. Input size and class count are parameters, so that tests use
//! small ones; [`Model::graph`] gives the published size.

mod alexnet;
mod googlenet;
mod overfeat;
mod resnet;
mod vgg;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::ops::ShapeError;
use crate::shape::{UnknownName, parse_name};

/// One network of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// AlexNet with one tower.
    Alexnet,
    /// OverFeat, fast model.
    Overfeat,
    /// VGG configuration A, 11 layers.
    VggA,
    /// VGG configuration D, 16 layers.
    Vgg16,
    /// GoogLeNet v1 without local response normalization and auxiliary classifiers.
    Googlenet,
    /// ResNet-50 v1.5.
    Resnet50,
    /// ResNet-101 v1.5.
    Resnet101,
    /// ResNet-152 v1.5.
    Resnet152,
}

impl Model {
    /// Every model, in the order of the suite.
    pub const ALL: [Self; 8] = [
        Self::Alexnet,
        Self::Overfeat,
        Self::VggA,
        Self::Vgg16,
        Self::Googlenet,
        Self::Resnet50,
        Self::Resnet101,
        Self::Resnet152,
    ];

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alexnet => "alexnet",
            Self::Overfeat => "overfeat",
            Self::VggA => "vgg_a",
            Self::Vgg16 => "vgg16",
            Self::Googlenet => "googlenet",
            Self::Resnet50 => "resnet50",
            Self::Resnet101 => "resnet101",
            Self::Resnet152 => "resnet152",
        }
    }

    /// Side of the published input.
    pub const fn input_size(self) -> usize {
        match self {
            Self::Overfeat => 231,
            _ => 224,
        }
    }

    /// A small input side that every layer still fits into, for tests.
    pub const fn small_input_size(self) -> usize {
        match self {
            Self::Alexnet => 63,
            Self::Overfeat => 71,
            Self::VggA | Self::Vgg16 | Self::Googlenet => 32,
            Self::Resnet50 | Self::Resnet101 | Self::Resnet152 => 64,
        }
    }

    /// The network with its published input and 1000 classes.
    pub fn graph(self) -> Graph {
        self.graph_sized(self.input_size(), 1000).expect("every layer fits into the published input")
    }

    /// The network for a square input of side `size` and `classes` classes.
    ///
    /// # Errors
    /// [`ShapeError`] when the input is too small for a layer.
    pub fn graph_sized(self, size: usize, classes: usize) -> Result<Graph, ShapeError> {
        match self {
            Self::Alexnet => alexnet::graph(size, classes),
            Self::Overfeat => overfeat::graph(size, classes),
            Self::VggA => vgg::graph(self.name(), &vgg::A, size, classes),
            Self::Vgg16 => vgg::graph(self.name(), &vgg::D, size, classes),
            Self::Googlenet => googlenet::graph(size, classes),
            Self::Resnet50 => resnet::graph(self.name(), [3, 4, 6, 3], size, classes),
            Self::Resnet101 => resnet::graph(self.name(), [3, 4, 23, 3], size, classes),
            Self::Resnet152 => resnet::graph(self.name(), [3, 8, 36, 3], size, classes),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Model {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse_name("model", text, &Self::ALL, Self::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters and forward MACs a sample, from the layer tables of the published benchmarks.
    #[test]
    fn counts_equal_the_published_tables() {
        let cases = [
            (Model::Alexnet, 61_100_840, 714_188_480),
            (Model::Overfeat, 145_920_872, 2_801_403_904),
            (Model::VggA, 132_863_336, 7_609_090_048),
            (Model::Vgg16, 138_357_544, 15_470_264_320),
            (Model::Googlenet, 6_998_552, 1_582_671_872),
            (Model::Resnet50, 25_557_032, 4_089_184_256),
            (Model::Resnet101, 44_549_160, 7_801_405_440),
            (Model::Resnet152, 60_192_808, 11_513_626_624),
        ];
        for (model, parameters, macs) in cases {
            let graph = model.graph();
            assert_eq!((graph.parameters(), graph.macs()), (parameters, macs), "{model}");
        }
    }

    #[test]
    fn hashes_differ_between_models_and_sizes() {
        let mut hashes: Vec<String> = Model::ALL.map(|model| model.graph().definition_hash()).to_vec();
        for model in Model::ALL {
            let small = model.graph_sized(model.small_input_size(), 12).expect("the small input fits");
            hashes.push(small.definition_hash());
        }
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), 16);
    }

    #[test]
    fn a_small_input_is_an_error_not_a_panic() {
        for model in Model::ALL {
            let result = model.graph_sized(1, 10);
            assert!(result.is_err() || result.is_ok_and(|graph| graph.parameters() > 0), "{model}");
        }
        assert!(Model::Overfeat.graph_sized(8, 10).is_err());
    }

    #[test]
    fn an_unknown_name_lists_the_valid_ones() {
        let error = "resnet5".parse::<Model>().expect_err("no such model");
        assert!(error.to_string().contains("resnet50, resnet101"), "{error}");
    }
}
