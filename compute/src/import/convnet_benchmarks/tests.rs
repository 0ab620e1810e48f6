use crate::bench::record::Clock;
use crate::import::tests::{assert_near, device, fixture, imported, refusal};
use crate::import::{Given, Unknown, import};
use crate::plan::Pass;
use crate::shape::Precision;

#[test]
fn torch_has_blocks_of_three_passes() {
    let imported = fixture("output.log");
    let [forward, backward, total, overfeat] = &imported.file.records[..] else {
        panic!("{:?}", imported.file.records)
    };
    assert_eq!((forward.model.as_str(), forward.minibatch, forward.engine.as_str()), ("alexnet", 128, "Torch7 cuDNN"));
    assert_near(forward.throughput_per_sec.unwrap(), 128e3 / 27.65);
    assert_eq!(device(&imported, forward), "GeForce GTX TITAN X");
    assert_eq!((backward.throughput_per_sec, backward.origin.as_ref().unwrap().figure.value), (None, 53.31));
    assert_eq!(
        (total.pass, total.origin.as_ref().unwrap().figure.phase.as_str()),
        (Pass::ForwardBackward, "forward_backward")
    );
    assert_near(total.throughput_per_sec.unwrap(), 128e3 / 80.96);
    assert_eq!((overfeat.model.as_str(), overfeat.engine.as_str()), ("overfeat", "Torch7 nn"));
    assert_eq!(imported.unknown, [Unknown::Precision]);
}

#[test]
fn a_torch_network_at_another_size_or_precision_is_another() {
    let text = "ModelType: AlexNet\tKernels: cudnn\tInput shape: 128x3x227x227\t\ncudnn :Forward: 10.00\n";
    let imported = imported("output_cudnn_fp16.log", text);
    let record = &imported.file.records[0];
    assert_eq!(
        (record.model.as_str(), record.definition.as_str(), record.precision),
        ("AlexNet 227x227", "", Precision::F16)
    );
}

#[test]
fn tensorflow_takes_network_and_minibatch_from_its_name_and_script() {
    let imported = fixture("output_alexnet.log");
    let [forward, both] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    assert_eq!((forward.model.as_str(), forward.minibatch, forward.pass), ("alexnet", 128, Pass::Forward));
    assert_near(forward.throughput_per_sec.unwrap(), 128.0 / 0.026);
    let figure = &forward.origin.as_ref().unwrap().figure;
    assert_eq!((figure.metric.as_str(), figure.value), ("s_per_batch", 0.026));
    assert_eq!((both.pass, device(&imported, both)), (Pass::ForwardBackward, "GeForce GTX TITAN X"));
    assert_eq!(imported.unknown, [Unknown::Precision, Unknown::Minibatch]);
    let notes = forward.notes.join("; ");
    for part in ["the network is taken from the file's name", "the script's own", "rounds times to a millisecond"] {
        assert!(notes.contains(part), "{notes}");
    }
    let given = Given { minibatch: Some(64), ..Given::default() };
    let text = include_str!("../fixtures/tensorflow.log");
    let told = import("output_vgga.log", text.as_bytes(), &given).unwrap();
    assert_eq!((told.file.records[0].model.as_str(), told.file.records[0].minibatch), ("vgg_a", 64));
    let nameless = import("log.txt", text.as_bytes(), &Given::default()).unwrap();
    let record = &nameless.file.records[0];
    assert_eq!((record.model.as_str(), record.minibatch, record.throughput_per_sec), ("unknown network", 0, None));
}

#[test]
fn caffe_reads_the_printed_network_and_trusts_samples_above_means() {
    let imported = fixture("output_caffe.log");
    let [forward, backward, both] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    assert_eq!((forward.model.as_str(), forward.minibatch, forward.engine.as_str()), ("alexnet", 128, "Caffe"));
    assert_near(forward.throughput_per_sec.unwrap(), 128e3 / 42.405);
    assert_eq!((backward.throughput_per_sec, backward.origin.as_ref().unwrap().figure.value), (None, 86.2657));
    let timing = both.timing.as_ref().unwrap();
    assert_eq!((timing.iterations, timing.median_ms, timing.clock), (3, 129.0, Clock::Host));
    assert_near(both.throughput_per_sec.unwrap(), 128e3 / 129.0);
    assert_eq!(both.origin.as_ref().unwrap().figure.value, 131.5);
}

#[test]
fn caffe_has_another_alexnet_of_the_same_name() {
    let text = include_str!("../fixtures/caffe.log").replace("num_output: 64", "num_output: 96");
    let record = imported("a.log", &text).file.records.remove(0);
    assert_eq!((record.model.as_str(), record.definition.as_str()), ("alexnet (convnet-benchmarks)", ""));
    let bare = imported("a.log", "x] Average Forward pass: 42.405 ms.\n");
    assert_eq!((bare.file.records[0].model.as_str(), bare.file.records[0].minibatch), ("unknown network", 0));
    assert_eq!(bare.unknown, [Unknown::Device, Unknown::Precision, Unknown::Minibatch]);
}

#[test]
fn neon_names_four_tables_by_their_order_and_no_other_number() {
    let imported_all = fixture("output_neon.log");
    let models: Vec<&str> = imported_all.file.records.iter().map(|record| record.model.as_str()).collect();
    assert_eq!(models[..4], ["alexnet", "alexnet", "alexnet", "overfeat"]);
    assert_eq!((models.len(), models[6], models[9]), (12, "vgg_a", "googlenet"));
    let iteration = &imported_all.file.records[2];
    assert_near(iteration.throughput_per_sec.unwrap(), 128e3 / 87.5);
    assert_eq!(iteration.origin.as_ref().unwrap().extra["fields"]["median_ms"], 87.4);
    let text = include_str!("../fixtures/neon.log");
    let first: String = text.lines().take(7).map(|line| format!("{line}\n")).collect();
    let one = imported("a.log", &first);
    assert_eq!((one.file.records[0].model.as_str(), one.file.records[0].minibatch), ("network 1", 0));
    assert!(one.notes[0].contains("name no network"), "{:?}", one.notes);
}

#[test]
fn broken_logs_say_what_and_where() {
    let head = "ModelType: AlexNet\tKernels: nn\tInput shape:";
    let message = refusal("a.log", &format!("{head} 128x3\t\nnn :Forward: 1\n"));
    assert!(message.ends_with("line 1: the input shape is \"128x3\", expected one such as 128x3x224x224"), "{message}");
    let message = refusal("a.log", &format!("{head} 1x3x224x224\t\nnn :Forward: fast\n"));
    assert!(message.ends_with("line 2: \"fast\" is no time in milliseconds"), "{message}");
    let message = refusal("a.log", &format!("{head} 1x3x224x224\t\n"));
    assert!(message.ends_with("it holds no result"), "{message}");
}
