use crate::bench::record::{Clock, Status};
use crate::import::Unknown;
use crate::import::tests::{assert_near, device, fixture, imported, refusal};
use crate::shape::Precision;

#[test]
fn json_below_a_log_with_its_samples() {
    let imported = fixture("bench.json");
    let [prompt, generation] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    assert_eq!((prompt.model.as_str(), prompt.engine.as_str()), ("qwen2 7B Q4_K - Medium pp512", "llama.cpp b3436"));
    assert_eq!((prompt.throughput_per_sec, prompt.minibatch, prompt.status), (None, 0, Status::Ok));
    let origin = prompt.origin.as_ref().unwrap();
    assert_eq!((origin.figure.metric.as_str(), origin.figure.phase.as_str()), ("tokens_per_s", "prompt"));
    assert!((origin.figure.value - 7100.002165).abs() < 1e-5, "{}", origin.figure.value);
    assert_eq!(origin.date.as_deref(), Some("2024-07-25T12:00:00Z"));
    assert_eq!(prompt.started, "2024-07-25T12:00:00Z");
    assert!(!prompt.notes.iter().any(|note| note.contains("minibatch")), "{:?}", prompt.notes);
    let timing = prompt.timing.as_ref().unwrap();
    assert_eq!((timing.iterations, timing.clock), (5, Clock::Host));
    assert_near(timing.median_ms, 71.7452);
    assert_eq!(device(&imported, prompt), "NVIDIA GeForce RTX 4090");
    assert_eq!(imported.file.host.cpu, "Ryzen 9");
    // Bytes that the writer lost, and no folder of a user.
    assert_eq!(origin.extra["fields"]["model_file"], "mod?le.gguf");
    assert!(prompt.notes.iter().any(|note| note.contains("'?' stands for them")));
    assert!(!serde_json::to_string(&imported.file).unwrap().contains("ann"));
    assert_eq!((generation.model.as_str(), generation.precision), ("qwen2 7B F16 tg128 @ d4096", Precision::F16));
    assert_eq!(generation.origin.as_ref().unwrap().figure.value, 100.0);
    assert!(imported.notes[0].contains("2 lines above the JSON"), "{:?}", imported.notes);
    assert_eq!(imported.unknown, [Unknown::Precision]);
}

#[test]
fn csv_lists_every_gpu() {
    let imported = fixture("bench.csv");
    let record = &imported.file.records[0];
    assert_eq!((record.model.as_str(), record.precision), ("llama 7B BF16 pp512+tg128", Precision::Bf16));
    assert_eq!((device(&imported, record), record.timing.clone()), ("NVIDIA T4", None));
    assert!(record.notes.iter().any(|note| note.contains("lists every GPU")));
    assert_eq!(record.origin.as_ref().unwrap().figure.value, 250.5);
}

#[test]
fn sql_has_values_that_are_not_escaped() {
    let imported = fixture("bench.sql");
    let record = &imported.file.records[0];
    assert_eq!((record.model.as_str(), record.precision), ("llama 7B all F32 pp512", Precision::F32));
    assert_eq!(record.origin.as_ref().unwrap().extra["fields"]["model_file"], "ann's.gguf");
}

#[test]
fn markdown_has_mean_and_deviation_in_a_cell() {
    let imported = fixture("bench.md");
    let [prompt, generation] = &imported.file.records[..] else { panic!("{:?}", imported.file.records) };
    assert_eq!((prompt.engine.as_str(), prompt.origin.as_ref().unwrap().figure.value), ("llama.cpp b3436", 7100.0));
    let fields = &generation.origin.as_ref().unwrap().extra["fields"];
    assert_eq!((fields["stddev_ts"].as_f64(), fields["ngl"].as_str()), (Some(1.04), Some("99")));
    assert_eq!(generation.model, "qwen2 7B Q4_K - Medium tg128 @ d4096");
    assert_eq!(device(&imported, prompt), "NVIDIA GeForce RTX 4090");
}

#[test]
fn an_interrupted_run_keeps_what_it_wrote_and_layers_on_no_gpu_are_the_processors() {
    let object = "{\"build_commit\": \"a\", \"avg_ts\": 5.0, \"model_type\": \"llama 1B F16\", \"n_prompt\": 8, \
                  \"n_gpu_layers\": 0, \"cpu_info\": \"Ryzen\", \"gpu_info\": \"RTX\"}";
    let cut = imported("a.json", &format!("[\n{object},\n{object}\n"));
    assert_eq!(cut.file.records.len(), 2);
    assert!(cut.notes[0].contains("is not closed"), "{:?}", cut.notes);
    assert_eq!(device(&cut, &cut.file.records[0]), "Ryzen");
    let lines = imported("a.jsonl", &format!("{object}\n{object}\n"));
    assert_eq!((lines.file.records.len(), lines.notes.len()), (2, 0));
}

#[test]
fn broken_files_say_what_and_where() {
    let message = refusal("a.sql", "\nINSERT INTO llama_bench (a, b) VALUES ('1');\n");
    assert!(message.contains("llama-bench but can't be imported: line 2: 1 values for 2 columns"), "{message}");
    let head = "| model | test | t/s |\n| --- | --- | --- |\n";
    let message = refusal("a.md", &format!("{head}| a | xx5 | 1.0 ± 0.1 |\n"));
    assert!(message.ends_with("line 3: the test is \"xx5\", expected one such as pp512 or tg128"), "{message}");
    let message = refusal("a.md", &format!("{head}| a | pp5 | quick |\n"));
    assert!(message.ends_with("line 3: \"quick\" is no rate such as 118.88 ± 1.04"), "{message}");
    let message = refusal("a.csv", "build_commit,avg_ts\n\"a\",\"quick\"\n");
    assert!(message.ends_with("line 2: \"avg_ts\": \"quick\" is not a number"), "{message}");
}
