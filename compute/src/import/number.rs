//! Numbers as foreign files write them: missing words, exponents, decimal commas.

use super::text::{quoted, shorten};

/// A cell that should hold a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// A finite number.
    Number(f64),
    /// None, with the word that stands for it; empty for an empty cell.
    Missing(String),
}

impl Cell {
    /// The number, if there is one.
    pub(super) fn value(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Missing(_) => None,
        }
    }
}

/// How one file writes its decimals, which is the same throughout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decimals {
    /// Whether a comma may be a decimal comma: only where it does not separate cells.
    comma: bool,
    seen: Option<char>,
}

impl Decimals {
    /// Decimals of a file whose cells are separated by `delimiter`.
    pub(super) fn of(delimiter: u8) -> Self {
        Self { comma: matches!(delimiter, b';' | b'\t'), seen: None }
    }

    /// Reads one cell, or says what is wrong with it.
    pub(super) fn read(&mut self, text: &str) -> Result<Cell, String> {
        let text = text.trim();
        if is_missing(text) {
            return Ok(Cell::Missing(shorten(text, 40)));
        }
        let mark = match (text.contains(','), text.contains('.')) {
            (true, false) if self.comma => Some(','),
            (true, _) if self.comma => return Err(format!("{} has both a comma and a point", quoted(text))),
            (true, _) => {
                return Err(format!(
                    "{} has a comma, which is a decimal comma only where cells are separated by ';' or a tab",
                    quoted(text)
                ));
            }
            (false, true) => Some('.'),
            (false, false) => None,
        };
        if let (Some(mark), Some(seen)) = (mark, self.seen)
            && self.comma
            && mark != seen
        {
            return Err(format!("{} has a decimal {mark:?} where numbers before have {seen:?}", quoted(text)));
        }
        let plain = if mark == Some(',') { text.replacen(',', ".", 1) } else { text.to_owned() };
        match plain.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.seen = self.seen.or(mark);
                Ok(Cell::Number(value))
            }
            Ok(_) => Ok(Cell::Missing(format!("{}, which is out of range", shorten(text, 40)))),
            Err(_) => Err(format!("{} is not a number", quoted(text))),
        }
    }
}

/// Whether a cell says that there is no value.
pub(super) fn is_missing(text: &str) -> bool {
    const WORDS: [&str; 17] = [
        "",
        "-",
        "--",
        "n/a",
        "na",
        "nan",
        "-nan",
        "inf",
        "-inf",
        "+inf",
        "infinity",
        "-infinity",
        "none",
        "null",
        "err!",
        "not supported",
        "unknown error",
    ];
    let text = text.trim();
    // nvidia-smi puts its words into brackets.
    let is_bracketed = text.starts_with('[') && text.ends_with(']');
    is_bracketed || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A count such as a minibatch, which may be written as `1024.0`; 0 and fractions are none.
pub(super) fn count(value: f64) -> Option<usize> {
    const MOST: f64 = 1e12;
    ((1.0..=MOST).contains(&value) && value.fract() == 0.0).then_some(value as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(delimiter: u8, text: &str, expected: Result<Option<f64>, &str>) {
        let read = Decimals::of(delimiter).read(text);
        match (read, expected) {
            (Ok(cell), Ok(value)) => assert_eq!(cell.value(), value, "{text:?}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (read, expected) => panic!("{text:?} gave {read:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn numbers_and_missing_words() {
        for (text, value) in [("8139.65", 8139.65), ("1.5e3", 1500.0), (" 7 ", 7.0), ("-1.0", -1.0)] {
            check(b',', text, Ok(Some(value)));
        }
        let words =
            ["", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "nan", "inf", "-", "ERR!"];
        for word in words {
            check(b',', word, Ok(None));
        }
        check(b',', "1e999", Ok(None));
        check(b',', "many", Err("not a number"));
    }

    /// R40: a comma is a decimal comma or an error, never dropped.
    #[test]
    fn a_comma_is_a_decimal_comma_only_where_it_separates_nothing() {
        check(b';', "905,5", Ok(Some(905.5)));
        check(b'\t', "905,5", Ok(Some(905.5)));
        check(b',', "9,99", Err("has a comma"));
        check(b';', "1.234,5", Err("both a comma and a point"));
        check(b';', "1,2,3", Err("not a number"));
        let mut decimals = Decimals::of(b';');
        assert_eq!(decimals.read("1,5").unwrap(), Cell::Number(1.5));
        assert!(decimals.read("2.5").unwrap_err().contains("where numbers before have"));
    }

    #[test]
    fn a_count_is_whole_and_positive() {
        for (value, expected) in [(1024.0, Some(1024)), (0.0, None), (1.5, None), (-1.0, None), (1e300, None)] {
            assert_eq!(count(value), expected);
        }
    }
}
