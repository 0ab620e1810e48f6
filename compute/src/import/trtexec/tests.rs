use crate::bench::record::Clock;
use crate::import::tests::{assert_near, device, fixture, imported, refusal};
use crate::import::{Given, Unknown, import};
use crate::shape::Precision;

/// R08: queries a second count minibatches, and are samples a second only where the minibatch is known.
#[test]
fn queries_become_samples_where_the_minibatch_is_known() {
    let imported = fixture("trt.log");
    let [unknown, known] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    let figure = &unknown.origin.as_ref().unwrap().figure;
    assert_eq!((figure.metric.as_str(), figure.value, unknown.throughput_per_sec), ("queries_per_s", 1089.8, None));
    assert!(unknown.notes.iter().any(|note| note.starts_with("its queries a second count minibatches")));
    assert_eq!((unknown.model.as_str(), unknown.precision), ("resnet50 (trtexec)", Precision::F16));
    assert_eq!((unknown.engine.as_str(), device(&imported, unknown)), ("TensorRT 8.6.1", "NVIDIA A100-SXM4-80GB"));
    assert_near(known.throughput_per_sec.unwrap(), 149.114 * 32.0);
    assert!((known.throughput_per_sec.unwrap() - 4771.6).abs() < 0.1);
    assert_eq!((known.model.as_str(), known.minibatch), ("resnet50 224x224", 32));
    assert_eq!((known.engine.as_str(), known.precision), ("TensorRT 10.2.0", Precision::Tf32));
    assert_eq!(known.origin.as_ref().unwrap().extra["fields"]["latency_median_ms"], 6.8);
    assert_eq!(imported.unknown, [Unknown::Minibatch, Unknown::Precision]);
    let given = Given { minibatch: Some(1), ..Given::default() };
    let told = import("a.log", include_str!("../fixtures/trtexec.log").as_bytes(), &given).unwrap();
    assert_near(told.file.records[0].throughput_per_sec.unwrap(), 1089.8);
    assert!(!serde_json::to_string(&told.file).unwrap().contains("ann"));
}

#[test]
fn a_rate_of_zero_is_replaced_by_the_time() {
    let text = "[x] [I] --shapes\nInput inference shape: x=8x3x4x4\nThroughput: 0 qps\n\
                GPU Compute Time: min = 1.9 ms, max = 2.1 ms, mean = 2 ms, median = 2 ms\n";
    let imported = imported("a.log", text);
    let record = &imported.file.records[0];
    assert_eq!((record.throughput_per_sec, record.origin.as_ref().unwrap().figure.value), (Some(4000.0), 2.0));
}

#[test]
fn an_implicit_minibatch_is_computed_from_its_time() {
    let text = "&&&& RUNNING TensorRT.trtexec [TensorRT v7103] # trtexec --deploy=net.prototxt --batch=16 --int8\n\
                Throughput: 8000 qps\nGPU Compute Time: min = 1.9 ms, max = 2.1 ms, mean = 2 ms, median = 2 ms\n";
    let imported = imported("a.log", text);
    let record = &imported.file.records[0];
    assert_eq!((record.minibatch, record.throughput_per_sec), (16, Some(8000.0)));
    assert!(record.notes.iter().any(|note| note.contains("may be quantized")), "{:?}", record.notes);
}

/// R10: a mean below what the median and the least allow.
#[test]
fn a_mean_that_can_not_be_is_doubted() {
    let text =
        "Throughput: 100 qps\nLatency: min = 4236.18 ms, max = 640000 ms, mean = 5258.42 ms, median = 315750.96 ms\n";
    let imported = imported("a.log", text);
    let doubt = imported.file.records[0].origin.as_ref().unwrap().doubt.as_deref().unwrap();
    assert!(doubt.starts_with("the mean latency of 5258.42 is impossible, median 315750.96, least 4236.18"), "{doubt}");
}

#[test]
fn exported_times_are_samples_of_the_devices_clock() {
    let imported = fixture("times.json");
    let record = &imported.file.records[0];
    let timing = record.timing.as_ref().unwrap();
    assert_eq!((timing.clock, timing.median_ms, timing.samples_ms.clone()), (Clock::Device, 4.0, vec![4.0, 4.5, 3.5]));
    assert_eq!((record.model.as_str(), record.throughput_per_sec), ("times", None));
    assert_eq!(imported.unknown, [Unknown::Device, Unknown::Precision, Unknown::Minibatch]);
    let given = Given { minibatch: Some(8), ..Given::default() };
    let told = import("a.json", include_str!("../fixtures/trtexec_times.json").as_bytes(), &given).unwrap();
    assert_near(told.file.records[0].throughput_per_sec.unwrap(), 2000.0);
}

#[test]
fn an_exported_profile_is_recognized_as_no_result() {
    let text = "[\n{ \"count\" : 100 }\n, { \"name\" : \"conv1\", \"timeMs\" : 50, \"averageMs\" : 0.5, \"medianMs\" : 0.5, \"percentage\" : 50 }\n\
                , { \"name\" : \"a\"b\", \"timeMs\" : 50, \"averageMs\" : 0.5 }\n]";
    let imported = imported("a.json", text);
    assert!(imported.file.records.is_empty());
    let notes = imported.notes.join("; ");
    assert!(notes.contains("broken at line 4") && notes.contains("times of 1 layers, 0.500 ms together"), "{notes}");
}

#[test]
fn broken_files_say_what_and_where() {
    let message =
        refusal("a.log", "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=a.onnx\n[E] failed\n");
    assert!(
        message.ends_with("the log has no performance summary (Throughput, GPU Compute Time): the run did not end")
    );
    let message = refusal("a.json", "[{\"computeMs\": \"quick\"}]");
    assert!(message.contains("trtexec but can't be imported: \"computeMs\": \"quick\" is not a number"), "{message}");
}
