//! Digest of a result file's devices and records.
//!
//! It is taken over their JSON text without white space, in the order written, unknown fields included, so that
//! reformatting a file is no edit and changing one sample is. It shows an edit made by accident or without care; it
//! does not prevent one.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// SHA-256 of devices and records of a file, hexadecimal.
pub(super) fn digest(file: &Map<String, Value>) -> String {
    let mut hasher = Sha256::new();
    for key in ["devices", "records"] {
        hasher.update(file.get(key).unwrap_or(&Value::Null).to_string());
        hasher.update("\n");
    }
    // What was once edited can't be made to look measured by removing the mark.
    if file.get("edited").and_then(Value::as_bool).unwrap_or(false) {
        hasher.update("edited\n");
    }
    hasher.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a String takes every write");
        hex
    })
}
