//! Every graph in every precision against sums in f64, and what plans there are for the networks' layers.

use super::choice::Note;
use super::*;
use crate::engine::cuda::fixture::{self, Gpu, Memory};
use crate::shape::{Element, Precision};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A convolution of the tests: minibatch, input channels, map, output channels, window, stride, padding.
#[derive(Clone, Copy)]
struct Layer {
    n: usize,
    c: usize,
    map: [usize; 2],
    k: usize,
    window: [usize; 2],
    stride: usize,
    pad: usize,
}

const fn layer(n: usize, c: usize, map: [usize; 2], k: usize, window: usize, stride: usize, pad: usize) -> Layer {
    Layer { n, c, map, k, window: [window, window], stride, pad }
}

impl Layer {
    fn convolution(&self, element: Element) -> Convolution {
        let [h, w] = self.map;
        let [r, s] = self.window;
        let side = |map: usize, window: usize| (map + 2 * self.pad - window) / self.stride + 1;
        let y = [self.n, self.k, side(h, r), side(w, s)];
        Convolution {
            x: Tensor::activation([self.n, self.c, h, w], self.c, element),
            w: Tensor::filter([self.k, self.c, r, s], element),
            y: Tensor::activation(y, self.k, element),
            stride: self.stride as i64,
            pad: self.pad as i64,
        }
    }
}

/// A layer's operations by name.
fn graphs(layer: &Layer, precision: Precision) -> Vec<(&'static str, Graph)> {
    let element = precision.storage();
    let convolution = layer.convolution(element);
    let forward =
        |bias, summand: bool, relu| Operation::Forward { bias, summand: summand.then_some(convolution.y), relu };
    let backward = |scale, accumulation, mask: bool| Operation::BackwardData {
        scale,
        accumulation,
        mask: mask.then_some(convolution.x),
    };
    let wide = |tensor: Tensor| {
        let dims = tensor.dims.map(|size| size as usize);
        Tensor::activation(dims, dims[1] + 32, tensor.element)
    };

    let single_dw = Convolution { w: Tensor { element: Element::F32, ..convolution.w }, ..convolution };
    let of = |convolution, operation| Graph { convolution, operation };
    let (replace, beta, add) = (Accumulation::Replace, Accumulation::Beta, Accumulation::Add);
    let mut graphs = vec![
        ("forward", of(convolution, forward(None, false, false))),
        ("forward bias", of(convolution, forward(Some(Element::F32), false, false))),
        ("forward bias relu", of(convolution, forward(Some(Element::F32), false, true))),
        ("forward bias sum relu", of(convolution, forward(Some(Element::F32), true, true))),
        ("forward to slice", of(Convolution { y: wide(convolution.y), ..convolution }, forward(None, false, false))),
        (
            "forward bias relu to slice",
            of(Convolution { y: wide(convolution.y), ..convolution }, forward(Some(Element::F32), false, true)),
        ),
        ("forward from slice", of(Convolution { x: wide(convolution.x), ..convolution }, forward(None, false, false))),
        ("backward data", of(convolution, backward(1.0, replace, false))),
        ("backward data scaled", of(convolution, backward(2.0, replace, false))),
        ("backward data beta", of(convolution, backward(1.0, beta, false))),
        ("backward data add", of(convolution, backward(1.0, add, false))),
        ("backward data mask", of(convolution, backward(1.0, replace, true))),
        ("backward data add mask", of(convolution, backward(1.0, add, true))),
        (
            "backward data from slice",
            of(Convolution { y: wide(convolution.y), ..convolution }, backward(1.0, replace, false)),
        ),
        (
            "backward data to slice",
            of(Convolution { x: wide(convolution.x), ..convolution }, backward(1.0, replace, false)),
        ),
        ("backward weight", of(single_dw, Operation::BackwardWeight { factor: 1.0 })),
        ("backward weight scaled", of(single_dw, Operation::BackwardWeight { factor: 1.0 / 1024.0 })),
        (
            "backward weight of slices",
            of(
                Convolution { x: wide(convolution.x), y: wide(convolution.y), ..single_dw },
                Operation::BackwardWeight { factor: 1.0 },
            ),
        ),
    ];
    if element != Element::F32 {
        let slice = Convolution { y: wide(convolution.y), ..convolution };
        graphs.push(("forward half bias relu to slice", of(slice, forward(Some(element), false, true))));
        graphs.push(("forward half bias relu", of(convolution, forward(Some(element), false, true))));
        graphs.push(("forward half bias sum relu", of(convolution, forward(Some(element), true, true))));
        graphs.push(("backward weight half", of(convolution, Operation::BackwardWeight { factor: 1.0 })));
    }
    graphs
}

/// Tensors of a graph by number, and which of them it writes.
fn tensors(graph: &Graph) -> (BTreeMap<i64, Tensor>, Vec<i64>) {
    let Convolution { x, w, y, .. } = graph.convolution;
    let mut all = BTreeMap::from([(uid::X, x), (uid::W, w), (uid::Y, y)]);
    let outputs = match graph.operation {
        Operation::Forward { bias, summand, .. } => {
            all.extend(bias.map(|element| (uid::BIAS, Tensor::vector(y.dims[1], element))));
            all.extend(summand.map(|tensor| (uid::SUMMAND, tensor)));
            vec![uid::Y]
        }
        Operation::BackwardData { accumulation, mask, .. } => {
            all.extend((accumulation == Accumulation::Add).then_some((uid::SUMMAND, x)));
            all.extend(mask.map(|tensor| (uid::MASK, tensor)));
            vec![uid::X]
        }
        Operation::BackwardWeight { .. } => vec![uid::W],
    };
    (all, outputs)
}

/// Offsets of a tensor's elements in the order n, h, w, c.
fn offsets(tensor: &Tensor) -> Vec<usize> {
    let [n, c, h, w] = tensor.dims;
    let mut offsets = Vec::new();
    for n in 0..n {
        for h in 0..h {
            for w in 0..w {
                for c in 0..c {
                    let place = [n, c, h, w].iter().zip(tensor.strides).map(|(idx, stride)| idx * stride).sum::<i64>();
                    offsets.push(place as usize);
                }
            }
        }
    }
    offsets
}

/// Values of every tensor, in the order n, h, w, c.
fn values(all: &BTreeMap<i64, Tensor>) -> BTreeMap<i64, Vec<f32>> {
    let of = |(&id, tensor): (&i64, &Tensor)| {
        let count = tensor.dims.iter().product::<i64>() as usize;
        let mut values = fixture::random_values(&format!("tensor {id}"), count, tensor.element);
        if id == uid::MASK {
            values.iter_mut().for_each(|value| *value = value.max(0.0));
        }
        (id, values)
    };
    all.iter().map(of).collect()
}

/// What a graph makes of the values, summed in f64.
fn expected(graph: &Graph, values: &BTreeMap<i64, Vec<f32>>) -> BTreeMap<i64, Vec<f64>> {
    let Convolution { x, w, y, stride, pad } = graph.convolution;
    let size = |tensor: &Tensor| tensor.dims.map(|size| size as usize);
    let ([n, c, h, width], [k, _, r, s], [_, _, p, q]) = (size(&x), size(&w), size(&y));
    let (stride, pad) = (stride as usize, pad as usize);
    let value = |id: i64, idx: usize| f64::from(values[&id][idx]);
    let direction = graph.operation;
    let zeros = |tensor: &Tensor| vec![0.0; tensor.dims.iter().product::<i64>() as usize];
    let (mut dx, mut dw, mut out) = (zeros(&x), zeros(&w), zeros(&y));
    for at in 0..n * p * q * r * s {
        let (tap, place) = (at % (r * s), at / (r * s));
        let (row, column) =
            ((place / q % p * stride + tap / s).wrapping_sub(pad), (place % q * stride + tap % s).wrapping_sub(pad));
        if row >= h || column >= width {
            continue;
        }
        let x_row = ((place / (p * q) * h + row) * width + column) * c;
        for k_idx in 0..k {
            let (y_idx, w_row) = (place * k + k_idx, (k_idx * r * s + tap) * c);
            for c in 0..c {
                match direction {
                    Operation::BackwardData { .. } => dx[x_row + c] += value(uid::Y, y_idx) * value(uid::W, w_row + c),
                    Operation::BackwardWeight { .. } => {
                        dw[w_row + c] += value(uid::Y, y_idx) * value(uid::X, x_row + c);
                    }
                    _ => out[y_idx] += value(uid::X, x_row + c) * value(uid::W, w_row + c),
                }
            }
        }
    }
    match direction {
        Operation::Forward { bias, summand, relu } => {
            for (idx, out) in out.iter_mut().enumerate() {
                *out += bias.map_or(0.0, |_| value(uid::BIAS, idx % k));
                *out += summand.map_or(0.0, |_| value(uid::SUMMAND, idx));
                *out = if relu { out.max(0.0) } else { *out };
            }
            BTreeMap::from([(uid::Y, out)])
        }
        Operation::BackwardData { scale, accumulation, mask } => {
            for (idx, dx) in dx.iter_mut().enumerate() {
                *dx *= f64::from(scale);
                *dx += match accumulation {
                    Accumulation::Replace => 0.0,
                    Accumulation::Beta => value(uid::X, idx),
                    Accumulation::Add => value(uid::SUMMAND, idx),
                };
                *dx = if mask.is_some() && value(uid::MASK, idx) <= 0.0 { 0.0 } else { *dx };
            }
            BTreeMap::from([(uid::X, dx)])
        }
        Operation::BackwardWeight { factor } => {
            dw.iter_mut().for_each(|dw| *dw *= f64::from(factor));
            BTreeMap::from([(uid::W, dw)])
        }
    }
}

/// Largest normalized error. IEEE single precision is told from tf32 by it.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 2e-5,
        Precision::Tf32 | Precision::F16 => 3e-3,
        Precision::Bf16 => 1e-2,
    }
}

/// Executes every plan of a graph; gives the errors by plan.
fn check(gpu: &Gpu, cudnn: &Cudnn, graph: &Graph, plans: &[Arc<ExecutionPlan>]) -> Vec<Result<f64, String>> {
    let (all, outputs) = tensors(graph);
    let values = values(&all);
    let expected = expected(graph, &values);
    let is_added_to = matches!(graph.operation, Operation::BackwardData { accumulation: Accumulation::Beta, .. });
    let upload = |(&id, tensor): (&i64, &Tensor)| {
        let mut spread =
            vec![if outputs.contains(&id) { f32::NAN } else { 0.0 }; tensor.bytes() as usize / tensor.element.bytes()];
        if !outputs.contains(&id) || is_added_to {
            offsets(tensor).iter().zip(&values[&id]).for_each(|(&offset, &value)| spread[offset] = value);
        }
        fixture::encode(&spread, tensor.element)
    };
    let inputs: BTreeMap<i64, Vec<u8>> = all.iter().map(|entry| (*entry.0, upload(entry))).collect();
    let error = |plan: &ExecutionPlan| {
        let memory: BTreeMap<i64, Memory> = inputs.iter().map(|(&id, bytes)| (id, gpu.upload(bytes))).collect();
        let places: Vec<_> = memory.iter().map(|(&id, memory)| (id, memory.address)).collect();
        let workspace = gpu.poisoned(plan.workspace_bytes);
        // SAFETY: the memory is as large as the tensors say and lives until the stream is done.
        unsafe { plan.execute(cudnn, &places, workspace.address) }.map_err(|error| error.to_string())?;
        gpu.wait()?;
        let mut most = 0.0_f64;
        for (id, expected) in &expected {
            let found = fixture::decode(&gpu.download(&memory[id]), all[id].element);
            let found: Vec<_> = offsets(&all[id]).iter().map(|&offset| found[offset]).collect();
            most = most.max(fixture::normalized_error(&found, expected));
        }
        Ok(most)
    };
    plans.iter().map(|plan| error(plan)).collect()
}

fn limits(precision: Precision) -> Limits {
    Limits { most: 40, most_compiled: 1, deterministic: false, ..Limits::new(precision) }
}

fn plans(cudnn: &Cudnn, graph: &Graph, limits: &Limits) -> Vec<Arc<ExecutionPlan>> {
    cudnn.plans(&[*graph], limits).expect("the library answers").remove(0)
}

#[test]
fn every_plan_agrees_with_sums_in_f64() {
    let Some(gpu) = Gpu::open() else { return };
    let cudnn = match Cudnn::new(gpu.stream()) {
        Ok(cudnn) => cudnn,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let layers = [
        ("3x3", layer(3, 16, [9, 7], 24, 3, 1, 1)),
        ("1x1", layer(2, 32, [7, 5], 64, 1, 1, 0)),
        ("3x3 stride 2", layer(2, 32, [9, 11], 32, 3, 2, 1)),
        ("7x7 stride 2", layer(2, 8, [23, 21], 64, 7, 2, 3)),
        ("5x5", layer(2, 48, [11, 9], 40, 5, 1, 2)),
        ("11x11 stride 4", layer(1, 8, [35, 39], 96, 11, 4, 2)),
        ("6x6 whole", layer(3, 40, [6, 6], 136, 6, 1, 0)),
        ("3x3 wide", layer(2, 64, [30, 28], 64, 3, 1, 1)),
    ];
    let start = Instant::now();
    let (mut wrong, mut n_left_out) = (Vec::new(), 0);
    for precision in [Precision::F32, Precision::Tf32, Precision::F16, Precision::Bf16] {
        for (name, layer) in layers {
            for (operation, graph) in graphs(&layer, precision) {
                if name != "3x3" && !COMMON.contains(&operation) {
                    continue;
                }
                let label = format!("{name}, {precision}, {operation}");
                if start.elapsed() > Duration::from_secs(SECONDS) {
                    n_left_out += 1;
                    continue;
                }
                let begin = Instant::now();
                let plans = plans(&cudnn, &graph, &limits(precision));
                let n_unordered = plans.iter().filter(|plan| plan.notes.contains(&Note::Nondeterministic)).count();
                let errors = check(&gpu, &cudnn, &graph, &plans);
                let largest = errors.iter().flatten().fold(0.0_f64, |most, &error| most.max(error));
                let secs = begin.elapsed().as_secs_f64();
                eprintln!("{label}: {} plans ({n_unordered} unordered), error {largest:.1e}, {secs:.2} s", plans.len());
                for (plan, error) in plans.iter().zip(errors) {
                    if error.as_ref().map_or(true, |&error| error > tolerance(precision)) {
                        wrong.push(format!("{label}: {} {:?}: {error:?}", plan.name, plan.notes));
                        eprintln!("  WRONG {} {:?} {error:?}", plan.name, plan.notes);
                    }
                }
            }
        }
    }
    eprintln!("{n_left_out} graphs are left out for want of time");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is checked for every layer; the first is checked for everything.
const COMMON: [&str; 6] = [
    "forward",
    "forward half bias relu to slice",
    "backward data",
    "backward data beta",
    "backward weight scaled",
    "backward weight half",
];

/// Seconds that the checks may take; what is left over is counted and skipped.
const SECONDS: u64 = 25;

/// Times of every plan for layers of the networks at minibatch 64. Prints; asserts nothing.
#[test]
#[ignore = "measures for half a minute"]
fn times_of_layers() {
    let Some(gpu) = Gpu::open() else { return };
    let cudnn = Cudnn::new(gpu.stream()).expect("cuDNN");
    let layers = [
        ("resnet 1x1 64 to 256 at 56", layer(64, 64, [56, 56], 256, 1, 1, 0)),
        ("vgg 3x3 256 at 56", layer(64, 256, [56, 56], 256, 3, 1, 1)),
        ("resnet 3x3 stride 2 128 at 56", layer(64, 128, [56, 56], 128, 3, 2, 1)),
        ("resnet 7x7 stride 2 8 at 224", layer(64, 8, [224, 224], 64, 7, 2, 3)),
        ("resnet 1x1 1024 to 256 at 14", layer(64, 1024, [14, 14], 256, 1, 1, 0)),
        ("googlenet 5x5 16 to 32 at 28", layer(64, 16, [28, 28], 32, 5, 1, 2)),
        ("resnet 3x3 512 at 7", layer(64, 512, [7, 7], 512, 3, 1, 1)),
    ];
    let operations = [
        "forward",
        "forward half bias sum relu",
        "forward bias sum relu",
        "backward data",
        "backward data add mask",
        "backward weight",
        "backward weight half",
    ];
    let start = Instant::now();
    let is_slow = |precision: Precision, operation: &str| {
        precision.storage() != Element::F32 && ["forward bias sum relu", "backward weight"].contains(&operation)
    };
    for (name, layer) in layers {
        for precision in [Precision::Bf16, Precision::F32, Precision::F16, Precision::Tf32] {
            let graphs = graphs(&layer, precision);
            for (operation, graph) in graphs.iter().filter(|(operation, _)| operations.contains(operation)) {
                if is_slow(precision, operation) {
                    continue;
                }
                if start.elapsed() > Duration::from_secs(2 * SECONDS) {
                    return eprintln!("no time left");
                }
                times_of_graph(&gpu, &cudnn, &format!("{precision} {name} {operation}"), graph, precision);
            }
        }
    }
}

fn times_of_graph(gpu: &Gpu, cudnn: &Cudnn, label: &str, graph: &Graph, precision: Precision) {
    let begin = Instant::now();
    let all = Limits { most: 24, most_compiled: 3, ..limits(precision) };
    let plans = plans(cudnn, graph, &all);
    let built = begin.elapsed().as_secs_f64();
    let (all, _) = tensors(graph);
    // Random bits: on zeros the device draws less power and clocks higher.
    let upload = |tensor: &Tensor| {
        let values = fixture::encode(&fixture::random_values("times", 1 << 12, tensor.element), tensor.element);
        gpu.upload(&values.repeat(1 + tensor.bytes() as usize / values.len()))
    };
    let memory: BTreeMap<i64, Memory> = all.iter().map(|(&id, tensor)| (id, upload(tensor))).collect();
    let places: Vec<_> = memory.iter().map(|(&id, memory)| (id, memory.address)).collect();
    let workspace = gpu.uninitialized(plans.iter().map(|plan| plan.workspace_bytes).max().unwrap_or(0));
    let time = |plan: &ExecutionPlan| {
        // SAFETY: the memory is as large as the tensors say and lives until the stream is done.
        let time = gpu.time(|| unsafe { plan.execute(cudnn, &places, workspace.address) });
        time.unwrap_or_else(|error| {
            eprintln!("  {} fails: {error}", plan.name);
            f64::INFINITY
        })
    };
    let mut times: Vec<_> = plans.iter().enumerate().map(|(rank, plan)| (time(plan), rank, plan)).collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Convolution { w, y, .. } = graph.convolution;
    let flops = 2.0 * (y.dims.iter().product::<i64>() * w.dims[1] * w.dims[2] * w.dims[3]) as f64;
    let text = |&(time, rank, plan): &(f64, usize, &Arc<ExecutionPlan>)| {
        let unordered = if plan.notes.contains(&Note::Nondeterministic) { "~" } else { "" };
        format!("{:.1} us {:.0} TF {unordered}#{rank} {}", time * 1e6, flops / time / 1e12, plan.name)
    };
    let among = |name: &str, belongs: &dyn Fn(usize, &ExecutionPlan) -> bool| {
        let found = times.iter().find(|(_, rank, plan)| belongs(*rank, plan));
        found.map_or(format!("{name} none"), |(time, ..)| format!("{name} {:.1}", time * 1e6))
    };
    eprintln!(
        "{label}: {} plans in {built:.2} s, {}; us: {}, {}, {}",
        plans.len(),
        times.first().map_or(String::new(), text),
        among("first", &|rank, _| rank == 0),
        among("of six", &|rank, _| rank < 6),
        among("ordered", &|_, plan| !plan.notes.contains(&Note::Nondeterministic)),
    );
}
