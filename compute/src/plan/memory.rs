//! Which buffers share memory: those that are never alive together.

use std::collections::HashSet;

use super::Plan;
use crate::ops::BufferId;

/// First and last step that touch a buffer.
#[derive(Clone, Copy)]
struct Lifetime {
    first: usize,
    last: usize,
}

impl Lifetime {
    const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Gives every buffer a slot. Buffers that cross the engine's border keep one of their own.
///
/// Formula: "greedy by size for shared objects" (Pisarchyk, Lee, "Efficient Memory Management for Deep Neural Net
/// Inference", 2020): largest first, each into the smallest slot that is free for its lifetime.
pub(super) fn assign_slots(plan: &mut Plan) {
    let lifetimes = lifetimes(plan);
    let outside: HashSet<BufferId> = outside(plan).collect();
    let mut order: Vec<usize> = (0..plan.buffers.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(plan.buffers[index].bytes()));
    let mut slots: Vec<(u64, Vec<Lifetime>)> = Vec::new();
    for index in order {
        let bytes = plan.buffers[index].bytes();
        let lifetime = match lifetimes[index] {
            Some(lifetime) if !outside.contains(&BufferId(index as u32)) => lifetime,
            _ => Lifetime { first: 0, last: usize::MAX },
        };
        // Slots were made in order of falling size, so the last free one is the smallest.
        let free = |(_, tenants): &(u64, Vec<Lifetime>)| !tenants.iter().any(|tenant| tenant.overlaps(lifetime));
        let slot = slots.iter().rposition(free).unwrap_or_else(|| {
            slots.push((bytes, Vec::new()));
            slots.len() - 1
        });
        slots[slot].1.push(lifetime);
        plan.buffers[index].slot = slot;
    }
    plan.slots = slots.into_iter().map(|(bytes, _)| bytes).collect();
}

/// Buffers that are filled or read from outside.
fn outside(plan: &Plan) -> impl Iterator<Item = BufferId> {
    let ends = [Some(plan.input), plan.labels, Some(plan.logits), plan.loss];
    ends.into_iter()
        .flatten()
        .chain(plan.parameters.iter().map(|parameter| parameter.buffer))
        .chain(plan.gradients.iter().map(|gradient| gradient.buffer))
}

fn lifetimes(plan: &Plan) -> Vec<Option<Lifetime>> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; plan.buffers.len()];
    for (index, step) in plan.steps.iter().enumerate() {
        for id in step.buffers() {
            let lifetime = lifetimes[id.0 as usize].get_or_insert(Lifetime { first: index, last: index });
            lifetime.last = index;
        }
    }
    lifetimes
}
