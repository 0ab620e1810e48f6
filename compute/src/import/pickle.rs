//! Recognizes Python pickles, which are never read: loading one runs whatever code it names.

/// Why a pickle is refused and what helps.
pub(super) const REFUSAL: &str = "it is a Python pickle, which can run code when it is loaded and is never opened; \
     write the results as CSV or JSON instead";

/// Whether bytes are a pickle of protocol 2 and later, or an archive that holds one as PyTorch writes it. The text of
/// protocols 0 and 1 is recognized by its last opcode and the shape of its first lines.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    let has_protocol = matches!(bytes, [0x80, 2..=5, ..]) && bytes.last() == Some(&b'.');
    let is_framed = matches!(bytes, [0x80, 4..=5, 0x95, ..]);
    let is_binary =
        matches!(bytes, [0x80, 2..=5, b'}' | b']' | b'(' | b'c' | b'X' | b'q' | b'K' | b'M' | b'N' | 0x8a, ..]);
    let is_text = [&b"(dp0\n"[..], b"(lp0\n", b"ccollections\n", b"c__builtin__\n", b"cnumpy", b"ccopy_reg\n"]
        .iter()
        .any(|start| bytes.starts_with(start));
    has_protocol || is_framed || is_binary || is_text || is_archive(bytes)
}

/// A zip archive that names a `data.pkl` in its first or its last entries.
fn is_archive(bytes: &[u8]) -> bool {
    const WITHIN: usize = 64 << 10;
    let holds = |part: &[u8]| part.windows(8).any(|window| window == b"data.pkl");
    let (first, last) = (&bytes[..bytes.len().min(WITHIN)], &bytes[bytes.len().saturating_sub(WITHIN)..]);
    bytes.starts_with(b"PK\x03\x04") && (holds(first) || holds(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pickles_are_recognized_and_text_is_not() {
        let pickles: [&[u8]; 6] = [
            b"\x80\x02}q\x00.",
            b"\x80\x03ccollections\nOrderedDict\nq\x00)Rq\x01.",
            b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94.",
            b"(dp0\nS'fp32'\np1\n.",
            b"ccollections\nOrderedDict\np0\n.",
            b"PK\x03\x04\x00\x00\x08\x08archive/data.pkl",
        ];
        for bytes in pickles {
            assert!(is_one(bytes), "{bytes:?}");
        }
        let others: [&[u8]; 4] = [b"", b"model,x\n", b"PK\x03\x04 word/document.xml", b"\x80"];
        for bytes in others {
            assert!(!is_one(bytes), "{bytes:?}");
        }
    }
}
