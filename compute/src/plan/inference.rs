//! The forward pass: batch norm folded into scale and bias, dropout left out.

use super::builder::Builder;
use super::fuse::{Anchor, Group, Groups};
use super::parameter::Init;
use super::{Contents, Pass, Plan, PlanError, Step};
use crate::graph::Graph;
use crate::ops::{average_pool, conv2d, max_pool};
use crate::shape::{Element, Precision};

pub(super) fn plan(graph: &Graph, precision: Precision, minibatch: usize) -> Result<Plan, PlanError> {
    let groups = Groups::new(graph)?;
    let mut builder = Builder::new(&groups, Pass::Forward, precision, minibatch);
    for group in &groups.list {
        let step = step(&mut builder, group);
        builder.plan.steps.push(step);
    }
    builder.plan.logits = builder.value(graph.output()).buffer;
    Ok(builder.plan)
}

fn step(builder: &mut Builder<'_>, group: &Group) -> Step {
    let x = builder.value(group.x);
    match &group.anchor {
        Anchor::Conv2d(conv) => {
            let element = builder.plan.precision.storage();
            let w = builder.filter(group.node, conv, element);
            let (scale, bias) = match group.norm {
                None => (None, builder.bias(group.node, conv)),
                Some(norm) => {
                    let (init, channels) = builder.norm_init(norm);
                    let mut vector = |part: &str, values: Init| {
                        let name = format!("{}.{part}", init.node);
                        builder.parameter(name, Contents::Vector(channels), Element::F32, values)
                    };
                    (
                        Some(vector("scale", Init::NormScale(init.clone()))),
                        Some(vector("bias", Init::NormBias(init.clone()))),
                    )
                }
            };
            let residual = group.residual.map(|id| builder.value(id));
            let epilogue = conv2d::Epilogue { scale, bias, residual, relu: group.relu, dropout: None };
            let y = builder.make_value(group.output);
            Step::Conv2dForward(conv2d::Forward { x, w, y, window: conv.window(), epilogue, statistics: None })
        }
        Anchor::MaxPool(pool) => {
            let y = builder.make_value(group.output);
            Step::MaxPoolForward(max_pool::Forward { x, y, index: None, window: pool.window(), dropout: None })
        }
        Anchor::AveragePool => {
            let y = builder.make_value(group.output);
            Step::AveragePoolForward(average_pool::Forward { x, y, dropout: None })
        }
    }
}
