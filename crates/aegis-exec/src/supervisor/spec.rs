//! What a supervisor is told when it starts.

use std::ffi::OsString;
use std::time::Duration;

const CGROUP: &str = "cgroup";
const NO_CGROUP: &str = "no-cgroup";

/// What to run and how long to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    /// Names the cgroup.
    pub(crate) mark: String,
    /// Until when the worker is eligible, by the boot-time clock.
    pub(crate) until_ns: i64,
    /// How long the handler may leave what is written for it unread.
    pub(crate) unread_within: Duration,
    /// The longest line of its standard output.
    pub(crate) line_bytes_max: usize,
    /// Make a cgroup for the handler, where that is possible.
    pub(crate) cgroup: bool,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

impl Spec {
    /// As arguments, after the words that choose the supervisor.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            super::WORD.into(),
            super::RUN.into(),
            self.mark.clone().into(),
            self.until_ns.to_string().into(),
            self.unread_within.as_millis().to_string().into(),
            self.line_bytes_max.to_string().into(),
            if self.cgroup { CGROUP } else { NO_CGROUP }.into(),
        ];
        arguments.extend(self.command.iter().cloned());
        arguments
    }

    /// Reads them.
    pub(super) fn parse(arguments: &[OsString]) -> Result<Self, String> {
        let [
            mark,
            until_ns,
            unread_ms,
            line_bytes_max,
            cgroup,
            command @ ..,
        ] = arguments
        else {
            return Err("a supervisor is started with five arguments and a command".to_owned());
        };
        if command.is_empty() {
            return Err("a supervisor needs a command".to_owned());
        }
        Ok(Self {
            mark: mark.to_string_lossy().into_owned(),
            until_ns: number(until_ns)?,
            unread_within: Duration::from_millis(number(unread_ms)?),
            line_bytes_max: number(line_bytes_max)?,
            cgroup: cgroup == CGROUP,
            command: command.to_vec(),
        })
    }
}

fn number<T: std::str::FromStr>(text: &OsString) -> Result<T, String> {
    text.to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("{} is no number", text.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_there_and_back() {
        let spec = Spec {
            mark: "m".to_owned(),
            until_ns: 12,
            unread_within: Duration::from_millis(30),
            line_bytes_max: 9,
            cgroup: true,
            command: vec!["./a b".into(), "--x".into()],
        };
        assert_eq!(Spec::parse(&spec.arguments()[2..]), Ok(spec.clone()));
        assert!(Spec::parse(&spec.arguments()[2..7]).is_err());
        assert!(
            Spec::parse(&["m".into(), "x".into(), "1".into(), "1".into(), "a".into()]).is_err()
        );
    }
}
