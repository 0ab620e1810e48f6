//! Points in time as RFC 3339 writes them, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now, such as `"2017-05-09T12:34:56Z"`.
pub fn now_utc() -> String {
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs()))
}

/// A point in time given in seconds since 1970.
///
/// Formula: H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
pub fn rfc3339(unix_secs: u64) -> String {
    let (days, second) = (unix_secs / 86_400, unix_secs % 86_400);
    let shifted = days + 719_468; // Days since 0000-03-01.
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153; // 0 is March.
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `date --utc --date=@SECONDS`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_494_333_296, "2017-05-09T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (secs, text) in cases {
            assert_eq!(rfc3339(secs), text);
        }
    }
}
