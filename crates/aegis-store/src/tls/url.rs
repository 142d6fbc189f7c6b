//! The words of a URL that are about TLS, taken out of it: the driver knows three of the five modes and no files.

use std::path::PathBuf;

use super::SslMode;
use crate::error::StoreError;

/// What stood in the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsWords {
    pub(super) mode: Option<SslMode>,
    /// `None`: what the machine trusts.
    pub(super) root: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

impl TlsWords {
    /// Takes a parameter when it is one of ours.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> Result<bool, StoreError> {
        match name {
            "sslmode" => self.mode = Some(mode(value)?),
            "sslrootcert" if value == "system" => self.root = None,
            "sslrootcert" => self.root = Some(path(name, value)?),
            "sslcert" => self.cert = Some(path(name, value)?),
            "sslkey" => self.key = Some(path(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// As libpq has it: `require` beside an authority's certificate looks at it.
    pub(super) fn effective_mode(&self) -> SslMode {
        match self.mode.unwrap_or(SslMode::Prefer) {
            SslMode::Require if self.root.is_some() => SslMode::VerifyCa,
            mode => mode,
        }
    }
}

fn mode(value: &str) -> Result<SslMode, StoreError> {
    Ok(match value {
        "disable" => SslMode::Disable,
        "prefer" => SslMode::Prefer,
        "require" => SslMode::Require,
        "verify-ca" => SslMode::VerifyCa,
        "verify-full" => SslMode::VerifyFull,
        other => {
            return Err(StoreError::Url {
                what: format!(
                    "sslmode={other} is none of disable, prefer, require, verify-ca, verify-full"
                ),
            });
        }
    })
}

/// A path as a URL writes it: `%2F` is a slash.
fn path(name: &str, value: &str) -> Result<PathBuf, StoreError> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let digits = [rest.next(), rest.next()];
            let text: Option<String> = digits.iter().map(|digit| digit.map(char::from)).collect();
            text.and_then(|text| u8::from_str_radix(&text, 16).ok())
                .ok_or_else(|| StoreError::Url {
                    what: format!(
                        "{name} holds a % without two hexadecimal digits; write %25 for a %"
                    ),
                })?
        } else {
            byte
        };
        bytes.push(byte);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.is_empty() => Ok(text.into()),
        _ => Err(StoreError::Url {
            what: format!("{name} names no file"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_libpq_are_understood() {
        let mut words = TlsWords::default();
        assert_eq!(words.effective_mode(), SslMode::Prefer);
        assert!(words.take("sslmode", "require").unwrap());
        assert_eq!(words.effective_mode(), SslMode::Require);
        assert!(words.take("sslrootcert", "%2Fetc%2Fca.pem").unwrap());
        assert_eq!(words.root, Some("/etc/ca.pem".into()));
        assert_eq!(words.effective_mode(), SslMode::VerifyCa);
        assert!(!words.take("host", "h").unwrap());
        for (name, value) in [
            ("sslmode", "allow"),
            ("sslmode", "Verify-Full"),
            ("sslrootcert", ""),
            ("sslcert", "%zz"),
            ("sslkey", "%2"),
        ] {
            assert!(words.take(name, value).is_err(), "{name}={value}");
        }
    }
}
