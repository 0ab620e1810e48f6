use std::collections::BTreeSet;

use super::*;

#[test]
fn the_table_is_read_in_full_in_the_order_of_launch() {
    let gpus = all();
    assert_eq!(gpus.len(), 210);
    let names: BTreeSet<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    assert_eq!(names.len(), gpus.len(), "a name occurs twice");
    assert!(gpus.is_sorted_by_key(|gpu| &gpu.launch));
    assert!(gpus.iter().all(|gpu| gpu.launch.is_some() && !gpu.source.is_empty()));
    for gpu in gpus {
        assert_eq!(gpu.compute_capability.is_some(), gpu.vendor == "NVIDIA", "{}", gpu.name);
    }
}

#[test]
fn figures_are_in_base_units() {
    let gpu = find("NVIDIA GeForce RTX 4090").unwrap();
    assert_eq!(gpu.launch.as_deref(), Some("2022-10"));
    assert_eq!(gpu.compute_capability, Some((8, 9)));
    assert_eq!((gpu.shader_cores, gpu.matrix_cores), (Some(16384), Some(512)));
    assert_eq!(gpu.memory_bytes, Some(24 << 30));
    let between = |value: Option<f64>, low: f64, high: f64| value.is_some_and(|value| value > low && value < high);
    assert!(between(gpu.bandwidth_bytes_per_sec, 1.00e12, 1.02e12));
    assert!(between(gpu.peak_f32, 82e12, 83e12));
    assert!(between(gpu.peak_f16_matrix, 160e12, 170e12));
    assert_eq!((gpu.tdp_watt, gpu.launch_price_usd), (Some(450.0), Some(1599.0)));
}

#[test]
fn a_malformed_table_is_refused() {
    let (header, rest) = TABLE.split_once('\n').unwrap();
    let row = rest.lines().find(|line| line.starts_with("GeForce RTX 2080 Ti,")).unwrap();
    let check = |from: &str, to: &str, expected: &str| {
        let changed = row.replacen(from, to, 1);
        assert!(changed != row, "{row} does not contain {from:?}");
        let error = parse(&format!("{header}\n{changed}\n")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(",4352,", ",many,", "field 5: invalid digit");
    check(",4352,", ",-1,", "invalid digit");
    check(",7.5,", ",seven,", "cuda_compute_capability is \"seven\"");
    check(",2018-09,", ",2018-13,", "launch is \"2018-13\"");
    check(",250,", ",0,", "tdp_w is \"0\"");
    check(",250,", ",NaN,", "tdp_w is \"NaN\"");
    check("specs: fetched", "specs: hoped", "confidence is");
    check("specs: fetched", "spec: fetched", "confidence is");
    check(",4352,", ",4352,,", "fields");
    assert!(parse(&format!("{}\n{row}\n", header.replace("tdp_w", "power"))).is_err());
    assert_eq!(parse(&format!("{header}\n{row}\n")).unwrap().len(), 1);
}

#[test]
fn confidence_names_the_column_before_its_group() {
    let check = |name: &str, field: Field, expected: Confidence| {
        let gpu = all().iter().find(|gpu| gpu.name == name).unwrap();
        assert_eq!(gpu.confidence_of(field), expected, "{field:?} of {name}: {}", gpu.confidence);
    };
    check("GeForce GTX 680", Field::ShaderCores, Confidence::Fetched);
    check("GeForce GTX 680", Field::LaunchPrice, Confidence::Recalled);
    check("A100 SXM4 80 GB", Field::PeakMatrix, Confidence::Fetched);
    check("H200 SXM 141 GB", Field::PeakF16, Confidence::Recalled);
    check("H200 SXM 141 GB", Field::Tdp, Confidence::Fetched);
    check("GeForce RTX 3070 Ti", Field::PeakMatrix, Confidence::Computed);
    check("GB200 (per GPU)", Field::PeakF32, Confidence::Fetched);
    check("GB200 (per GPU)", Field::Tdp, Confidence::Recalled);
    check("Apple M3", Field::Bandwidth, Confidence::Recalled);
}

/// No figure stands in the table without a word on where it comes from.
#[test]
fn every_figure_has_its_confidence_stated() {
    for gpu in all() {
        let says = |group: &str| gpu.confidence.contains(group) || gpu.confidence.contains("general knowledge");
        assert!(gpu.peak_f16_matrix.or(gpu.peak_tf32).is_none() || says("tensor"), "{}", gpu.name);
        assert!(gpu.launch_price_usd.is_none() || says("msrp"), "{}", gpu.name);
    }
}

#[test]
fn the_peak_of_a_precision_is_that_of_its_fastest_unit() {
    let peak = |name: &str, precision| find(name).unwrap().peak(precision).unwrap();
    let row = |name: &str| find(name).unwrap();
    // No unit for 16 bits to speak of: they are computed on as f32.
    let pascal = row("GeForce GTX 1080");
    assert!(pascal.peak_f16 < pascal.peak_f32);
    assert_eq!(pascal.peak(Precision::F16), pascal.peak_f32);
    assert_eq!(pascal.peak(Precision::Bf16), pascal.peak_f32);
    assert_eq!(pascal.peak(Precision::Tf32), pascal.peak_f32);
    // Matrix units of f16, not of bf16.
    let turing = row("Quadro RTX 8000");
    assert_eq!(turing.peak(Precision::F16), turing.peak_f16_matrix);
    assert_eq!(turing.peak(Precision::Bf16), turing.peak_f32);
    let hopper = row("NVIDIA H200");
    assert_eq!(hopper.peak(Precision::Bf16), hopper.peak_f16_matrix);
    assert_eq!(hopper.peak(Precision::Tf32), hopper.peak_tf32);
    assert!(peak("NVIDIA H200", Precision::F32) < peak("NVIDIA H200", Precision::Tf32));
    let cdna = row("AMD Instinct MI100");
    assert_eq!(cdna.peak(Precision::Bf16), cdna.peak_f16_matrix.map(|peak| peak / 2.0));
    for gpu in all() {
        assert!(gpu.peak(Precision::F16) >= gpu.peak(Precision::F32), "{}", gpu.name);
    }
}

#[test]
fn every_name_of_the_catalog_finds_itself() {
    for gpu in all() {
        assert_eq!(find(&gpu.name).map(|found| &found.name), Some(&gpu.name));
        assert_eq!(find_with_memory(&gpu.name, gpu.memory_bytes), Some(gpu));
    }
}

#[test]
fn drivers_names_are_found() {
    let cases = [
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti"),
        ("RTX 3090", "GeForce RTX 3090"),
        ("NVIDIA GeForce RTX 3060", "GeForce RTX 3060 12 GB"),
        ("GeForce GTX 1060 6GB", "GeForce GTX 1060 6 GB"),
        ("GeForce GTX TITAN X", "GeForce GTX TITAN X"),
        ("NVIDIA TITAN X (Pascal)", "TITAN X Pascal"),
        ("TITAN Xp", "TITAN Xp"),
        ("NVIDIA GeForce RTX 2080 with Max-Q Design", "GeForce RTX 2080 Max-Q"),
        ("Tesla K80", "Tesla K80"),
        ("Tesla M40 24GB", "Tesla M40 24 GB"),
        ("Tesla P100-SXM2-16GB", "Tesla P100 SXM2"),
        ("Tesla V100-SXM2-16GB", "Tesla V100 SXM2 16 GB"),
        ("Tesla V100-PCIE-32GB", "Tesla V100 PCIe 32 GB"),
        ("Tesla V100S-PCIE-32GB", "Tesla V100S PCIe 32 GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40 GB"),
        ("NVIDIA A10", "A10 PCIe"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5 80 GB"),
        ("NVIDIA H100 PCIe", "H100 PCIe 80 GB"),
        ("NVIDIA H100 NVL", "H100 NVL 94 GB"),
        ("NVIDIA H200", "H200 SXM 141 GB"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GH200 480GB", "GH200 96 GB"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada Generation"),
        ("Quadro RTX 6000", "Quadro RTX 6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell Max-Q"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server"),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", "Radeon RX 7900 XTX"),
        ("AMD Radeon RX 9070 XT", "Radeon RX 9070 XT"),
        ("AMD Instinct MI300X", "Radeon Instinct MI300X"),
        ("Intel(R) Arc(TM) A770 Graphics", "Arc A770"),
        ("Intel(R) Arc(tm) A770 Graphics (DG2)", "Arc A770"),
        ("Mesa Intel(R) HD Graphics 530 (SKL GT2)", "HD Graphics 530"),
        ("Apple M2 Max", "Apple M2 Max"),
    ];
    for (name, expected) in cases {
        assert_eq!(find(name).map(|gpu| gpu.name.as_str()), Some(expected), "{name}");
    }
}

#[test]
fn what_is_not_certain_is_not_found() {
    let names = [
        "",
        "RTX",
        "NVIDIA",
        "llvmpipe",
        "llvmpipe (LLVM 20.1.2, 256 bits)",
        "Intel(R) Xeon(R) Processor",
        "NVIDIA Graphics Device",
        "NVIDIA A100",
        "NVIDIA H100",
        "Tesla K40",
        "TITAN X",
        "NVIDIA GeForce RTX 4060 Ti",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 (Laptop)",
        "GeForce GTX 1060 3GB",
        "NVIDIA A10G",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA RTX 6000",
        "Apple M1 Max",
        "AMD Radeon Graphics (RADV RENOIR)",
        "16 GB",
        "(",
    ];
    for name in names {
        assert_eq!(find(name).map(|gpu| gpu.name.as_str()), None, "{name}");
    }
}

#[test]
fn memory_tells_apart_what_shares_a_name() {
    let check = |name: &str, gib: f64, expected: Option<&str>| {
        let found = find_with_memory(name, Some((gib * (1u64 << 30) as f64) as u64));
        assert_eq!(found.map(|gpu| gpu.name.as_str()), expected, "{name} with {gib} GiB");
    };
    check("NVIDIA GeForce RTX 4060 Ti", 15.6, Some("GeForce RTX 4060 Ti 16 GB"));
    check("NVIDIA GeForce RTX 4060 Ti", 8.0, Some("GeForce RTX 4060 Ti 8 GB"));
    check("NVIDIA GeForce RTX 3080", 12.0, Some("GeForce RTX 3080 12 GB"));
    check("NVIDIA GeForce RTX 3080", 9.8, Some("GeForce RTX 3080"));
    check("NVIDIA GeForce RTX 3060", 8.0, None);
    check("NVIDIA H200", 139.8, Some("H200 SXM 141 GB"));
    check("Tesla K80", 11.2, Some("Tesla K80"));
    check("Apple M3", 24.0, Some("Apple M3"));
}
