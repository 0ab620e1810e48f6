//! Numbers as people read them: three significant digits, thousands apart, prefixes where they help.

/// Stands between groups of three digits; narrow, and no line breaks there.
pub const THIN_SPACE: char = '\u{202f}';

/// A number to three significant digits, such as `14 200`, `905` or `4.51`.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    let step = 10f64.powi(exponent - 2);
    let rounded = (value / step).round() * step;
    // 999.6 has gained a digit by rounding.
    let exponent = rounded.abs().log10().floor() as i32;
    let decimals = (2 - exponent).clamp(0, 12) as usize;
    grouped(&format!("{rounded:.decimals$}"))
}

/// A number with all its digits, thousands apart; for what is shown on request.
pub fn full(value: f64) -> String {
    let decimals = if value.abs() >= 1000.0 { 1 } else { 3 };
    grouped(&format!("{value:.decimals$}"))
}

/// Bytes with a binary prefix, such as `1.46 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A rate with a decimal prefix, such as `36.2 TFLOP/s` for the unit `FLOP/s`.
pub fn rate(per_sec: f64, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let mut value = per_sec;
    let mut prefix = 0;
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        value /= 1000.0;
        prefix += 1;
    }
    format!("{} {}{unit}", three_digits(value), PREFIXES[prefix])
}

/// Puts a thin space between groups of three digits before the decimal point.
fn grouped(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(THIN_SPACE);
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let cases = [
            (14_236.4, "14 200"),
            (1_234_567.0, "1 230 000"),
            (999.6, "1 000"),
            (905.5, "906"),
            (99.96, "100"),
            (70.64, "70.6"),
            (4.5123, "4.51"),
            (0.012_34, "0.0123"),
            (9.999e-4, "0.00100"),
            (0.0, "0"),
            (-4.5123, "-4.51"),
        ];
        for (value, expected) in cases {
            assert_eq!(three_digits(value).replace(THIN_SPACE, " "), expected, "{value}");
        }
    }

    #[test]
    fn memory_has_binary_and_rates_have_decimal_prefixes() {
        assert_eq!(bytes(1_572_864_000), "1.46 GiB");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(rate(36.2e12, "FLOP/s"), "36.2 TFLOP/s");
        assert_eq!(rate(999.9, "FLOP/s"), "1.00 kFLOP/s");
    }
}
