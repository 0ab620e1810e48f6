use crate::bench::record::Status;
use crate::import::Unknown;
use crate::import::tests::{assert_near, device, fixture, imported, refusal};
use crate::plan::Pass;

#[test]
fn times_become_rates_and_scores_stay_scores() {
    let imported = fixture("ai.txt");
    let records = &imported.file.records;
    assert_eq!(records.len(), 7);
    let (inference, training, lstm) = (&records[0], &records[1], &records[2]);
    assert_eq!((inference.model.as_str(), inference.minibatch, inference.pass), ("VGG-16 224x224", 20, Pass::Forward));
    assert_near(inference.throughput_per_sec.unwrap(), 20e3 / 110.0);
    assert_eq!((inference.engine.as_str(), inference.libraries["CUDA"].as_str()), ("TensorFlow 2.11.0", "11.2"));
    assert_eq!(device(&imported, inference), "Tesla V100-PCIE-16GB");
    let origin = inference.origin.as_ref().unwrap();
    assert_eq!((origin.figure.metric.as_str(), origin.figure.value), ("ms_per_batch", 110.0));
    assert_eq!(origin.extra["fields"]["stddev_ms"], 1.0);
    assert_eq!((training.pass, training.origin.as_ref().unwrap().figure.value), (Pass::ForwardBackward, 52.4));
    assert!(training.notes.contains(&"the time includes the update of the parameters".to_owned()));
    assert_eq!(lstm.origin.as_ref().unwrap().figure.input.as_deref(), Some("1024x300 (sequence x features)"));
    assert!(records[3].notes.contains(&"its clock resolves a millisecond".to_owned()));
    let score = &records[6];
    assert_eq!((score.throughput_per_sec, score.origin.as_ref().unwrap().figure.value), (None, 12974.0));
    assert_eq!(imported.file.host.os, "Linux-5.15.0-x86_64-with-glibc2.35");
    assert_eq!((imported.unknown.clone(), imported.notes.len()), (vec![Unknown::Precision], 0));
}

#[test]
fn other_consoles_print_no_plus_minus() {
    for line in [
        "7.1 - inference | batch=20, size=224x224: 110 ms, std: 2 ms",
        "7.1 - inference | batch=20, size=224x224: 110 \u{fffd} 2 ms",
    ] {
        let imported = imported("a.txt", &format!("7/19. VGG-16\n{line}\n"));
        let origin = imported.file.records[0].origin.as_ref().unwrap();
        assert_eq!((origin.figure.value, origin.extra["fields"]["stddev_ms"].as_f64()), (110.0, Some(2.0)), "{line}");
    }
}

#[test]
fn a_log_that_ends_early_keeps_what_is_there() {
    let text = "*  GPU/0: /device:XLA_GPU:0\n### 7/19. VGG-16\n7.1 - inference | batch=20, size=224x224: 110 ± 1 ms\n\
                Traceback (most recent call last):\nResourceExhaustedError: OOM\n";
    let imported = imported("a.txt", text);
    assert_eq!((imported.file.records.len(), device(&imported, &imported.file.records[0])), (1, "unknown device"));
    assert_eq!(imported.notes, ["the log ends early, after test 7.1, 12 of 19 networks are missing"]);
    assert_eq!(imported.unknown, [Unknown::Device, Unknown::Precision]);
}

#[test]
fn without_a_gpu_the_processor_is_taken_to_have_computed_it() {
    let imported = imported(
        "a.txt",
        "*  CPU: Ryzen 9\n7.1 - inference | batch=20, size=224x224: 2687 ± 21 ms\nDevice Training Score: 0\n",
    );
    assert_eq!(device(&imported, &imported.file.records[0]), "Ryzen 9");
    assert_eq!(imported.file.records[1].status, Status::Failed);
}

#[test]
fn broken_files_say_what_and_where() {
    let message = refusal("a.txt", ">>   AI-Benchmark-v.0.1.2\n*  TF Version: 2.11.0\n");
    assert!(
        message
            .ends_with("looks like a file of ai-benchmark but can't be imported: the log ends before its first result")
    );
    let message = refusal("a.txt", "7/19. VGG-16\n7.1 - inference | batch=20, size=224x224: quick\n");
    assert!(message.contains("its format is not known"), "{message}");
}
