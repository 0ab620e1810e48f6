use std::collections::HashSet;

use super::*;
use crate::models::Model;
use crate::ops::{GradientEpilogue, Op};

fn small(model: Model, pass: Pass, precision: Precision) -> Plan {
    let graph = model.graph_sized(model.small_input_size(), 12).expect("the small input fits");
    Plan::new(&graph, pass, precision, 2).expect("every model can be planned")
}

/// Bars on planned device bytes in f32 at minibatch 64.
#[test]
fn planned_bytes_stay_under_their_bars() {
    let cases = [
        (Model::Vgg16, Pass::Forward, 2.4e9),
        (Model::Vgg16, Pass::ForwardBackward, 7.5e9),
        (Model::Resnet50, Pass::Forward, 1.2e9),
        (Model::Resnet50, Pass::ForwardBackward, 7.0e9),
    ];
    for (model, pass, bar) in cases {
        let plan = Plan::new(&model.graph(), pass, Precision::F32, 64).expect("plan");
        assert!(plan.bytes() as f64 <= bar, "{model} {pass}: {} bytes, bar {bar}", plan.bytes());
    }
}

#[test]
fn half_precision_needs_less_memory() {
    for pass in Pass::ALL {
        let bytes = |precision| Plan::new(&Model::Resnet50.graph(), pass, precision, 64).expect("plan").bytes();
        assert!(bytes(Precision::F16) < bytes(Precision::F32) * 6 / 10, "{pass}");
    }
}

#[test]
fn buffers_of_one_slot_are_never_alive_together() {
    for model in Model::ALL {
        for pass in Pass::ALL {
            let plan = small(model, pass, Precision::F16);
            let mut tenant: Vec<Option<BufferId>> = vec![None; plan.slots.len()];
            let mut retired = HashSet::new();
            for step in &plan.steps {
                for id in step.buffers() {
                    let slot = plan.buffer(id).slot;
                    assert!(plan.buffer(id).bytes() <= plan.slots[slot]);
                    assert!(!retired.contains(&id), "{model} {pass}: {} comes back", plan.buffer(id).name);
                    if let Some(previous) = tenant[slot].replace(id).filter(|&previous| previous != id) {
                        retired.insert(previous);
                    }
                }
            }
        }
    }
}

#[test]
fn every_trainable_parameter_has_a_gradient() {
    for model in Model::ALL {
        let graph = model.graph_sized(model.small_input_size(), 12).expect("the small input fits");
        let plan = small(model, Pass::ForwardBackward, Precision::F32);
        let elements: usize = plan.gradients.iter().map(|g| plan.buffer(g.buffer).contents.elements()).sum();
        assert_eq!(elements as u64, graph.parameters(), "{model}");
        let parameters: HashSet<&str> = plan.parameters.iter().map(|p| p.name.as_str()).collect();
        assert!(plan.gradients.iter().all(|g| parameters.contains(g.name.as_str())), "{model}");
    }
}

#[test]
fn fusion_leaves_as_many_steps_as_there_are_convolutions_and_pools() {
    for model in Model::ALL {
        let graph = model.graph();
        let n_anchors = |convs_only: bool| {
            let is_anchor = |op: &Op| match op {
                Op::Conv2d(_) | Op::Linear { .. } => true,
                Op::MaxPool(_) | Op::AveragePool(_) => !convs_only,
                _ => false,
            };
            graph.nodes.iter().filter(|node| is_anchor(&node.op)).count()
        };
        let inference = small(model, Pass::Forward, Precision::F32);
        assert_eq!(inference.steps.len(), n_anchors(false), "{model}");
        let counts = small(model, Pass::ForwardBackward, Precision::F32).step_counts();
        assert_eq!(counts["conv2d_backward_weight"], n_anchors(true), "{model}");
        assert_eq!(counts["conv2d_backward_data"], n_anchors(true) - 1, "{model}: none for the input");
    }
}

/// Every batch norm's sums are made once, by the last contribution to its gradient, before they are used.
#[test]
fn reductions_come_before_the_batch_norm_that_needs_them() {
    for model in [Model::Resnet50, Model::Resnet152] {
        let plan = small(model, Pass::ForwardBackward, Precision::F32);
        let mut finished = HashSet::new();
        for step in &plan.steps {
            let epilogue: Option<&GradientEpilogue> = match step {
                Step::Conv2dBackwardData(step) => Some(&step.epilogue),
                Step::MaxPoolBackward(step) => Some(&step.epilogue),
                Step::AveragePoolBackward(step) => Some(&step.epilogue),
                Step::BatchNormBackward(step) => {
                    assert!(finished.contains(&step.dgamma), "{model}: sums come too late");
                    None
                }
                _ => None,
            };
            for reduction in epilogue.iter().flat_map(|epilogue| &epilogue.reductions) {
                assert!(finished.insert(reduction.dgamma), "{model}: sums are made twice");
            }
        }
        assert_eq!(finished.len(), plan.step_counts()["batch_norm_backward"], "{model}");
    }
}

#[test]
fn an_empty_minibatch_is_refused() {
    let graph = Model::Alexnet.graph();
    assert_eq!(Plan::new(&graph, Pass::Forward, Precision::F32, 0), Err(PlanError::EmptyMinibatch));
}

#[test]
fn parameters_are_finite_and_vary() {
    for parameter in small(Model::Resnet50, Pass::Forward, Precision::F32).parameters.iter().take(12) {
        let values = parameter.values();
        assert!(values.iter().all(|v| v.is_finite()), "{}", parameter.name);
        assert!(values.iter().any(|v| *v != values[0]), "{}", parameter.name);
    }
}
