use crate::bench::record::{Clock, Status};
use crate::engine::DeviceKind;
use crate::import::Unknown;
use crate::import::tests::{assert_near, device, fixture, imported, refusal};
use crate::plan::Pass;
use crate::shape::Precision;

fn object(times: &str, opt: &str) -> String {
    format!("{{{times},\"gpu_name\":\"GPU\",\"cudnn_version\":\"none\",\"opt\":{{{opt}}}}}")
}

#[test]
fn three_passes_with_their_samples() {
    let imported = fixture("resnet-50.json");
    let [forward, backward, total] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    assert_eq!((forward.model.as_str(), forward.minibatch, forward.precision), ("resnet50", 16, Precision::F32));
    assert_eq!((forward.engine.as_str(), forward.libraries["cuDNN"].as_str()), ("Torch7 cuDNN 5.1", "5.1.5"));
    assert_eq!(device(&imported, forward), "GeForce GTX 1080 Ti");
    let timing = forward.timing.as_ref().unwrap();
    assert_eq!((timing.clock, timing.iterations), (Clock::Host, 3));
    assert_near(timing.median_ms, 70.9);
    assert_near(forward.throughput_per_sec.unwrap(), 16.0 / 0.0709);
    let figure = &forward.origin.as_ref().unwrap().figure;
    assert_eq!(
        (figure.metric.as_str(), figure.model.as_str(), figure.phase.as_str()),
        ("s_per_batch", "resnet-50", "forward")
    );
    assert_near(figure.value, 0.0709);
    // Backward alone has times but no rate, and the deviation of the total is its own.
    assert_eq!((backward.pass, backward.throughput_per_sec), (Pass::ForwardBackward, None));
    assert_near(backward.timing.as_ref().unwrap().median_ms, 110.0);
    assert!((total.timing.as_ref().unwrap().stddev_ms - 10.1).abs() < 0.01);
    assert!(imported.unknown.is_empty());
}

/// R07: seconds a batch are neither milliseconds nor times of an image.
#[test]
fn seconds_a_batch_become_samples_a_second() {
    let opt = "\"model_t7\":\"x\\/resnet-50.t7\",\"batch_size\":16,\"image_height\":224,\"image_width\":224";
    let imported = imported("a.json", &object("\"forward_times\":[0.00708,0.00709,0.0071]", opt));
    let record = &imported.file.records[0];
    assert!((record.throughput_per_sec.unwrap() - 2256.7).abs() < 0.05, "{:?}", record.throughput_per_sec);
    assert_eq!(record.engine, "Torch7");
}

#[test]
fn other_networks_sizes_and_devices_keep_their_names() {
    let opt = "\"model_t7\":\"alexnet.t7\",\"batch_size\":16,\"image_height\":224,\"image_width\":224";
    let text = object("\"forward_times\":[0.004]", opt).replace("\"GPU\"", "\"cpu\"");
    let imported = imported("a.json", &text);
    let record = &imported.file.records[0];
    assert_eq!((record.model.as_str(), record.definition.as_str()), ("AlexNet (BVLC)", ""));
    assert_eq!(imported.file.devices[0].kind, DeviceKind::Cpu);
}

#[test]
fn samples_that_are_no_times_are_left_out() {
    let imported = imported("a.json", &object("\"forward_times\":[0.01,0,NaN,-1,0.01]", "\"batch_size\":1"));
    let record = &imported.file.records[0];
    assert_eq!(record.timing.as_ref().unwrap().iterations, 2);
    assert!(record.notes.iter().any(|note| note.starts_with("3 of 5 samples")), "{:?}", record.notes);
}

#[test]
fn an_unknown_minibatch_leaves_times_without_a_rate() {
    let imported = imported("a.json", &object("\"forward_times\":[0.01]", "\"model_t7\":\"x.t7\""));
    let record = &imported.file.records[0];
    assert_eq!((record.minibatch, record.throughput_per_sec, record.status), (0, None, Status::Ok));
    assert_eq!(imported.unknown, [Unknown::Minibatch]);
}

#[test]
fn broken_files_say_what_and_where() {
    let message = refusal("a.json", &object("\"forward_times\":\"fast\"", ""));
    assert!(message.ends_with(
        "looks like a file of cnn-benchmarks but can't be imported: \"forward_times\" is no list of seconds"
    ));
    let message = refusal("a.json", "{\"forward_times\":[0.1,0.2");
    assert!(message.contains("it begins like JSON and is broken at line 1"), "{message}");
    let none = imported("a.json", &object("\"forward_times\":[]", ""));
    assert_eq!(none.file.records[0].status, Status::Failed);
}
