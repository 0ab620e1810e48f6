//! Whatever the bytes, an import ends soon, with an error of one line or with records that the store takes.

use proptest::prelude::*;

use super::*;

fn check(name: &str, bytes: &[u8]) {
    match import(name, bytes, &Given { minibatch: Some(4), ..Given::default() }) {
        Ok(imported) => {
            let n_records = imported.file.records.len();
            assert!(n_records + imported.telemetry.len() <= bytes.len() + 1, "{n_records} records");
            for note in &imported.notes {
                assert!(note.len() < 1000 && !note.contains('\n'), "{note}");
            }
            for record in &imported.file.records {
                for sentence in record.notes.iter().chain(&record.reason) {
                    assert!(imported.format == Format::Batchmark || sentence.len() < 1500, "{sentence}");
                }
                assert_eq!(store::check_record(record, imported.file.devices.len()), Ok(()));
                assert!(record.status == Status::Ok || record.reason.is_some());
            }
            // Reading so many again is the store's business.
            if n_records > 2000 {
                return;
            }
            let text = serde_json::to_vec(&imported.file).unwrap();
            // A cell of a table may stand in each of its row's results, each with its names; so may a file's name.
            assert!(text.len() <= 4096 + 4000 * bytes.len(), "{} bytes from {}", text.len(), bytes.len());
            if imported.format != Format::Batchmark {
                let read = store::parse(Path::new(name), &text).unwrap();
                assert_eq!((read.n_left_out, read.file.records.len()), (0, n_records), "{:?}", read.notes);
            }
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && message.len() < 2000 && !message.contains('\n'), "{message}");
        }
    }
}

/// A change of a file's bytes at a place given as a share of its length.
#[derive(Clone, Debug)]
enum Mutation {
    Cut,
    Flip(u8),
    Insert(&'static str),
    Repeat,
}

fn mutations() -> impl Strategy<Value = Vec<(f64, Mutation)>> {
    let inserted = prop::sample::select(vec![
        "999999999999999999999999999999",
        "1e308",
        "-1e308",
        "1e999",
        "NaN",
        "-",
        "0",
        "\"",
        "\\",
        ",",
        ";",
        "\n",
        "\r",
        "[",
        "{",
        "]",
        "}",
        "|",
        "\t",
        "\u{ffff}f",
        "x4294967296x18446744073709551616",
        "[[[[[[[[[[[[",
        "\u{feff}",
        "'",
        ".",
    ]);
    let mutation = prop_oneof![
        1 => Just(Mutation::Cut),
        3 => any::<u8>().prop_map(Mutation::Flip),
        6 => inserted.prop_map(Mutation::Insert),
        1 => Just(Mutation::Repeat),
    ];
    prop::collection::vec((0.0..1.0f64, mutation), 1..4)
}

fn mutate(text: &str, mutations: &[(f64, Mutation)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (share, mutation) in mutations {
        let place = (share * bytes.len() as f64) as usize;
        match mutation {
            Mutation::Cut => bytes.truncate(place),
            Mutation::Flip(with) => bytes.get_mut(place).into_iter().for_each(|byte| *byte ^= with),
            Mutation::Insert(text) => bytes.splice(place..place, text.bytes()).for_each(drop),
            Mutation::Repeat => bytes.extend_from_within(place..),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_end_in_records_or_an_error(which in 0..FIXTURES.len(), mutations in mutations()) {
        let (name, text, _) = FIXTURES[which];
        check(name, &mutate(text, &mutations));
    }

    #[test]
    fn any_bytes_end_in_an_error_or_records(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check("any", &bytes);
    }

    #[test]
    fn any_text_below_a_known_head_ends(head in 0..FIXTURES.len(), text in "[\\PC\n,;\t\"'{}\\[\\]:|=.0-9a-z]{0,200}") {
        let (name, known, _) = FIXTURES[head];
        let first = known.lines().find(|line| !line.trim().is_empty()).unwrap();
        check(name, format!("{first}\n{text}").as_bytes());
    }
}

/// Inputs that a reader with a nested search, a recursion or a table by size would not survive.
#[test]
fn long_hostile_files_end_soon() {
    let n = 100_000;
    let texts = [
        "[".repeat(n),
        "[\n".repeat(n),
        "{\"a\":".repeat(n),
        "{\"a\":[\n".repeat(n),
        "\"\n".repeat(n),
        "[{\"a\":\"\n".repeat(n),
        format!("{{\"build_commit\":1,\"avg_ts\":1}}\n{}", "{\"a\":\n".repeat(n)),
        ",".repeat(n),
        ",\n".repeat(n),
        format!("model,infer_samples_per_sec\n{}", "\"a\n".repeat(n)),
        format!("model{}\n1", ",infer_samples_per_sec".repeat(n / 10)),
        "| model | test | t/s |\n".repeat(n / 10),
        "-".repeat(n),
        "1.1 - inference |".repeat(n / 10),
        format!("\"{}", "\\\"".repeat(n)),
        format!("name_gpu,ssd\n{}", (0..n / 2).map(|i| format!("g{i},1\n")).collect::<String>()),
        "\u{ffff}f".repeat(n / 3),
        format!("[{{\"build_commit\":\"\",\"avg_ts\":1,\"gpu_info\":\"{}\"}}]", "\u{ffff}f".repeat(n / 3)),
    ];
    for text in texts {
        check("long", text.as_bytes());
    }
}
