//! Every kernel of every network at full size, without a device: its text is valid, and its launches keep the limits.

use std::collections::HashSet;

use super::validate;
use crate::engine::DeviceKind;
use crate::engine::wgsl::dispatch::{Rates, fold};
use crate::engine::wgsl::launch::{Kernel, Limits, Lowering};
use crate::engine::wgsl::lower::lower;
use crate::models::Model;
use crate::plan::{Pass, Plan};
use crate::shape::Precision;

/// Limits that WebGPU guarantees, on a device assumed to be slow.
fn smallest() -> Limits {
    let rates = Rates::assumed(DeviceKind::Integrated);
    Limits {
        max_binding_bytes: 128 << 20,
        max_buffer_bytes: 256 << 20,
        offset_alignment: 256,
        max_workgroup_bytes: 16 << 10,
        max_invocations: 256,
        max_storage_bindings: 8,
        max_flops_per_dispatch: rates.flops_per_dispatch(),
        max_bytes_per_dispatch: rates.bytes_per_dispatch(),
        busy_workgroups: 64,
    }
}

/// Limits of an NVIDIA H200 through Vulkan.
fn largest() -> Limits {
    let rates = Rates::assumed(DeviceKind::Discrete);
    Limits {
        max_binding_bytes: 2_147_483_632,
        max_buffer_bytes: 4_292_870_144,
        offset_alignment: 16,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_storage_bindings: 32,
        max_flops_per_dispatch: rates.flops_per_dispatch(),
        max_bytes_per_dispatch: rates.bytes_per_dispatch(),
        busy_workgroups: 256,
    }
}

/// Lowers every step and checks its launches; a kernel's text is checked once.
fn check(plan: &Plan, limits: Limits, valid: &mut HashSet<Kernel>) {
    let context = Lowering::new(plan, limits);
    for step in &plan.steps {
        let case = format!("{} of {} in {}", step.name(), plan.definition, plan.precision);
        let launches = lower(step, &context).unwrap_or_else(|error| panic!("{case}: {error}"));
        for launch in &launches {
            assert!(launch.bindings.len() <= limits.max_storage_bindings as usize, "bindings of {case}");
            for binding in &launch.bindings {
                assert!(binding.bytes > 0 && binding.bytes <= limits.max_binding_bytes, "{binding:?} of {case}");
                assert!(binding.bytes.is_multiple_of(4), "{binding:?} of {case}");
                assert!(binding.offset.is_multiple_of(limits.offset_alignment), "{binding:?} of {case}");
                let both_ways =
                    launch.bindings.iter().any(|b| b.source == binding.source && b.writable != binding.writable);
                assert!(!both_ways, "{binding:?} of {case} is bound both ways");
            }
            assert!(launch.parameters.len() <= 64, "parameters of {case}");
            // Twice the budget is 200 ms at the assumed rates.
            assert!(launch.flops <= 2 * limits.max_flops_per_dispatch, "{} FLOPs in {case}", launch.flops);
            assert!(launch.bytes <= 2 * limits.max_bytes_per_dispatch, "{} bytes in {case}", launch.bytes);
            fold(launch.workgroups, 65_535).unwrap();
            if valid.insert(launch.kernel.clone()) {
                validate(std::slice::from_ref(launch));
            }
        }
    }
}

#[test]
fn kernels_of_every_network_are_valid_and_keep_the_limits() {
    let mut valid = HashSet::new();
    for model in Model::ALL {
        for pass in Pass::ALL {
            for precision in [Precision::F32, Precision::F16] {
                for limits in [smallest(), largest()] {
                    check(&Plan::new(&model.graph(), pass, precision, 64).unwrap(), limits, &mut valid);
                }
            }
        }
    }
}

/// R25: on a device that is as slow as assumed, steps that would outlast a watchdog of two seconds are split.
#[test]
fn no_dispatch_outlasts_the_watchdog() {
    const WATCHDOG_SECS: f64 = 2.0;
    let rates = Rates::assumed(DeviceKind::Integrated);
    let longest = |limits: Limits| {
        let plan = Plan::new(&Model::Vgg16.graph(), Pass::ForwardBackward, Precision::F32, 64).unwrap();
        let context = Lowering::new(&plan, limits);
        let launches = plan.steps.iter().flat_map(|step| lower(step, &context).unwrap());
        launches.map(|launch| rates.seconds(&launch)).fold(0.0, f64::max)
    };
    let budget = smallest();
    assert_eq!(budget.max_flops_per_dispatch, rates.flops_per_dispatch());
    let split = longest(budget);
    // As much again as the target by operations and by bytes each.
    assert!(split <= 0.4, "{split} s");
    let unbounded = Limits { max_flops_per_dispatch: u64::MAX, max_bytes_per_dispatch: u64::MAX, ..largest() };
    assert!(longest(unbounded) > WATCHDOG_SECS);
}
