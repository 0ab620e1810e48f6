use super::*;
use crate::engine::cuda::kernels;
use crate::engine::cuda::launch::Facts;
use crate::engine::cuda::tests::steps::{GEOMETRIES, Geometry, geometry};
use crate::engine::sketch::Sketch;
use crate::ops::batch_norm::Reduction;
use crate::ops::{GradientEpilogue, conv2d};
use crate::shape::Element;

/// A Turing, an Ada and a Hopper GPU.
const GPUS: [Facts; 3] = [
    Facts { capability: (7, 5), multiprocessors: 40, l2_bytes: 4 << 20, shared_bytes: 64 << 10 },
    Facts { capability: (8, 9), multiprocessors: 128, l2_bytes: 72 << 20, shared_bytes: 99 << 10 },
    Facts { capability: (9, 0), multiprocessors: 132, l2_bytes: 50 << 20, shared_bytes: 227 << 10 },
];

/// Few rows and few columns, as GoogLeNet's smallest convolutions have them at minibatch 1, and fully connected layers of
/// few outputs.
const SMALL: [Geometry; 3] =
    [geometry([1, 832, 7, 7], 32, 1, 1, 0), geometry([1, 8, 1, 1], 8, 1, 1, 0), geometry([2, 512, 7, 7], 10, 7, 1, 0)];

fn check(what: &str, candidates: &[Candidate], facts: &Facts) {
    assert!(!candidates.is_empty(), "no kernel of ours computes {what}");
    for command in candidates.iter().flat_map(|candidate| candidate.iteration(true)) {
        let Command::Kernel(launch) = command else { panic!("a library's command for {what}") };
        let entry = launch.kernel.entry;
        assert!(launch.shared_bytes <= facts.shared_bytes, "{entry} for {what} asks for {} bytes", launch.shared_bytes);
        let [x, y, z] = launch.grid;
        assert!(x > 0 && (1..=65_535).contains(&y) && (1..=65_535).contains(&z), "{entry} for {what}: {x} {y} {z}");
    }
}

/// Every convolution has a kernel of ours on every GPU, whatever stands behind it: the others are compared with it, and
/// there may be no others.
#[test]
fn every_convolution_has_a_kernel_of_ours() {
    for facts in GPUS {
        for precision in Precision::ALL.into_iter().filter(|&p| kernels::computes(facts.capability, p)) {
            for geometry in GEOMETRIES.into_iter().chain(SMALL) {
                let what = format!("{geometry:?} in {precision} on {:?}", facts.capability);
                let mut sketch = Sketch::new(precision);
                let (x, y) = (sketch.activation(geometry.x), sketch.activation(geometry.y()));
                let w = sketch.filter(geometry.filter(), precision.storage());
                let dw = sketch.filter(geometry.filter(), Element::F32);
                let [mean, inv_std, dgamma, dbeta] = [(); 4].map(|()| sketch.vector(geometry.x.c));
                let reduction = Reduction { y: x, mean, inv_std, dgamma, dbeta, factor: 1.0 };
                let window = geometry.window;
                for is_quick in [false, true] {
                    let lowering = Lowering { plan: sketch.plan(), facts, is_quick };
                    let epilogue = conv2d::Epilogue { relu: true, residual: Some(y), ..conv2d::Epilogue::default() };
                    let step = Forward { x, w, y, window, epilogue, statistics: None };
                    check(&format!("forward of {what}"), &own_forward(&step, &lowering, true), &facts);
                    for n_reductions in 0..=2 {
                        let epilogue = GradientEpilogue {
                            scale: 1.0,
                            accumulate: true,
                            relu_mask: Some(x),
                            reductions: vec![reduction; n_reductions],
                        };
                        let step = BackwardData { dy: y, w, dx: x, window, epilogue };
                        let of = format!("backward data of {what} with {n_reductions} reductions");
                        check(&of, &own_backward_data(&step, &lowering, true), &facts);
                    }
                    let step = BackwardWeight { x, dy: y, dw, dbias: None, window, factor: 1.0 };
                    check(&format!("backward weight of {what}"), &own_backward_weight(&step, &lowering, true), &facts);
                }
            }
        }
    }
}
