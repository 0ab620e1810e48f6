//! Whole networks: gradients against finite differences of the loss, and the eight models.

use crate::engine::{EngineError, Session, cpu};
use crate::graph::{Graph, NodeId};
use crate::models::Model;
use crate::ops::{Conv2d, Op};
use crate::plan::{Pass, Plan};
use crate::random;
use crate::shape::Precision;

fn plan(graph: &Graph, pass: Pass, minibatch: usize) -> Plan {
    Plan::new(graph, pass, Precision::F32, minibatch).expect("the graph can be planned")
}

/// Writes parameters, input and labels as a measurement does.
fn fill(session: &mut dyn Session, plan: &Plan) {
    for parameter in &plan.parameters {
        session.write(parameter.buffer, &parameter.values()).expect("parameters are written");
    }
    session.write(plan.input, &plan.input_values()).expect("the input is written");
    if let Some(labels) = plan.labels {
        session.write(labels, &plan.label_values()).expect("the labels are written");
    }
}

fn conv(k: usize, window: usize, stride: usize, bias: bool) -> Conv2d {
    Conv2d { k, r: window, s: window, stride, pad: window / 2, bias }
}

fn add(g: &mut Graph, name: &str, op: Op, inputs: &[NodeId]) -> NodeId {
    g.add(name, op, inputs).expect("the layer fits")
}

/// Convolution, ReLU, pooling, two fully connected layers, dropout where asked for.
fn plain(dropout: bool) -> Graph {
    let mut g = Graph::new("plain", 1, 3, 11, 9);
    let x = g.conv_relu("conv1", g.input(), conv(6, 3, 2, true)).expect("fits");
    let x = g.conv_relu("conv2", x, conv(5, 3, 1, true)).expect("fits");
    let mut x = g.max_pool("pool", x, 3, 2, 1).expect("fits");
    if dropout {
        x = g.dropout("dropout1", x, 0.5).expect("fits");
    }
    x = add(&mut g, "fc1", Op::Linear { outputs: 7 }, &[x]);
    x = add(&mut g, "fc1 relu", Op::Relu, &[x]);
    if dropout {
        x = g.dropout("dropout2", x, 0.4).expect("fits");
    }
    add(&mut g, "fc2", Op::Linear { outputs: 4 }, &[x]);
    g
}

/// Two residual blocks: the first with a projection, the second without.
fn residual() -> Graph {
    let mut g = Graph::new("residual", 1, 3, 8, 7);
    let x = g.conv_norm("stem", g.input(), conv(4, 3, 1, false), 1.0).expect("fits");
    let mut x = add(&mut g, "stem relu", Op::Relu, &[x]);
    for (block, stride) in [("a", 2), ("b", 1)] {
        let name = |part: &str| format!("{block} {part}");
        let shortcut = if block == "a" {
            g.conv_norm(&name("shortcut"), x, conv(6, 1, stride, false), 1.0).expect("fits")
        } else {
            x
        };
        let y = g.conv_norm(&name("1"), x, conv(5, 3, stride, false), 1.0).expect("fits");
        let y = add(&mut g, &name("1 relu"), Op::Relu, &[y]);
        let y = g.conv_norm(&name("2"), y, conv(6, 3, 1, false), 0.5).expect("fits");
        let sum = add(&mut g, &name("sum"), Op::Add, &[y, shortcut]);
        x = add(&mut g, &name("relu"), Op::Relu, &[sum]);
    }
    let x = g.average_pool("pool", x).expect("fits");
    add(&mut g, "fc", Op::Linear { outputs: 4 }, &[x]);
    g
}

/// Two modules of three branches and a concatenation, dropout behind the average.
fn inception() -> Graph {
    let mut g = Graph::new("inception", 1, 3, 9, 9);
    let mut x = g.conv_relu("stem", g.input(), conv(4, 3, 2, true)).expect("fits");
    for module in ["a", "b"] {
        let name = |part: &str| format!("{module} {part}");
        let one = g.conv_relu(&name("one"), x, conv(3, 1, 1, true)).expect("fits");
        let three = g.conv_relu(&name("reduce"), x, conv(2, 1, 1, true)).expect("fits");
        let three = g.conv_relu(&name("three"), three, conv(4, 3, 1, true)).expect("fits");
        let pool = g.max_pool(&name("pool"), x, 3, 1, 1).expect("fits");
        let pool = g.conv_relu(&name("projection"), pool, conv(2, 1, 1, true)).expect("fits");
        x = add(&mut g, &name("concat"), Op::Concat, &[one, three, pool]);
    }
    let x = g.average_pool("average", x).expect("fits");
    let x = g.dropout("dropout", x, 0.4).expect("fits");
    add(&mut g, "fc", Op::Linear { outputs: 4 }, &[x]);
    g
}

/// Elements of each parameter that are compared.
const SAMPLES: usize = 12;
/// Steps of the central difference, of which each sample takes the better: a ReLU or a maximum that changes over inside
/// the first spoils it, the loss being rounded to f32 limits the second to about 1e-3.
const STEPS: [f32; 2] = [1e-3, 1e-4];
/// Largest ‖difference − gradient‖ / ‖gradient‖ over the samples of one parameter: what is left of rounding and of the few
/// that change over inside both steps. A wrong formula is wrong by its whole size.
const TOLERANCE: f64 = 0.03;

/// Loss of the training pass, from an own session of a plan.
fn loss(session: &mut dyn Session, plan: &Plan) -> f64 {
    session.run(1).expect("the pass runs");
    f64::from(session.read(plan.loss.expect("training has a loss")).expect("the loss is read")[0])
}

fn check(graph: &Graph) {
    let plan = plan(graph, Pass::ForwardBackward, 5);
    let engine = cpu::open().expect("the processor opens");
    let mut session = engine.load(&plan).expect("the plan is resident");
    fill(session.as_mut(), &plan);
    loss(session.as_mut(), &plan);
    assert_eq!(plan.gradients.len(), plan.parameters.len());
    for parameter in &plan.parameters {
        let name = &parameter.name;
        let gradient = plan.gradients.iter().find(|gradient| gradient.name == *name).expect("it has a gradient");
        let gradient = session.read(gradient.buffer).expect("the gradient is read");
        let values = parameter.values();
        assert_eq!(values.len(), gradient.len(), "{name}");
        let stream = random::stream(1, name);
        let (mut errors, mut sizes) = (0.0, 0.0);
        for sample in 0..SAMPLES.min(values.len()) {
            let index = (random::bits64(stream, sample as u64) % values.len() as u64) as usize;
            let mut loss_at = |value: f32| {
                let mut values = values.clone();
                values[index] = value;
                session.write(parameter.buffer, &values).expect("a parameter is written");
                loss(session.as_mut(), &plan)
            };
            let expected = f64::from(gradient[index]);
            let error_of = |step: f32| {
                let (above, below) = (values[index] + step, values[index] - step);
                ((loss_at(above) - loss_at(below)) / f64::from(above - below) - expected).abs()
            };
            errors += STEPS.map(error_of).into_iter().fold(f64::INFINITY, f64::min).powi(2);
            sizes += expected.powi(2);
        }
        session.write(parameter.buffer, &values).expect("a parameter is written");
        let error = (errors / sizes).sqrt();
        assert!(error < TOLERANCE, "{} {name}: {error:.2e}", graph.name);
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for graph in [plain(false), plain(true), residual(), inception()] {
        check(&graph);
    }
}

#[test]
fn every_model_trains_and_infers() {
    for model in Model::ALL {
        let graph = model.graph_sized(model.small_input_size(), 12).expect("the small input fits");
        let engine = cpu::open().expect("the processor opens");
        let inference = plan(&graph, Pass::Forward, 2);
        let mut session = engine.load(&inference).expect("the plan is resident");
        fill(session.as_mut(), &inference);
        session.run(1).expect("the pass runs");
        let logits = session.read(inference.logits).expect("the logits are read");
        assert_eq!(logits.len(), 24, "{model}");
        assert!(logits.iter().all(|logit| logit.is_finite() && *logit != 0.0), "{model}: {logits:?}");

        let training = plan(&graph, Pass::ForwardBackward, 2);
        let mut session = engine.load(&training).expect("the plan is resident");
        fill(session.as_mut(), &training);
        let loss = loss(session.as_mut(), &training);
        assert!(
            (0.5..30.0).contains(&loss),
            "{model}: loss {loss}, where chance is 2.5 and an untrained network some times that"
        );
        for gradient in &training.gradients {
            let values = session.read(gradient.buffer).expect("a gradient is read");
            let norm = values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
            assert!(norm.is_finite() && norm > 0.0, "{model}: {} has norm {norm}", gradient.name);
        }
    }
}

#[test]
fn only_f32_is_supported() {
    for precision in [Precision::Tf32, Precision::F16, Precision::Bf16] {
        let plan = Plan::new(&plain(false), Pass::Forward, precision, 1).expect("the graph can be planned");
        let engine = cpu::open().expect("the processor opens");
        let error = engine.load(&plan).err().expect("the precision is refused");
        let EngineError::NotSupported { reason } = error else { panic!("{error}") };
        assert!(reason.contains(precision.name()), "{reason}");
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let plan = plan(&residual(), Pass::ForwardBackward, 5);
    let gradients = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads starts");
        pool.install(|| {
            let engine = cpu::open().expect("the processor opens");
            let mut session = engine.load(&plan).expect("the plan is resident");
            fill(session.as_mut(), &plan);
            session.run(2).expect("the pass runs");
            let read = |gradient: &crate::plan::Gradient| session.read(gradient.buffer).expect("a gradient is read");
            plan.gradients.iter().map(read).collect::<Vec<_>>()
        })
    };
    assert_eq!(gradients(1), gradients(3));
}

#[test]
fn a_plan_that_does_not_fit_is_out_of_memory() {
    let engine = cpu::open().expect("the processor opens");
    for bytes in [1 << 50, u64::MAX / 4] {
        let mut plan = plan(&plain(false), Pass::Forward, 1);
        plan.slots[0] = bytes;
        let error = engine.load(&plan).err().expect("the plan is refused");
        let EngineError::OutOfMemory { requested_bytes, .. } = error else { panic!("{error}") };
        assert!(requested_bytes >= bytes, "{requested_bytes}");
    }
}

#[test]
fn a_session_tells_what_it_takes() {
    let plan = plan(&plain(false), Pass::Forward, 2);
    let engine = cpu::open().expect("the processor opens");
    let mut session = engine.load(&plan).expect("the plan is resident");
    let memory = session.memory();
    assert_eq!(memory.peak_bytes - memory.workspace_bytes, plan.bytes());
    assert!(memory.workspace_bytes > 0);
    assert_eq!(session.kernels(), ["conv2d_forward: im2col and matrixmultiply dgemm", "max_pool_forward: direct"]);
    let error = session.write(plan.input, &[1.0]).expect_err("the input has more values");
    assert!(error.to_string().contains("1 values for 594 elements"), "{error}");
    let timings = session.run(3).expect("the pass runs");
    assert_eq!(timings.len(), 3);
    assert!(timings.iter().all(|timing| timing.device_secs.is_none() && timing.host_secs > 0.0));
    let logits = session.read(plan.logits).expect("the logits are read");
    let steps = session.profile(2).expect("the steps are timed");
    assert_eq!(steps.len(), plan.steps.len());
    for (time, step) in steps.iter().zip(&plan.steps) {
        assert!(time.secs > 0.0 && time.kernel.starts_with(step.name()), "{}: {time:?}", step.name());
    }
    assert_eq!(session.read(plan.logits).expect("the logits are read"), logits, "what an iteration leaves");
}

#[test]
fn the_processor_is_listed() {
    let listing = cpu::listing();
    assert_eq!(listing.device.id, cpu::DEVICE_ID);
    assert_eq!(listing.precisions, [Precision::F32]);
    assert!(!listing.device.name.is_empty() && listing.device.limits["cores"] > 0);
    assert_eq!(Some(&listing.device), cpu::open().ok().map(|engine| engine.device().clone()).as_ref());
}
