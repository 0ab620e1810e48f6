use crate::import::tests::{fixture, imported, refusal};

#[test]
fn readings_have_units_in_their_names_and_a_summary() {
    let imported = fixture("gpu.csv");
    assert_eq!((imported.file.records.len(), imported.telemetry.len()), (0, 4));
    let first = &imported.telemetry[0];
    assert_eq!((first.at_secs, first.at.as_str(), first.gpu.as_str()), (0.0, "2017/03/19 17:32:29.613", "0"));
    let expected = [
        ("memory_used_bytes", 1024.0 * 1024.0 * 1024.0),
        ("power_watt", 39.43),
        ("pstate", 0.0),
        ("sm_clock_mhz", 131.0),
        ("temperature_celsius", 69.0),
        ("utilization_percent", 68.0),
    ];
    assert_eq!(first.quantities, expected.map(|(name, value)| (name.to_owned(), value)).into());
    let second = &imported.telemetry[1];
    assert_eq!((second.gpu.as_str(), &second.throttled[..]), ("1", &["sw_power_cap".to_owned()][..]));
    assert!(!second.quantities.contains_key("power_watt"));
    assert!((imported.telemetry[3].at_secs - 1.004).abs() < 1e-6);
    assert_eq!(imported.file.devices[0].name, "GeForce GTX 1080");
    let notes = imported.notes.join("; ");
    for part in [
        "GPU 0, 2 readings over 1 s: utilization 66%, core clock 131 MHz, power 39.4 W, at most 69 °C, at most 1.00 GiB",
        "GPU 0 is 66% utilized at 131 MHz: utilization says that something ran, not how fast",
        "GPU 1: sw_power_cap active in 50% of the readings",
        "2 values are \"[Not Supported]\" and missing",
        "times are local and without a zone",
    ] {
        assert!(notes.contains(part), "{notes}");
    }
}

#[test]
fn units_may_be_left_out_and_names_have_changed() {
    let text = "timestamp, uuid, clocks_event_reasons.active, power.draw.instant [W], utilization.gpu [%]\n\
                2024/02/28 23:59:59.000, GPU-1, 0x0000000000000004, 250.5, [Unknown Error]\n\
                2024/03/01 00:00:01.500, GPU-1, 0x0000000000000000, 251.5, [GPU is lost]\n";
    let imported = imported("a.csv", text);
    let [first, second] = &imported.telemetry[..] else { panic!("{:?}", imported.telemetry) };
    assert_eq!((first.gpu.as_str(), &first.throttled[..]), ("GPU-1", &["sw_power_cap".to_owned()][..]));
    assert_eq!(first.quantities["power_draw_instant_watt"], 250.5);
    // The 29th of February lies between.
    assert!((second.at_secs - 86_402.5).abs() < 1e-6, "{}", second.at_secs);
    assert!(second.throttled.is_empty());
}

#[test]
fn logs_put_together_and_clocks_set_back_are_noted() {
    let text = "timestamp, utilization.gpu [%]\n2024/01/01 10:00:10.000, 5 %\n\
                timestamp, power.draw [W]\n2024/01/01 10:00:05.000, 70.00 W\n";
    let imported = imported("a.csv", text);
    assert_eq!(imported.telemetry[1].quantities["power_watt"], 70.0);
    assert_eq!(imported.telemetry[1].at_secs, -5.0);
    let notes = imported.notes.join("; ");
    assert!(notes.contains("the time goes back 1 times") && notes.contains("does not say which GPU"), "{notes}");
}

#[test]
fn broken_and_other_logs_say_what_and_where() {
    for text in ["2017/03/19 17:32:29.613, P0, 69, 68 %\n", "# gpu   pwr gtemp\n# Idx     W     C\n    0    39    69\n"]
    {
        let message = refusal("a.csv", text);
        assert!(
            message.contains("looks like a file of nvidia-smi but can't be imported: its columns have no names"),
            "{message}"
        );
    }
    let message = refusal("a.csv", "timestamp, power.draw [W]\n2024/01/01 10:00:05.000, high\n");
    assert!(message.ends_with("line 2: \"high\" is not a number (power)"), "{message}");
    let message = refusal("a.csv", "timestamp, power.draw [W]\n2024/01/01 10:00:05.000, 1, 2\n");
    assert!(message.ends_with("line 2: it has 3 cells where the header has 2"), "{message}");
}
