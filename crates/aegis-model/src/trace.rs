//! The trace that a task belongs to, as it travels: W3C `traceparent`.
//!
//! Invariants: a context that was parsed is valid (no id is zero) and prints as it was written, in version 00.
//!
//! The rule is the recommendation's: <https://www.w3.org/TR/trace-context/#traceparent-header>.

use std::fmt;
use std::str::FromStr;

/// Characters of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// A place in a trace: what was going on when something was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The whole trace; never 0.
    pub trace_id: u128,
    /// The span that asked; never 0.
    pub span_id: u64,
    /// Does somebody record this trace?
    pub sampled: bool,
}

/// Why a text is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is no W3C traceparent ({0}); it looks like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)]
pub struct TraceContextError(&'static str);

impl FromStr for TraceContext {
    type Err = TraceContextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(5, '-');
        let mut part = |digits: usize, what| {
            parts
                .next()
                .filter(|part| {
                    part.len() == digits
                        && part
                            .bytes()
                            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                })
                .ok_or(TraceContextError(what))
        };
        let bad = TraceContextError;
        let version = part(2, "its version is not two hex digits")?;
        let trace = part(32, "its trace id is not 32 hex digits in lower case")?;
        let span = part(16, "its span id is not 16 hex digits in lower case")?;
        let flags = part(2, "its flags are not two hex digits")?;
        match version {
            "ff" => return Err(bad("version ff is forbidden")),
            "00" if text.len() != LENGTH => return Err(bad("something follows its flags")),
            // A later version may carry more behind what is known.
            _ => {}
        }
        let context = Self {
            trace_id: u128::from_str_radix(trace, 16).map_err(|_| bad("its trace id"))?,
            span_id: u64::from_str_radix(span, 16).map_err(|_| bad("its span id"))?,
            sampled: u8::from_str_radix(flags, 16).map_err(|_| bad("its flags"))? & 1 == 1,
        };
        if context.trace_id == 0 {
            return Err(bad("its trace id is zero"));
        }
        if context.span_id == 0 {
            return Err(bad("its span id is zero"));
        }
        Ok(context)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id,
            self.span_id,
            u8::from(self.sampled)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_read_prints_as_it_was() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        assert_eq!(context.span_id, 0x00f0_67aa_0ba9_02b7);
        assert!(context.sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        let unsampled: TraceContext = EXAMPLE.replace("-01", "-00").parse().unwrap();
        assert!(!unsampled.sampled);
    }

    #[test]
    fn a_later_version_may_carry_more_and_version_00_may_not() {
        let later = format!("{}-more", EXAMPLE.replace("00-4", "cc-4"));
        assert!(later.parse::<TraceContext>().is_ok());
        assert!(format!("{EXAMPLE}-more").parse::<TraceContext>().is_err());
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "version"),
            ("00", "trace id"),
            (&EXAMPLE.to_uppercase(), "trace id"),
            (&EXAMPLE.replace("00-4", "ff-4"), "ff is forbidden"),
            (
                "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                "trace id is zero",
            ),
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                "span id is zero",
            ),
            (&EXAMPLE.replace("-01", "-1"), "flags"),
            (
                "00-4bf92f3577b34da6a3ce929d0e0e473ä-00f067aa0ba902b7-01",
                "trace id",
            ),
        ] {
            let error = text.parse::<TraceContext>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
