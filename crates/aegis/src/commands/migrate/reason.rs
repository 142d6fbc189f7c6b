//! The reason that a verb asks for: one rule for all of them.

/// Reads `--reason`; blank is a usage error.
pub(crate) fn read(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("it is blank; say why, for who reads the record");
    }
    Ok(text.to_owned())
}
