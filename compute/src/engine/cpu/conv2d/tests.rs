//! Convolutions against their formulas, written out as loops.

use super::super::fixture::{Fixture, positions};
use crate::ops::batch_norm::Statistics;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Epilogue, Forward, Window, window_count};
use crate::ops::dropout::{Dropout, Dropping};
use crate::ops::{GradientEpilogue, View};
use crate::plan::Step;
use crate::shape::{FilterShape, Shape};

/// A convolution: input `[n, c, h, w]`, output channels, window `[r, s]`, stride, padding, channels before each slice.
struct Case {
    x: [usize; 4],
    k: usize,
    window: [usize; 2],
    stride: usize,
    pad: usize,
    before: usize,
}

const fn case(x: [usize; 4], k: usize, window: [usize; 2], stride: usize, pad: usize, before: usize) -> Case {
    Case { x, k, window, stride, pad, before }
}

const CASES: [Case; 14] = [
    case([1, 1, 1, 1], 1, [1, 1], 1, 0, 0),
    case([2, 3, 5, 7], 4, [3, 3], 1, 1, 0),
    case([2, 3, 5, 7], 4, [3, 3], 1, 1, 3),
    case([3, 2, 9, 8], 5, [3, 3], 2, 1, 1),
    case([1, 2, 11, 6], 3, [2, 3], 3, 1, 0),
    case([2, 3, 13, 13], 6, [5, 5], 2, 2, 2),
    case([1, 3, 23, 19], 4, [11, 11], 4, 2, 0),
    case([2, 5, 6, 6], 7, [1, 1], 1, 0, 2),
    case([2, 5, 7, 6], 7, [1, 1], 2, 0, 1),
    case([1, 2, 3, 3], 2, [3, 3], 1, 2, 0),
    // Fully connected, one sample's map at a time and a slice of it.
    case([3, 4, 3, 2], 9, [3, 2], 1, 0, 0),
    case([3, 4, 3, 2], 9, [3, 2], 1, 0, 2),
    // More positions than one block has, whose border lies within a sample.
    case([3, 1, 61, 60], 2, [1, 3], 1, 1, 1),
    // More weights than one block has, in many rows.
    case([2, 1500, 1, 2], 1500, [1, 2], 1, 0, 0),
];

impl Case {
    fn window(&self) -> Window {
        Window { r: self.window[0], s: self.window[1], stride: self.stride, pad: self.pad }
    }

    fn shapes(&self) -> [Shape; 2] {
        let [n, c, h, w] = self.x;
        let count = |map, window| window_count(map, window, self.stride, self.pad).expect("the window fits");
        [Shape::new(n, c, h, w), Shape::new(n, self.k, count(h, self.window[0]), count(w, self.window[1]))]
    }

    fn filter(&self) -> FilterShape {
        FilterShape { k: self.k, c: self.x[1], r: self.window[0], s: self.window[1] }
    }

    fn name(&self) -> String {
        format!("{} * {:?} {:?}, {} before", self.shapes()[0], self.filter(), self.window(), self.before)
    }

    /// Every product of the convolution, by its output, weight and input.
    fn visit(&self, mut product: impl FnMut([usize; 4], usize, [usize; 4])) {
        let [x, y] = self.shapes();
        let [r, s] = self.window;
        let inside = |at: usize, element: usize, size: usize| {
            (at * self.stride + element).checked_sub(self.pad).filter(|&at| at < size)
        };
        for [n, k, p, q] in positions(y) {
            for depth in 0..x.c * r * s {
                let (c, row, column) = (depth / (r * s), depth / s % r, depth % s);
                if let (Some(h), Some(w)) = (inside(p, row, x.h), inside(q, column, x.w)) {
                    product([n, k, p, q], k * x.c * r * s + depth, [n, c, h, w]);
                }
            }
        }
    }
}

fn index(shape: Shape, [n, c, h, w]: [usize; 4]) -> usize {
    ((n * shape.c + c) * shape.h + h) * shape.w + w
}

fn forward_steps(f: &mut Fixture, case: &Case) -> Vec<Forward> {
    let [x, y] = case.shapes();
    let plain = Forward {
        x: f.activation(x, case.before),
        w: f.filter(case.filter()),
        y: f.activation(y, case.before),
        window: case.window(),
        epilogue: Epilogue::default(),
        statistics: None,
    };
    let statistics = Statistics { mean: f.vector(y.c), inv_std: f.vector(y.c), epsilon: 0.1 };
    let epilogue = Epilogue {
        scale: Some(f.vector(y.c)),
        bias: Some(f.vector(y.c)),
        residual: Some(f.activation(y, case.before)),
        relu: true,
        dropout: Some(Dropping::new(&Dropout { probability: 0.3 }, 5)),
    };
    vec![
        Forward { statistics: Some(statistics), ..plain.clone() },
        Forward { epilogue: Epilogue { bias: epilogue.bias, ..Epilogue::default() }, ..plain.clone() },
        Forward { epilogue, ..plain },
    ]
}

#[test]
fn forward() {
    for case in &CASES {
        let mut f = Fixture::new();
        for step in forward_steps(&mut f, case) {
            let mut sums = vec![0.0; step.y.shape.elements()];
            case.visit(|y, w, x| sums[index(step.y.shape, y)] += f.at(&step.x, x) * f.value(step.w, w));
            let after = f.run(Step::Conv2dForward(step.clone()));
            let e = &step.epilogue;
            after.check(&case.name(), &f, &step.y, |at| {
                let mut value = sums[index(step.y.shape, at)];
                value *= e.scale.map_or(1.0, |scale| f.value(scale, at[1]));
                value += e.bias.map_or(0.0, |bias| f.value(bias, at[1]));
                value += e.residual.map_or(0.0, |residual| f.at(&residual, at));
                let value = if e.relu { value.max(0.0) } else { value };
                value * e.dropout.map_or(1.0, |dropout| f64::from(dropout.factor(index(step.y.shape, at) as u32)))
            });
            if let Some(statistics) = step.statistics {
                check_statistics(&case.name(), &after, &step.y, &statistics);
            }
        }
    }
}

/// Statistics of the output as stored.
fn check_statistics(what: &str, f: &Fixture, y: &View, statistics: &Statistics) {
    let m = y.shape.positions() as f64;
    let values = |c: usize| positions(y.shape).filter(move |at| at[1] == c);
    let means: Vec<f64> = (0..y.shape.c).map(|c| values(c).map(|at| f.at(y, at)).sum::<f64>() / m).collect();
    let inv_std = |(c, mean): (usize, &f64)| {
        let variance = values(c).map(|at| (f.at(y, at) - mean).powi(2)).sum::<f64>() / m;
        1.0 / (variance + f64::from(statistics.epsilon)).sqrt()
    };
    let inv_stds: Vec<f64> = means.iter().enumerate().map(inv_std).collect();
    f.check_buffer(&format!("{what}: mean"), statistics.mean, &means);
    f.check_buffer(&format!("{what}: inv_std"), statistics.inv_std, &inv_stds);
}

#[test]
fn backward_data() {
    for case in &CASES {
        let [x, y] = case.shapes();
        let mut f = Fixture::new();
        let bare = GradientEpilogue { scale: 1.0, accumulate: false, relu_mask: None, reductions: Vec::new() };
        let (dy, w, dx) = (f.activation(y, case.before), f.filter(case.filter()), f.activation(x, case.before));
        let mut sums = vec![0.0; x.elements()];
        case.visit(|y, filter, x| sums[index(dx.shape, x)] += f.at(&dy, y) * f.value(w, filter));
        for epilogue in [bare, f.epilogue(x, case.before)] {
            let step = BackwardData { dy, w, dx, window: case.window(), epilogue: epilogue.clone() };
            let after = f.run(Step::Conv2dBackwardData(step));
            after.check_gradient(&case.name(), &f, &dx, &epilogue, |at| sums[index(x, at)]);
        }
    }
}

#[test]
fn backward_weight() {
    for case in &CASES {
        let [x, y] = case.shapes();
        let mut f = Fixture::new();
        let (x, dy) = (f.activation(x, case.before), f.activation(y, case.before));
        let (dw, dbias) = (f.filter(case.filter()), f.vector(case.k));
        let factor = 0.25;
        let mut sums = vec![0.0; case.filter().elements()];
        case.visit(|y, w, at| sums[w] += f64::from(factor) * f.at(&dy, y) * f.at(&x, at));
        let mut bias_sums = vec![0.0; case.k];
        positions(y).for_each(|at| bias_sums[at[1]] += f64::from(factor) * f.at(&dy, at));
        let step = BackwardWeight { x, dy, dw, dbias: Some(dbias), window: case.window(), factor };
        let after = f.run(Step::Conv2dBackwardWeight(step));
        after.check_buffer(&case.name(), dw, &sums);
        after.check_buffer(&format!("{}: bias", case.name()), dbias, &bias_sums);
    }
}
