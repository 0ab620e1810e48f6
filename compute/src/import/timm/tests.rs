use serde_json::json;

use crate::bench::record::Status;
use crate::import::Unknown;
use crate::import::tests::{assert_near, device, fixture, imported, refusal};
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

const CSV: &str = "benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv";

#[test]
fn a_table_has_its_values_and_those_of_its_name() {
    let imported = fixture(CSV);
    let [small, full, vgg, missing] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    assert_eq!(
        (small.model.as_str(), small.minibatch, small.throughput_per_sec),
        ("resnet50 160x160", 1024, Some(8139.65))
    );
    assert_eq!((small.definition.as_str(), small.timing.clone()), ("", None));
    assert_eq!((small.pass, small.precision, small.engine.as_str()), (Pass::Forward, Precision::F16, "PyTorch 2.4"));
    assert_eq!((small.libraries["PyTorch"].as_str(), small.libraries["CUDA"].as_str()), ("2.4", "12.4"));
    assert_eq!(device(&imported, small), "RTX 4090");
    let figure = &small.origin.as_ref().unwrap().figure;
    assert_eq!(
        (figure.model.as_str(), figure.phase.as_str(), figure.precision.as_str()),
        ("resnet50", "inference", "amp")
    );
    assert_eq!(
        (figure.metric.as_str(), figure.value, figure.input.as_deref()),
        ("images_per_s", 8139.65, Some("160x160"))
    );
    let fields = &small.origin.as_ref().unwrap().extra["fields"];
    assert_eq!((&fields["infer_step_time"], &fields["layout"]), (&json!("125.774"), &json!("NCHW")));
    let notes = small.notes.join("; ");
    assert!(notes.contains("automatic mixed precision") && notes.contains("the device is taken from"), "{notes}");
    let graph = Model::Resnet50.graph();
    let definition = format!("{} {}", graph.definition(), graph.definition_hash());
    assert_eq!((full.model.as_str(), &full.definition, full.minibatch), ("resnet50", &definition, 1024));
    assert!(full.notes.iter().any(|note| note.starts_with("taken to be the network of this name")));
    assert_near(full.achieved_flop_per_sec.unwrap(), 4206.5 * 2.0 * 4_089_184_256.0);
    assert_eq!((vgg.model.as_str(), vgg.minibatch), ("vgg_a", 256));
    // Rows without numbers are models that did not run, not rows to drop.
    assert_eq!((missing.model.as_str(), missing.status, missing.minibatch), ("regnety_032 224x224", Status::Failed, 0));
}

/// R12: every row keeps its own minibatch.
#[test]
fn the_minibatch_is_that_of_the_row() {
    let text =
        "model,infer_samples_per_sec,infer_batch_size,infer_img_size\nresnet50,100,1024,224\nresnet50,90,512,224\n";
    let imported = imported("a.csv", text);
    let minibatches: Vec<usize> = imported.file.records.iter().map(|record| record.minibatch).collect();
    assert_eq!(minibatches, [1024, 512]);
}

#[test]
fn json_of_many_models_with_training_and_failures() {
    let imported = fixture("train.json");
    let [train, failed, infer, never] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    assert_eq!(
        (train.model.as_str(), train.pass, train.throughput_per_sec),
        ("resnet101", Pass::ForwardBackward, Some(512.5))
    );
    assert_eq!(train.origin.as_ref().unwrap().figure.phase, "train_step");
    assert!(train.notes.contains(&"the time includes the update of the parameters".to_owned()));
    assert_eq!(train.origin.as_ref().unwrap().extra["fields"]["train_opt_time"], json!(9.4));
    assert_eq!((failed.model.as_str(), failed.status), ("vit_giant", Status::OutOfMemory));
    assert!(failed.reason.as_ref().unwrap().starts_with("CUDA out of memory"));
    assert_eq!((infer.pass, infer.throughput_per_sec), (Pass::Forward, Some(1000.0)));
    assert_eq!((never.pass, never.status), (Pass::ForwardBackward, Status::Failed));
    assert_eq!(imported.unknown, [Unknown::Device, Unknown::Precision]);
    assert!(imported.notes.iter().any(|note| note.starts_with("1 lines above the JSON")), "{:?}", imported.notes);
    assert!(imported.notes.iter().any(|note| note.starts_with("1 numbers are NaN")), "{:?}", imported.notes);
}

#[test]
fn an_object_alone_and_other_orders_of_columns() {
    let object = imported("a.json", "{\"infer_img_size\": 224, \"model\": \"vgg16\", \"infer_samples_per_sec\": 7.5}");
    assert_eq!(
        (object.file.records[0].model.as_str(), object.file.records[0].throughput_per_sec),
        ("vgg16", Some(7.5))
    );
    let table = imported("a.csv", "infer_batch_size,infer_samples_per_sec,model,infer_img_size\n8,7.5,vgg16,224\n");
    assert_eq!((table.file.records[0].model.as_str(), table.file.records[0].minibatch), ("vgg16", 8));
}

#[test]
fn f32_allows_tf32_and_a_size_unknown_is_no_network_of_ours() {
    let text = "model,infer_samples_per_sec\nresnet50,100\n";
    let imported = imported("benchmark-infer-float32-nhwc-pt210-cu121-4090-dynamo.csv", text);
    let record = &imported.file.records[0];
    assert_eq!((record.precision, record.engine.as_str()), (Precision::Tf32, "PyTorch 2.1 (dynamo)"));
    assert_eq!((record.model.as_str(), device(&imported, record)), ("resnet50 (timm)", "4090"));
    assert!(record.notes.iter().any(|note| note.contains("TF32")));
    assert!(record.notes.contains(&"channels last (NHWC)".to_owned()));
}

#[test]
fn a_step_time_that_does_not_agree_is_noted() {
    let head = "model,infer_samples_per_sec,infer_batch_size,infer_step_time\n";
    let notes = |row: &str| imported("a.csv", &format!("{head}{row}")).file.records[0].notes.join("; ");
    assert!(!notes("a,1000,100,100.5").contains("does not agree"));
    assert!(notes("a,1000,100,110").contains("its step time of 110 ms does not agree"));
}

#[test]
fn broken_files_say_what_and_where() {
    let message = refusal("a.csv", "model,infer_samples_per_sec\nresnet50,fast\n");
    let expected = "\"a.csv\" looks like a file of timm but can't be imported: line 2: \"infer_samples_per_sec\": \"fast\" \
                    is not a number";
    assert_eq!(message, expected);
    let message = refusal("a.json", "[{\"model\": \"a\", \"infer_samples_per_sec\": [1]}]");
    assert!(message.ends_with("\"infer_samples_per_sec\" is [1], expected a number"), "{message}");
    let message = refusal("a.csv", "model,infer_samples_per_sec\n");
    assert!(message.ends_with("it holds no result"), "{message}");
    let cut = imported("a.json", "[{\"model\": \"a\", \"infer_samples_per_sec\": 1},\n{\"model\"");
    assert_eq!(cut.file.records.len(), 1);
    assert!(cut.notes[0].contains("cut off at line 2"), "{:?}", cut.notes);
}
