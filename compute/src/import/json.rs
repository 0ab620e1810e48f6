//! JSON as foreign programs write it: an object, a list, one object a line, cut off, with NaN, below a log.

use std::borrow::Cow;

use serde_json::{Deserializer, Map, Value};

use super::row::Row;

/// Objects beyond which a file is not read on.
const MOST: usize = 1_000_000;
/// Places at which JSON is looked for below the lines of a log.
const MOST_BEGINNINGS: usize = 30;
/// Broken lines beyond which a file of one object a line is not read on.
const MOST_BROKEN: usize = 100;

/// The objects of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// The complete ones, in order; not empty.
    pub(super) rows: Vec<Row>,
    /// What was skipped or repaired.
    pub(super) notes: Vec<String>,
}

/// Whether a text is a result file of this program, broken or not.
pub(super) fn is_ours(text: &str) -> bool {
    const WITHIN: usize = 1000;
    let start: String = text.trim_start().chars().take(WITHIN).filter(|c| !c.is_whitespace()).collect();
    start.starts_with('{') && start.contains("\"schema\":\"batchmark/")
}

/// What is wrong with a text that begins like JSON.
pub(super) fn fault(text: &str) -> Option<String> {
    let begins = text.trim_start().starts_with(['{', '[']);
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err();
    error.filter(|_| begins).map(|error| format!("line {} ({error})", error.line()))
}

/// The complete objects of a text, if there is one.
pub(super) fn objects(text: &str) -> Option<Objects> {
    let (text, n_replaced) = finite(text);
    let mut place = 0;
    let mut beginnings = 0;
    let mut n_above = 0;
    for line in text.split_inclusive('\n') {
        let begins = line.trim_start().starts_with(['{', '[']);
        if begins && let Some(mut objects) = from(&text, place) {
            if n_above > 0 {
                objects.notes.push(format!("{n_above} lines above the JSON are left out"));
            }
            if n_replaced > 0 {
                objects
                    .notes
                    .push(format!("{n_replaced} numbers are NaN, infinite or out of range and taken as missing"));
            }
            return Some(objects);
        }
        beginnings += usize::from(begins);
        if beginnings >= MOST_BEGINNINGS {
            return None;
        }
        n_above += usize::from(!line.trim().is_empty());
        place += line.len();
    }
    None
}

/// The complete objects from a place on.
fn from(text: &str, begin: usize) -> Option<Objects> {
    let mut objects = Objects::default();
    let mut place = begin + (text[begin..].len() - text[begin..].trim_start().len());
    let is_list = text[place..].starts_with('[');
    place += usize::from(is_list);
    let mut n_broken = 0;
    loop {
        let rest = text[place..].trim_start_matches(|c: char| c.is_whitespace() || (is_list && c == ','));
        place = text.len() - rest.len();
        if rest.is_empty() || rest.starts_with(']') || objects.rows.len() >= MOST {
            break;
        }
        let mut stream = Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        match stream.next() {
            Some(Ok(fields)) => {
                objects.rows.push(Row { line: None, fields });
                place += stream.byte_offset();
            }
            Some(Err(error)) if is_list || objects.rows.is_empty() => {
                let line = line_of(text, place) + error.line() - 1;
                let what = if error.is_eof() { "is cut off" } else { "is broken" };
                objects.notes.push(format!("the JSON {what} at line {line}, what follows is missing"));
                break;
            }
            // One object a line: the next may be whole.
            Some(Err(_)) | None => {
                n_broken += 1;
                if n_broken <= MOST_BROKEN {
                    objects
                        .notes
                        .push(format!("line {} is no whole JSON object and is left out", line_of(text, place)));
                }
                match rest.find('\n') {
                    Some(end) if n_broken <= MOST_BROKEN => place += end + 1,
                    _ => break,
                }
            }
        }
    }
    if is_list && text[place..].trim_start().is_empty() && objects.notes.is_empty() {
        objects.notes.push("the list of the JSON is not closed, its end may be missing".to_owned());
    }
    // Of a list whose entries are broken early only the beginning is there, which is still something.
    (!objects.rows.is_empty()).then_some(objects)
}

fn line_of(text: &str, place: usize) -> usize {
    text.as_bytes()[..place].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The text with `null` in the place of NaN, infinities and numbers that no f64 holds, and how many there were.
fn finite(text: &str) -> (Cow<'_, str>, usize) {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut place, mut n_replaced) = (0, 0, 0);
    while place < bytes.len() {
        match bytes[place] {
            b'"' => place = end_of_string(bytes, place),
            b'N' | b'I' | b'-' | b'+' | b'0'..=b'9' | b'i' | b'n' => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_');
                let end = place + bytes[place..].iter().position(|byte| !is_word(byte)).unwrap_or(bytes.len() - place);
                let word = &text[place..end];
                if word != "null" && word.parse::<f64>().is_ok_and(|value| !value.is_finite()) {
                    out.push_str(&text[copied..place]);
                    out.push_str("null");
                    copied = end;
                    n_replaced += 1;
                }
                place = end.max(place + 1);
            }
            _ => place += 1,
        }
    }
    if n_replaced == 0 {
        return (Cow::Borrowed(text), 0);
    }
    out.push_str(&text[copied..]);
    (Cow::Owned(out), n_replaced)
}

/// The place behind a string that begins at `begin`. One that is not closed on its line is none: JSON has no line feed in
/// a string, and a lone quotation mark of a log must not hide what follows.
fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let mut place = begin + 1;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'"' => return place + 1,
            b'\n' => return place,
            b'\\' if bytes.get(place + 1) != Some(&b'\n') => place += 2,
            _ => place += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[f64], note: &str) {
        let objects = objects(text).unwrap_or_default();
        let values: Vec<f64> = objects.rows.iter().filter_map(|row| row.fields["a"].as_f64()).collect();
        assert_eq!(values, expected, "{text:?}");
        let notes = objects.notes.join("; ");
        assert!(if note.is_empty() { notes.is_empty() } else { notes.contains(note) }, "{text:?}: {notes}");
    }

    #[test]
    fn every_shape_gives_its_complete_objects() {
        check("{\"a\": 1}", &[1.0], "");
        check("[{\"a\": 1}, {\"a\": 2}]\n", &[1.0, 2.0], "");
        check("{\"a\": 1}\n{\"a\": 2}\n", &[1.0, 2.0], "");
        check("[{\"a\": 1},\n{\"a\": 2},\n{\"a\":", &[1.0, 2.0], "cut off at line 3");
        check("[{\"a\": 1},\n{\"a\": 2}\n", &[1.0, 2.0], "is not closed");
        check("[{\"a\": 1},\n{\"a\" 2}, {\"a\": 3}]", &[1.0], "broken at line 2");
        check("{\"a\": 1}\nkilled\n{\"a\": 3}\n", &[1.0, 3.0], "line 2 is no whole JSON object");
        check("found 1 device:\n[01/02/2024-10:00:00] [I] ok\n[\n{\"a\": 1}]", &[1.0], "2 lines above");
        check(
            "[{\"a\": NaN}, {\"a\": -Infinity, \"b\": \"NaN\"}, {\"a\": 1e999}, {\"a\": 4}]",
            &[4.0],
            "3 numbers are NaN",
        );
    }

    #[test]
    fn what_has_no_object_is_none() {
        for text in ["", "hello", "[1, 2]", "{", "[[[[", "{\"a\": ", "\"a", "[NaN"] {
            assert!(objects(text).is_none(), "{text:?}");
        }
        assert!(fault("{\"a\": 1,\n\"b\"").unwrap().starts_with("line 2"));
        assert_eq!((fault("hello"), fault("{}")), (None, None));
    }

    #[test]
    fn ours_is_known_by_its_schema() {
        assert!(is_ours("\n{\"schema\" : \"batchmark/1\", ") && !is_ours("{\"schema\": \"other\"}"));
    }
}
