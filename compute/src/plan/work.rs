//! What a step has to do, whoever does it: floating-point operations, bytes, and the name of its layer.

use std::collections::BTreeSet;

use super::{Contents, Plan, Step};
use crate::ops::conv2d::Window;
use crate::ops::{BufferId, GradientEpilogue, View, batch_norm};
use crate::shape::Shape;

/// Work of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations, 2 · MACs of a convolution or its gradients; 0 for every other step.
    pub flops: u64,
    /// Fewest bytes that the step moves: what it reads is read once, what it writes is written once. Of an activation
    /// only the channels of its view count, and of a strided window's input only the rows and columns it touches.
    pub bytes: u64,
}

/// What a step reads and writes: buffer, first channel, and bytes. A set, so that what is read twice counts once.
#[derive(Default)]
struct Traffic {
    reads: BTreeSet<(BufferId, usize, u64)>,
    writes: BTreeSet<(BufferId, usize, u64)>,
}

impl Plan {
    /// Work of one of the plan's steps.
    pub fn work(&self, step: &Step) -> Work {
        let traffic = self.traffic(step);
        let bytes = traffic.reads.iter().chain(&traffic.writes).map(|&(_, _, bytes)| bytes).sum();
        Work { flops: self.step_flops(step), bytes }
    }

    /// The buffers that a step writes, each once.
    pub fn written(&self, step: &Step) -> Vec<BufferId> {
        self.traffic(step).writes.into_iter().map(|(id, ..)| id).collect()
    }

    /// Name of the layer that a step belongs to, for people, such as `"conv1"`.
    pub fn layer(&self, step: &Step) -> String {
        let named = match step {
            Step::Cast(step) => step.x,
            Step::Conv2dForward(step) => step.w,
            Step::Conv2dBackwardData(step) => step.w,
            Step::Conv2dBackwardWeight(step) => step.dw,
            Step::BatchNormForward(step) => step.input.gamma,
            Step::BatchNormBackward(step) => step.gamma,
            Step::MaxPoolForward(step) => step.index.unwrap_or(step.y.buffer),
            Step::MaxPoolBackward(step) => step.index,
            Step::AveragePoolForward(step) => step.y.buffer,
            Step::AveragePoolBackward(step) => step.dy.buffer,
            Step::CrossEntropy(step) => step.loss,
        };
        let mut name = self.buffer(named).name.as_str();
        for part in [" gradient", " rounded", " index", ".weight", ".gamma"] {
            name = name.strip_suffix(part).unwrap_or(name);
        }
        name.to_owned()
    }

    fn step_flops(&self, step: &Step) -> u64 {
        let (outputs, filter) = match step {
            Step::Conv2dForward(step) => (step.y.shape, step.w),
            Step::Conv2dBackwardData(step) => (step.dy.shape, step.w),
            Step::Conv2dBackwardWeight(step) => (step.dy.shape, step.dw),
            _ => return 0,
        };
        match self.buffer(filter).contents {
            Contents::Filter(filter) => 2 * outputs.elements() as u64 * filter.depth() as u64,
            other => unreachable!("a convolution's weight is a filter, not {other:?}"),
        }
    }

    fn traffic(&self, step: &Step) -> Traffic {
        let mut traffic = Traffic::default();
        match step {
            Step::Cast(step) => {
                traffic.reads.insert(self.whole(step.x));
                traffic.writes.insert(self.whole(step.y));
            }
            Step::Conv2dForward(step) => {
                let e = &step.epilogue;
                traffic.reads.insert(self.windowed(&step.x, step.window, step.y.shape));
                traffic.reads.extend([Some(step.w), e.scale, e.bias].into_iter().flatten().map(|id| self.whole(id)));
                traffic.reads.extend(e.residual.iter().map(|view| self.view(view)));
                traffic.writes.insert(self.view(&step.y));
                traffic
                    .writes
                    .extend(step.statistics.iter().flat_map(|s| [s.mean, s.inv_std]).map(|id| self.whole(id)));
            }
            Step::Conv2dBackwardData(step) => {
                traffic.reads.extend([self.view(&step.dy), self.whole(step.w)]);
                self.gradient(&mut traffic, &step.dx, &step.epilogue);
            }
            Step::Conv2dBackwardWeight(step) => {
                traffic.reads.extend([self.windowed(&step.x, step.window, step.dy.shape), self.view(&step.dy)]);
                traffic.writes.extend(step.dbias.into_iter().chain([step.dw]).map(|id| self.whole(id)));
            }
            Step::BatchNormForward(step) => {
                self.normalized(&mut traffic, &step.input);
                match &step.residual {
                    Some(batch_norm::Residual::Identity(view)) => {
                        traffic.reads.insert(self.view(view));
                    }
                    Some(batch_norm::Residual::Normalized(shortcut)) => self.normalized(&mut traffic, shortcut),
                    None => {}
                }
                traffic.writes.insert(self.view(&step.z));
            }
            Step::BatchNormBackward(step) => {
                traffic.reads.extend([self.view(&step.g), self.view(&step.y)]);
                let vectors = [step.mean, step.inv_std, step.gamma, step.dgamma, step.dbeta];
                traffic.reads.extend(vectors.map(|id| self.whole(id)));
                traffic.writes.insert(self.view(&step.dy));
            }
            Step::MaxPoolForward(step) => {
                traffic.reads.insert(self.windowed(&step.x, step.window, step.y.shape));
                traffic.writes.insert(self.view(&step.y));
                traffic.writes.extend(step.index.map(|id| self.whole(id)));
            }
            Step::MaxPoolBackward(step) => {
                traffic.reads.extend([self.view(&step.dy), self.whole(step.index)]);
                self.gradient(&mut traffic, &step.dx, &step.epilogue);
            }
            Step::AveragePoolForward(step) => {
                traffic.reads.insert(self.view(&step.x));
                traffic.writes.insert(self.view(&step.y));
            }
            Step::AveragePoolBackward(step) => {
                traffic.reads.insert(self.view(&step.dy));
                self.gradient(&mut traffic, &step.dx, &step.epilogue);
            }
            Step::CrossEntropy(step) => {
                traffic.reads.extend([self.view(&step.logits), self.whole(step.labels)]);
                traffic.writes.extend([self.whole(step.loss), self.view(&step.dlogits)]);
            }
        }
        traffic
    }

    /// A gradient that is written, with what its epilogue reads and sums.
    fn gradient(&self, traffic: &mut Traffic, dx: &View, epilogue: &GradientEpilogue) {
        traffic.writes.insert(self.view(dx));
        traffic.reads.extend(epilogue.accumulate.then(|| self.view(dx)));
        traffic.reads.extend(epilogue.relu_mask.iter().map(|mask| self.view(mask)));
        for sum in &epilogue.reductions {
            traffic.reads.extend([self.view(&sum.y), self.whole(sum.mean), self.whole(sum.inv_std)]);
            traffic.writes.extend([self.whole(sum.dgamma), self.whole(sum.dbeta)]);
        }
    }

    fn normalized(&self, traffic: &mut Traffic, input: &batch_norm::Normalized) {
        traffic.reads.insert(self.view(&input.y));
        traffic.reads.extend([input.mean, input.inv_std, input.gamma, input.beta].map(|id| self.whole(id)));
    }

    fn whole(&self, id: BufferId) -> (BufferId, usize, u64) {
        (id, 0, self.buffer(id).bytes())
    }

    fn view(&self, view: &View) -> (BufferId, usize, u64) {
        let bytes = view.shape.elements() * self.buffer(view.buffer).element.bytes();
        (view.buffer, view.channel_offset, bytes as u64)
    }

    /// What a window reads of its input: all of it, unless it steps over rows and columns.
    fn windowed(&self, x: &View, window: Window, y: Shape) -> (BufferId, usize, u64) {
        let side = |map: usize, size: usize, n_windows: usize| {
            if size < window.stride { map.min(size * n_windows) } else { map }
        };
        let shape = Shape { h: side(x.shape.h, window.r, y.h), w: side(x.shape.w, window.s, y.w), ..x.shape };
        self.view(&View { shape, ..*x })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Model;
    use crate::plan::Pass;
    use crate::shape::Precision;

    fn plan(model: Model, pass: Pass, precision: Precision) -> Plan {
        Plan::new(&model.graph(), pass, precision, 4).expect("every model can be planned")
    }

    fn work(plan: &Plan, layer: &str, step: &str) -> Work {
        let found = plan.steps.iter().find(|other| plan.layer(other) == layer && other.name() == step);
        plan.work(found.unwrap_or_else(|| panic!("no {step} of {layer}")))
    }

    #[test]
    fn the_steps_have_the_operations_of_the_layers() {
        for model in Model::ALL {
            for pass in Pass::ALL {
                let plan = plan(model, pass, Precision::F16);
                let flops: u64 = plan.steps.iter().map(|step| plan.work(step).flops).sum();
                assert_eq!(flops, plan.flops, "{model} {pass}");
            }
        }
    }

    /// Layers of the published tables: output, window, input channels.
    #[test]
    fn work_is_that_of_the_layer_tables() {
        let alexnet = plan(Model::Alexnet, Pass::Forward, Precision::F32);
        let expected = Work {
            flops: 2 * 4 * 64 * 55 * 55 * (3 * 11 * 11),
            bytes: 4 * (4 * 3 * 224 * 224 + 64 * 3 * 11 * 11 + 64 + 4 * 64 * 55 * 55),
        };
        assert_eq!(work(&alexnet, "conv1", "conv2d_forward"), expected);

        // Half activations, and f32 for one scale and one bias a channel.
        let resnet = plan(Model::Resnet50, Pass::Forward, Precision::F16);
        let conv1 = Work {
            flops: 2 * 4 * 64 * 112 * 112 * (3 * 7 * 7),
            bytes: 2 * (4 * 3 * 224 * 224 + 64 * 3 * 7 * 7 + 4 * 64 * 112 * 112) + 4 * (64 + 64),
        };
        assert_eq!(work(&resnet, "conv1", "conv2d_forward"), conv1);
    }

    /// A 1x1 window with stride 2 reads a quarter of its input, and a branch of a concatenation its own channels.
    #[test]
    fn only_what_is_touched_counts() {
        let resnet = plan(Model::Resnet50, Pass::Forward, Precision::F32);
        let strided = |step: &&Step| matches!(step, Step::Conv2dForward(s) if (s.window.r, s.window.stride) == (1, 2));
        let Some(Step::Conv2dForward(step)) = resnet.steps.iter().find(strided) else { panic!("no projection") };
        let read = resnet.traffic(&Step::Conv2dForward(step.clone())).reads;
        let bytes = read.iter().find(|(id, ..)| *id == step.x.buffer).map(|&(_, _, bytes)| bytes);
        assert_eq!(bytes, Some(step.x.shape.elements() as u64));

        let googlenet = plan(Model::Googlenet, Pass::Forward, Precision::F32);
        let branch = |step: &&Step| matches!(step, Step::Conv2dForward(s) if !s.y.is_whole());
        let Some(Step::Conv2dForward(step)) = googlenet.steps.iter().find(branch) else { panic!("no branch") };
        let written = googlenet.traffic(&Step::Conv2dForward(step.clone())).writes;
        assert_eq!(written.iter().map(|&(_, _, bytes)| bytes).sum::<u64>(), 4 * step.y.shape.elements() as u64);
    }

    #[test]
    fn layers_have_the_names_of_the_network() {
        for (model, pass) in Model::ALL.into_iter().flat_map(|model| Pass::ALL.map(|pass| (model, pass))) {
            let graph = model.graph();
            let plan = plan(model, pass, Precision::F16);
            for step in &plan.steps {
                let layer = plan.layer(step);
                let known = graph.nodes.iter().any(|node| node.name == layer) || layer == "loss";
                assert!(known, "{model} {pass}: {layer:?} of {}", step.name());
                assert!(plan.work(step).bytes > 0, "{model} {pass}: {layer:?}");
            }
        }
    }
}
