//! Text from the bytes of a file: encodings, byte order marks and line ends.

/// The text of a file with lines ended by `\n` alone, and what was done to get there; else what it is instead.
pub(super) fn decode(bytes: &[u8]) -> Result<(String, Vec<String>), String> {
    let mut notes = Vec::new();
    if bytes.is_empty() {
        return Err("is empty".to_owned());
    }
    let text = if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        utf16(rest, u16::from_le_bytes, &mut notes)
    } else if let Some(rest) = bytes.strip_prefix(&[0xfe, 0xff]) {
        utf16(rest, u16::from_be_bytes, &mut notes)
    } else {
        let rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if let Ok(text) = std::str::from_utf8(rest) {
            text.to_owned()
        } else {
            notes.push("some bytes of the file are not UTF-8 and are shown as \u{fffd}".to_owned());
            String::from_utf8_lossy(rest).into_owned()
        }
    };
    if text.contains('\0') {
        return Err("is not text (UTF-16 is read where it has a byte order mark)".to_owned());
    }
    if text.trim().is_empty() {
        return Err("has no content".to_owned());
    }
    Ok((line_feeds(text), notes))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, notes: &mut Vec<String>) -> String {
    let (pairs, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        notes.push("the file is UTF-16 with an odd number of bytes, the last one is left out".to_owned());
    }
    let units = pairs.iter().map(|&pair| unit(pair));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Lines that ended in `\r\n`, `\r\r\n` (text written twice through a translation) or `\r`.
fn line_feeds(text: String) -> String {
    if !text.contains('\r') {
        return text;
    }
    text.replace("\r\r\n", "\n").replace("\r\n", "\n").replace('\r', "\n")
}

/// The last part of a path of any system. Folders may name a user and are never kept.
pub(super) fn base_name(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The name of a file without its ending.
pub(super) fn stem(path: &str) -> &str {
    let name = base_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

/// The first `length` characters on one line, with an ellipsis where some are missing.
pub(super) fn shorten(text: &str, length: usize) -> String {
    let text = text.trim();
    let end = text.chars().nth(length).map(|_| '…');
    text.chars().take(length).map(|c| if c.is_control() { ' ' } else { c }).chain(end).collect()
}

/// A text of a file as messages quote it.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shorten(text, 40))
}

/// The first number in a text that begins where `after` ends, such as `110` of `mean = 110 ms` after `mean = `.
pub(super) fn number_after(text: &str, after: &str) -> Option<f64> {
    let rest = text.split_once(after)?.1.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(rest.len());
    rest[..end].parse().ok().filter(|value: &f64| value.is_finite())
}

/// Two sides of an image as `224x224` or `224*224` writes them.
pub(super) fn sides(text: &str) -> Option<(usize, usize)> {
    let (height, width) = text.trim().split_once(['x', '*', '×'])?;
    Some((height.trim().parse().ok()?, width.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_and_line_ends_come_out_alike() {
        let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        let little: Vec<u8> = units("\u{feff}a\r\nb").iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units("\u{feff}a\r\nb").iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let cases: [&[u8]; 7] = [b"a\nb", b"\xef\xbb\xbfa\nb", b"a\r\nb", b"a\r\r\nb", b"a\rb", &little, &big];
        for bytes in cases {
            assert_eq!(decode(bytes).unwrap().0, "a\nb", "{bytes:?}");
        }
        let (text, notes) = decode(b"110 \xb1 1 ms").unwrap();
        assert_eq!((text.as_str(), notes.len()), ("110 \u{fffd} 1 ms", 1));
    }

    #[test]
    fn what_is_no_text_is_said() {
        for (bytes, what) in [(&b""[..], "is empty"), (b" \n", "has no content"), (b"a\0b", "is not text")] {
            assert!(decode(bytes).unwrap_err().starts_with(what));
        }
    }

    #[test]
    fn names_and_numbers_are_cut_out() {
        assert_eq!((base_name("/home/ann/a.csv"), base_name("C:\\x\\a.csv")), ("a.csv", "a.csv"));
        assert_eq!((stem("models/vgg-16.t7"), stem(".x")), ("vgg-16", ".x"));
        assert_eq!(number_after("min = 1.5 ms, max = 1e3 ms", "max = "), Some(1000.0));
        assert_eq!(number_after("max = x", "max = "), None);
        assert_eq!((sides("224x231"), sides("224")), (Some((224, 231)), None));
        assert_eq!((shorten("abcdef", 3), shorten("a\nb", 3)), ("abc…".to_owned(), "a b".to_owned()));
    }
}
