//! Columns of a query of nvidia-smi: what they hold, their names here and their units.

use crate::import::text::{quoted, shorten};

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Role {
    /// The time.
    Timestamp,
    /// What tells GPUs apart, with its rank among such columns.
    Identity(u8),
    /// Whether one reason holds the clock down.
    Reason(String),
    /// All such reasons as bits.
    Reasons,
    /// A number.
    Quantity {
        /// Its name without the unit.
        stem: String,
        /// The unit in the header, or the one that the column always has.
        unit: Option<&'static str>,
    },
    /// Nothing that is understood.
    Text,
}

/// Rank of a GPU's name.
pub(super) const NAME: u8 = 1;

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    /// What it holds.
    pub(super) role: Role,
}

/// Unit as printed, ending of the name here, factor.
const UNITS: [(&str, &str, f64); 8] = [
    ("%", "percent", 1.0),
    ("MHz", "mhz", 1.0),
    ("W", "watt", 1.0),
    ("MiB", "bytes", (1u64 << 20) as f64),
    ("GiB", "bytes", (1u64 << 30) as f64),
    ("KiB", "bytes", 1024.0),
    ("C", "celsius", 1.0),
    ("s", "secs", 1.0),
];

/// Columns whose names here are not theirs.
const RENAMED: [(&str, &str); 9] = [
    ("utilization.gpu", "utilization"),
    ("power.draw", "power"),
    ("clocks.current.sm", "sm_clock"),
    ("clocks.sm", "sm_clock"),
    ("clocks.current.graphics", "graphics_clock"),
    ("clocks.gr", "graphics_clock"),
    ("clocks.current.memory", "memory_clock"),
    ("clocks.mem", "memory_clock"),
    ("temperature.gpu", "temperature"),
];

/// Beginnings of the names of columns of numbers.
const NUMBERS: [&str; 15] = [
    "utilization.",
    "power.",
    "enforced.power.",
    "clocks.",
    "memory.",
    "temperature.",
    "fan.speed",
    "pcie.link.",
    "pstate",
    "encoder.stats.",
    "ecc.errors.",
    "fb_memory.",
    "module.power.",
    "accounting.buffer_size",
    "count",
];

impl Column {
    /// The column of a name such as `power.draw [W]`.
    pub(super) fn of(name: &str) -> Self {
        let name = name.trim();
        let (base, unit) = match name.split_once('[') {
            Some((base, unit)) => (base.trim(), unit.trim_end_matches(']').trim()),
            None => (name, ""),
        };
        let reason =
            ["clocks_throttle_reasons.", "clocks_event_reasons."].iter().find_map(|start| base.strip_prefix(start));
        let role = match (base, reason) {
            ("timestamp", _) => Role::Timestamp,
            ("index", _) => Role::Identity(4),
            ("uuid" | "gpu_uuid", _) => Role::Identity(3),
            ("pci.bus_id" | "gpu_bus_id", _) => Role::Identity(2),
            ("name" | "gpu_name", _) => Role::Identity(NAME),
            (_, Some("active")) => Role::Reasons,
            (_, Some("supported")) => Role::Text,
            (_, Some(reason)) => Role::Reason(reason.to_owned()),
            _ if NUMBERS.iter().any(|start| base.starts_with(start)) => Role::Quantity {
                stem: RENAMED
                    .iter()
                    .find(|(from, _)| *from == base)
                    .map_or_else(|| base.replace('.', "_"), |(_, to)| (*to).to_owned()),
                unit: UNITS
                    .iter()
                    .map(|(printed, ..)| *printed)
                    .find(|printed| *printed == unit)
                    .or_else(|| always(base)),
            },
            _ => Role::Text,
        };
        Self { role }
    }

    /// Name with its unit and value of a cell, which may carry its own unit.
    pub(super) fn quantity(&self, cell: &str) -> Result<(String, f64), String> {
        let Role::Quantity { stem, unit } = &self.role else {
            return Err(format!("{} is in no column of numbers", quoted(cell)));
        };
        let cell = cell.trim();
        let (number, own) = cell.split_once(' ').unwrap_or((cell, ""));
        let number = if stem == "pstate" { number.trim_start_matches('P') } else { number };
        let value = number.parse().ok().filter(|value: &f64| value.is_finite());
        let value = value.ok_or_else(|| format!("{} is not a number ({})", quoted(cell), shorten(stem, 40)))?;
        let printed = UNITS.iter().map(|(printed, ..)| *printed).find(|printed| *printed == own.trim()).or(*unit);
        let unit = UNITS.iter().find(|(name, ..)| Some(*name) == printed);
        Ok(match unit {
            Some((_, ending, factor)) => (format!("{stem}_{ending}"), value * factor),
            None => (stem.clone(), value),
        })
    }
}

/// The unit of a column that has it neither in the header nor in its cells.
fn always(base: &str) -> Option<&'static str> {
    base.starts_with("temperature.").then_some("C")
}

/// The reasons in a mask such as `0x0000000000000004`.
///
/// Source: NVIDIA Management Library, `nvmlClocksEventReasons`.
pub(super) fn reasons(mask: &str) -> Vec<String> {
    const BITS: [&str; 9] = [
        "gpu_idle",
        "applications_clocks_setting",
        "sw_power_cap",
        "hw_slowdown",
        "sync_boost",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
        "display_clock_setting",
    ];
    let digits = mask.trim().trim_start_matches("0x");
    let mask = u64::from_str_radix(digits, 16).unwrap_or(0);
    BITS.iter().enumerate().filter(|(bit, _)| (mask >> bit) & 1 == 1).map(|(_, name)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, cell: &str, name: &str, value: f64) {
        assert_eq!(Column::of(header).quantity(cell), Ok((name.to_owned(), value)), "{header}");
    }

    #[test]
    fn units_come_from_the_cell_or_the_header() {
        check("utilization.gpu [%]", "68 %", "utilization_percent", 68.0);
        check("utilization.gpu [%]", "68", "utilization_percent", 68.0);
        check("memory.used [MiB]", "2 MiB", "memory_used_bytes", 2.0 * 1024.0 * 1024.0);
        check("power.draw [W]", "39.43 W", "power_watt", 39.43);
        check("power.draw.instant [W]", "40 W", "power_draw_instant_watt", 40.0);
        check("clocks.current.sm [MHz]", "131 MHz", "sm_clock_mhz", 131.0);
        check("temperature.gpu", "69", "temperature_celsius", 69.0);
        check("pstate", "P2", "pstate", 2.0);
        assert!(Column::of("power.draw [W]").quantity("x").unwrap_err().contains("not a number"));
    }

    #[test]
    fn reasons_have_two_names_and_a_mask() {
        for header in ["clocks_throttle_reasons.sw_power_cap", "clocks_event_reasons.sw_power_cap"] {
            assert_eq!(Column::of(header).role, Role::Reason("sw_power_cap".to_owned()));
        }
        assert_eq!(reasons("0x0000000000000044"), ["sw_power_cap", "hw_thermal_slowdown"]);
        assert_eq!(Column::of("driver_version").role, Role::Text);
    }
}
