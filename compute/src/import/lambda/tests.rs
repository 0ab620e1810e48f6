use serde_json::json;

use crate::bench::record::Status;
use crate::import::Unknown;
use crate::import::tests::{device, fixture, imported, refusal};
use crate::plan::Pass;
use crate::shape::Precision;

#[test]
fn the_first_version_has_count_price_and_power() {
    let imported = fixture("pytorch-train-throughput-fp16.csv");
    let records = &imported.file.records;
    assert_eq!(records.len(), 9);
    let (ssd, bert, gnmt, ncf, resnet) = (&records[0], &records[1], &records[2], &records[3], &records[4]);
    assert_eq!((ssd.model.as_str(), ssd.throughput_per_sec, ssd.precision), ("SSD300", Some(236.0), Precision::F16));
    assert_eq!((ssd.pass, ssd.minibatch, device(&imported, ssd)), (Pass::ForwardBackward, 0, "RTX 3090"));
    assert_eq!(ssd.origin.as_ref().unwrap().extra["fields"], json!({"tdp_watt": 350.0, "price_usd": 2750.0}));
    assert_eq!((bert.status, bert.throughput_per_sec), (Status::Failed, None));
    let figure = &gnmt.origin.as_ref().unwrap().figure;
    assert_eq!((gnmt.throughput_per_sec, figure.metric.as_str(), figure.value), (None, "tokens_per_s", 86080.0));
    assert_eq!(ncf.throughput_per_sec, Some(25_118_176.0));
    assert_eq!((resnet.model.as_str(), resnet.throughput_per_sec), ("resnet50", Some(905.0)));
    assert!(resnet.achieved_flop_per_sec.is_some() && records[8].achieved_flop_per_sec.is_none());
    assert_eq!(records[5].origin.as_ref().unwrap().figure.n_devices, Some(2));
    assert!(imported.notes.iter().any(|note| note.starts_with("1 tasks were never run (-1)")), "{:?}", imported.notes);
    assert_eq!(imported.unknown, [Unknown::Precision, Unknown::Minibatch]);
}

#[test]
fn the_second_version_gives_up_site_and_host() {
    let imported = fixture("pytorch-train-throughput-v2-fp32.csv");
    let first = &imported.file.records[0];
    assert_eq!((device(&imported, first), first.precision), ("A100", Precision::F32));
    assert_eq!(first.origin.as_ref().unwrap().figure.n_devices, Some(4));
    // Which part of the second name is the host is not sure, so none of it is kept.
    assert_eq!(device(&imported, imported.file.records.last().unwrap()), "unknown device");
    let text = serde_json::to_string(&imported.file).unwrap();
    for private in ["lab", "10.20.30.40", "host7", "rack"] {
        assert!(!text.contains(private), "{private}");
    }
    assert!(imported.notes.contains(&"site and host in the names of the rows are not kept".to_owned()));
}

#[test]
fn json_has_the_same_keys() {
    let text = "[{\"name_gpu\": \"V100\", \"num_gpu\": 1.0, \"ssd\": 100.0, \"note\": \"x\"}]";
    let imported = imported("pytorch-train-throughput-fp16.json", text);
    let record = &imported.file.records[0];
    assert_eq!((record.throughput_per_sec, device(&imported, record)), (Some(100.0), "V100"));
    assert_eq!(record.origin.as_ref().unwrap().extra["fields"], json!({"note": "x"}));
}

/// R09: four devices that would be fifty times as fast as two.
#[test]
fn more_than_proportional_scaling_is_doubted() {
    let text = "name_gpu,num_gpu,ncf\nH100 80GB SXM5,4,13346091200\nH100 80GB SXM5,2,260586100\n";
    let imported = imported("pytorch-train-throughput-fp16.csv", text);
    let doubts: Vec<_> =
        imported.file.records.iter().map(|record| record.origin.as_ref().unwrap().doubt.clone()).collect();
    assert_eq!(doubts, [Some("4 devices would be 51 times as fast as 2".to_owned()), None]);
    assert_eq!(imported.file.records[0].throughput_per_sec, Some(13_346_091_200.0));
    assert!(imported.notes.iter().any(|note| note.starts_with("1 of 2 figures can't be true")), "{:?}", imported.notes);
}

#[test]
fn broken_files_say_what_and_where() {
    let message = refusal("pytorch-train-bs-fp16.csv", "name_gpu,num_gpu,ssd\nV100,1,64\n");
    assert!(message.ends_with(
        "it holds minibatches and no result (\"bs\" in its name); import the file of throughputs beside it"
    ));
    let message = refusal("a.csv", "name_gpu,num_gpu,ssd\nV100,1,quick\n");
    assert!(message.ends_with("line 2: \"ssd\": \"quick\" is not a number"), "{message}");
    let cut = imported("a.csv", "name_gpu,num_gpu,ssd\nV100,1,64\nA100");
    assert_eq!(cut.file.records.len(), 1);
    assert!(cut.notes.contains(&"line 3 is cut short and left out".to_owned()), "{:?}", cut.notes);
}
