use super::*;
use crate::import::tests::imported;

fn doubts(file: &ResultFile) -> Vec<Option<String>> {
    file.records.iter().map(|record| record.origin.as_ref().unwrap().doubt.clone()).collect()
}

/// Rows of 64 images in equal times, given as samples a second.
fn rows(rate: f64, models: &[&str]) -> ResultFile {
    let rows: String = models.iter().map(|model| format!("{model},{rate},64,224\n")).collect();
    let text = format!("model,infer_samples_per_sec,infer_batch_size,infer_img_size\n{rows}");
    imported("benchmark-infer-fp16-nchw-pt240-cu124-rtx4090.csv", &text).file
}

/// R02: equal times for unequal work, so that one is above the peak of the card.
#[test]
fn a_rate_above_the_peak_is_doubted() {
    // 15.5 GMACs a second and a sample each: 400 of them are 12.4 TFLOP/s, of ResNet-50's 4.1 are 3.3.
    let mut file = rows(400.0, &["vgg16", "resnet50"]);
    assert_eq!(doubts(&file), [None, None]);
    doubt(&mut file, &|name, precision| (name == "RTX 4090" && precision == Precision::F16).then_some(5e12));
    let marked = doubts(&file);
    assert_eq!(marked[0].as_deref(), Some("12.4 TFLOP/s would be achieved where the device's peak in f16 is 5.0"));
    assert_eq!(marked[1], None);
    // Calling it again changes nothing that is marked.
    doubt(&mut file, &|_, _| Some(1.0));
    assert_eq!(doubts(&file)[0], marked[0]);
}

#[test]
fn algorithms_that_save_operations_may_exceed_the_peak() {
    let mut file = rows(400.0, &["vgg16"]);
    doubt(&mut file, &|_, _| Some(7e12));
    assert_eq!(doubts(&file), [None]);
}

#[test]
fn equal_times_for_very_unequal_work_are_doubted() {
    let file = rows(1000.0, &["alexnet", "vgg16", "resnet50"]);
    assert_eq!(doubts(&file), [None, Some("it would achieve 22 times the FLOP/s of alexnet".to_owned()), None]);
}

#[test]
fn overflows_and_absurd_rates_are_doubted() {
    let doubts = doubts(&rows(1e13, &["other"]));
    assert_eq!(doubts[0].as_deref(), Some("1e13 a second is beyond every device"));
    let doubts = self::doubts(&rows(1.8e19, &["other"]));
    assert!(doubts[0].as_ref().unwrap().contains("a counter that overflowed"), "{doubts:?}");
}

#[test]
fn proportional_scaling_is_not_doubted() {
    let text = "name_gpu,num_gpu,ssd\nV100,1,100\nV100,2,210\nV100,4,380\nV100,8,2000\nA100,8,3000\n";
    let file = imported("pytorch-train-throughput-fp16.csv", text).file;
    let marked: Vec<bool> = doubts(&file).iter().map(Option::is_some).collect();
    assert_eq!(marked, [false, false, false, true, false]);
}

/// R10: nanoseconds of the summary of an offline run whose sum overflowed; adding eight times 2^64 to it makes it right.
#[test]
fn a_mean_of_an_overflowed_sum_is_impossible() {
    let (min, median, mean) = (4_236_177_119.0, 315_750_956_018.0, 5_258_421_889.0);
    assert!(mean_doubt("latency", mean, Some(median), Some(min), None).is_some());
    let repaired = mean + 8.0 * 2f64.powi(64) / 475_200_000.0;
    assert_eq!(mean_doubt("latency", repaired, Some(median), Some(min), None), None);
    assert!(mean_doubt("time", 12.0, None, Some(1.0), Some(10.0)).is_some());
    assert!(mean_doubt("time", 0.5, None, Some(1.0), Some(10.0)).is_some());
    assert_eq!(mean_doubt("time", 5.0, Some(5.0), Some(1.0), Some(10.0)), None);
    assert_eq!(mean_doubt("time", 5.0, None, None, None), None);
}
