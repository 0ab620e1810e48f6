//! Which foreign networks are one of ours: the same layers at the same input size, not merely the same name.
//!
//! Source: the layer tables of the programs' own definitions. The AlexNet of torchvision and of convnet-benchmarks has
//! one tower with 64, 192, 384, 256 and 256 filters, as ours; that of Caffe and cnn-benchmarks has two and is another.
//! ResNets are the same where the 3×3 convolution has the stride (torchvision, timm, fb.resnet.torch, NVIDIA
//! DeepLearningExamples), not where the first 1×1 has it. GoogLeNet of torchvision has batch norm and is another.

use std::sync::LazyLock;

use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

/// What a record says of one of our networks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// Name, version and hash of the definition.
    pub(super) definition: String,
    /// Floating-point operations of the forward pass for one sample.
    forward_flops: f64,
    /// Floating-point operations of forward and backward for one sample.
    forward_backward_flops: f64,
}

static FACTS: LazyLock<[Facts; Model::ALL.len()]> = LazyLock::new(|| {
    Model::ALL.map(|model| {
        let graph = model.graph();
        let layers = graph.layers(Precision::F32);
        Facts {
            definition: format!("{} {}", graph.definition(), graph.definition_hash()),
            forward_flops: layers.iter().map(|layer| layer.forward_flops as f64).sum(),
            forward_backward_flops: layers.iter().map(|layer| layer.forward_backward_flops as f64).sum(),
        }
    })
});

/// The facts of one of our networks.
pub(super) fn facts(model: Model) -> &'static Facts {
    let place = Model::ALL.iter().position(|&other| other == model);
    &FACTS[place.expect("every model is in the list of all")]
}

impl Facts {
    /// Floating-point operations of a pass for one sample.
    pub(super) fn flops(&self, pass: Pass) -> f64 {
        match pass {
            Pass::Forward => self.forward_flops,
            Pass::ForwardBackward => self.forward_backward_flops,
        }
    }
}

/// A network of timm or torchvision. A tag behind a point names a set of weights.
pub(super) fn timm(name: &str, sides: Option<(usize, usize)>) -> Option<Model> {
    let model = match name.split('.').next().unwrap_or_default() {
        "alexnet" => Model::Alexnet,
        "vgg11" => Model::VggA,
        "vgg16" => Model::Vgg16,
        "resnet50" => Model::Resnet50,
        "resnet101" => Model::Resnet101,
        "resnet152" => Model::Resnet152,
        _ => return None,
    };
    at_its_size(model, sides)
}

/// A network of convnet-benchmarks, whose VGG is model A.
pub(super) fn convnet_benchmarks(name: &str, sides: Option<(usize, usize)>) -> Option<Model> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let model = match name.as_str() {
        "alexnet" | "alexnetowt" => Model::Alexnet,
        "overfeat" | "overfeatfast" => Model::Overfeat,
        "vgg" | "vgga" | "vggmodela" => Model::VggA,
        "googlenet" | "googlenetv1" => Model::Googlenet,
        _ => return None,
    };
    at_its_size(model, sides)
}

/// A network of cnn-benchmarks.
pub(super) fn cnn_benchmarks(name: &str, sides: Option<(usize, usize)>) -> Option<Model> {
    let model = match name {
        "vgg-16" => Model::Vgg16,
        "resnet-50" => Model::Resnet50,
        "resnet-101" => Model::Resnet101,
        "resnet-152" => Model::Resnet152,
        _ => return None,
    };
    at_its_size(model, sides)
}

fn at_its_size(model: Model, sides: Option<(usize, usize)>) -> Option<Model> {
    (sides == Some((model.input_size(), model.input_size()))).then_some(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_ours_only_with_its_layers_and_its_size() {
        let at = |side| Some((side, side));
        assert_eq!(timm("resnet50", at(224)), Some(Model::Resnet50));
        assert_eq!(timm("resnet50.a1_in1k", at(224)), Some(Model::Resnet50));
        assert_eq!(timm("vgg11", at(224)), Some(Model::VggA));
        for (name, sides) in [("resnet50", at(160)), ("resnet50", None), ("vgg11_bn", at(224)), ("googlenet", at(224))]
        {
            assert_eq!(timm(name, sides), None, "{name}");
        }
        assert_eq!(convnet_benchmarks("OverFeat[fast]", at(231)), Some(Model::Overfeat));
        assert_eq!(convnet_benchmarks("VGG Model-A", at(224)), Some(Model::VggA));
        assert_eq!(cnn_benchmarks("vgg-16", at(224)), Some(Model::Vgg16));
        assert_eq!(cnn_benchmarks("alexnet", at(224)), None);
    }

    #[test]
    fn facts_are_those_of_the_graph() {
        let facts = facts(Model::Resnet50);
        assert!(facts.definition.starts_with("resnet50/"));
        assert_eq!(facts.flops(Pass::Forward), 2.0 * 4_089_184_256.0);
        assert!(facts.flops(Pass::ForwardBackward) > 2.9 * facts.flops(Pass::Forward));
    }
}
