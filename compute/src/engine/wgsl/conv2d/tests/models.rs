//! Launches of the convolutions of every model at full size, without a device.

use std::collections::HashSet;

use crate::engine::wgsl::conv2d::{PARTS_BYTES, backward_data, backward_weight, forward};
use crate::engine::wgsl::launch::{Binding, Launch, Limits, Lowering};
use crate::engine::wgsl::tests::validate;
use crate::models::Model;
use crate::plan::{Pass, Plan, Step};
use crate::shape::Precision;

/// An H200 through Vulkan.
const LARGE: Limits = Limits {
    max_binding_bytes: 2_147_483_632,
    max_buffer_bytes: 4_292_870_144,
    offset_alignment: 32,
    max_workgroup_bytes: 49_152,
    max_invocations: 1024,
    max_storage_bindings: 1024,
    max_flops_per_dispatch: 100_000_000_000,
    max_bytes_per_dispatch: 10_000_000_000,
    busy_workgroups: 256,
};

/// What every device offers, and slow.
const SMALL: Limits = Limits {
    max_binding_bytes: 128 << 20,
    max_buffer_bytes: 256 << 20,
    offset_alignment: 256,
    max_workgroup_bytes: 16 << 10,
    max_invocations: 256,
    max_storage_bindings: 8,
    max_flops_per_dispatch: 1_000_000_000,
    max_bytes_per_dispatch: 400_000_000,
    busy_workgroups: 4,
};

fn launches(plan: &Plan, limits: Limits) -> Vec<Launch> {
    let context = Lowering::new(plan, limits);
    let mut all = Vec::new();
    for step in &plan.steps {
        let made = match step {
            Step::Conv2dForward(step) => forward(step, &context),
            Step::Conv2dBackwardData(step) => backward_data(step, &context),
            Step::Conv2dBackwardWeight(step) => backward_weight(step, &context),
            _ => continue,
        };
        let made = made.unwrap_or_else(|error| panic!("{} of {}: {error}", step.name(), plan.definition));
        assert!(!made.is_empty(), "{} of {} has no launch", step.name(), plan.definition);
        all.extend(made);
    }
    let workspaces = context.into_workspaces();
    assert!(workspaces.iter().sum::<u64>() <= PARTS_BYTES, "{}: workspaces of {workspaces:?}", plan.definition);
    all
}

fn assert_within(launch: &Launch, limits: &Limits, definition: &str) {
    let entry = launch.kernel.entry;
    for binding in &launch.bindings {
        assert!(binding.bytes <= limits.max_binding_bytes, "{definition} {entry}: {binding:?}");
        assert!(binding.offset.is_multiple_of(limits.offset_alignment), "{definition} {entry}: {binding:?}");
        let is_written = |other: &&Binding| other.source == binding.source && other.writable;
        assert!(
            binding.writable || !launch.bindings.iter().any(|other| is_written(&other)),
            "{definition} {entry} reads and writes {:?}",
            binding.source
        );
    }
    assert!(launch.bindings.len() <= limits.max_storage_bindings as usize, "{definition} {entry}");
    // One workgroup alone may exceed the budget.
    let is_within = launch.flops <= limits.max_flops_per_dispatch && launch.bytes <= limits.max_bytes_per_dispatch;
    assert!(is_within || launch.workgroups == 1, "{definition} {entry}: {} FLOPs", launch.flops);
}

#[test]
fn launches_of_the_models_validate_and_keep_within_limits() {
    let mut kernels = HashSet::new();
    for model in Model::ALL {
        let graph = model.graph();
        for (precision, limits, minibatch) in
            [(Precision::F32, LARGE, 64), (Precision::F16, LARGE, 1), (Precision::F32, SMALL, 16)]
        {
            for pass in Pass::ALL {
                let plan = Plan::new(&graph, pass, precision, minibatch).unwrap();
                let launches = launches(&plan, limits);
                let flops: u64 = launches.iter().map(|launch| launch.flops).sum();
                // The padding of channels adds a little, the input gradient of the first layer is not made.
                assert!(flops > plan.flops / 10 * 9, "{}: {flops} of {}", plan.definition, plan.flops);
                for launch in launches {
                    assert_within(&launch, &limits, &plan.definition);
                    if kernels.insert(launch.kernel.clone()) {
                        validate(&[launch]);
                    }
                }
            }
        }
    }
    assert!(kernels.len() < 200, "{} kernels take long to compile", kernels.len());
}
