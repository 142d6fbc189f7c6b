//! What a worker and its supervisor say to each other: a letter, the rest, a line end. They are the same build, so this is
//! no protocol for others.
//!
//! Invariant: a line of the handler passes unchanged, whatever bytes it has; it holds no line end by construction.

use std::fmt::Write as _;

/// To the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// The worker is eligible until this moment of the boot-time clock.
    Alive(i64),
    /// For the handler's standard input.
    Line(Vec<u8>),
    /// SIGTERM to the handler's process group.
    Terminate,
    /// End everything.
    Kill,
}

/// To the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The handler runs with this process id.
    Started(i32),
    /// It could not be started.
    NotStarted(String),
    /// A line of its standard output.
    Line(Vec<u8>),
    /// What stood behind the last line end when its standard output closed.
    Partial(Vec<u8>),
    /// A line was longer than it may be; nothing is read any more.
    TooLong,
    /// Its standard output is closed.
    OutputClosed,
    /// It does not take its standard input any more.
    InputClosed,
    /// It does not read what is written for it.
    InputBlocked,
    /// A line of its standard error.
    Stderr(Vec<u8>),
    /// So many more lines of it were dropped.
    Dropped(u64),
    /// It and everything that it started have ended.
    Ended(Ended),
}

/// How a handler's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its own end; `None` when it never ran or could not be waited for.
    pub(crate) status: Option<Status>,
    /// Did the supervisor end it?
    pub(crate) by: By,
    /// Processes that could not be ended: stuck in the kernel.
    pub(crate) left: usize,
}

/// An exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// Who ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// Itself, or somebody outside.
    Itself,
    /// An order.
    Order,
    /// No word that the worker is still eligible came in time.
    Lease,
}

impl Order {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Alive(until_ns) => framed(b'A', until_ns.to_string().as_bytes()),
            Self::Line(line) => framed(b'L', line),
            Self::Terminate => framed(b'T', b""),
            Self::Kill => framed(b'K', b""),
        }
    }

    /// Reads one, without its line end. `None`: another build, or nonsense.
    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        let (letter, rest) = frame.split_first()?;
        Some(match letter {
            b'A' => Self::Alive(number(rest)?),
            b'L' => Self::Line(rest.to_vec()),
            b'T' => Self::Terminate,
            b'K' => Self::Kill,
            _ => return None,
        })
    }
}

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Started(pid) => framed(b'S', pid.to_string().as_bytes()),
            Self::NotStarted(why) => framed(b'F', why.replace('\n', " ").as_bytes()),
            Self::Line(line) => framed(b'O', line),
            Self::Partial(line) => framed(b'P', line),
            Self::TooLong => framed(b'H', b""),
            Self::OutputClosed => framed(b'C', b""),
            Self::InputClosed => framed(b'I', b""),
            Self::InputBlocked => framed(b'B', b""),
            Self::Stderr(line) => framed(b'E', line),
            Self::Dropped(count) => framed(b'D', count.to_string().as_bytes()),
            Self::Ended(ended) => framed(b'X', ended.encode().as_bytes()),
        }
    }

    /// Reads one, without its line end.
    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        let (letter, rest) = frame.split_first()?;
        Some(match letter {
            b'S' => Self::Started(number(rest)?),
            b'F' => Self::NotStarted(String::from_utf8_lossy(rest).into_owned()),
            b'O' => Self::Line(rest.to_vec()),
            b'P' => Self::Partial(rest.to_vec()),
            b'H' => Self::TooLong,
            b'C' => Self::OutputClosed,
            b'I' => Self::InputClosed,
            b'B' => Self::InputBlocked,
            b'E' => Self::Stderr(rest.to_vec()),
            b'D' => Self::Dropped(number(rest)?),
            b'X' => Self::Ended(Ended::decode(std::str::from_utf8(rest).ok()?)?),
            _ => return None,
        })
    }
}

impl Ended {
    fn encode(self) -> String {
        let mut text = match self.status {
            Some(Status::Code(code)) => format!("code {code}"),
            Some(Status::Signal(signal)) => format!("signal {signal}"),
            None => "none 0".to_owned(),
        };
        let by = match self.by {
            By::Itself => "itself",
            By::Order => "order",
            By::Lease => "lease",
        };
        write!(text, " {by} {}", self.left).ok();
        text
    }

    fn decode(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [how, number, by, left] = words.as_slice() else {
            return None;
        };
        Some(Self {
            status: match *how {
                "code" => Some(Status::Code(number.parse().ok()?)),
                "signal" => Some(Status::Signal(number.parse().ok()?)),
                "none" => None,
                _ => return None,
            },
            by: match *by {
                "itself" => By::Itself,
                "order" => By::Order,
                "lease" => By::Lease,
                _ => return None,
            },
            left: left.parse().ok()?,
        })
    }
}

fn framed(letter: u8, rest: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(rest.len() + 2);
    frame.push(letter);
    frame.extend_from_slice(rest);
    frame.push(b'\n');
    frame
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(frame: &[u8]) -> &[u8] {
        frame.strip_suffix(b"\n").unwrap()
    }

    #[test]
    fn orders_go_there_and_back() {
        for order in [
            Order::Alive(-5),
            Order::Alive(i64::MAX),
            Order::Line(b"{\"a\":\"\xc3\xa4\"}".to_vec()),
            Order::Terminate,
            Order::Kill,
        ] {
            assert_eq!(Order::decode(cut(&order.encode())), Some(order));
        }
        assert_eq!(Order::decode(b""), None);
        assert_eq!(Order::decode(b"Asoon"), None);
        assert_eq!(Order::decode(b"Z"), None);
    }

    #[test]
    fn reports_go_there_and_back() {
        let ended = |status, by, left| Report::Ended(Ended { status, by, left });
        for report in [
            Report::Started(7),
            Report::NotStarted("no".to_owned()),
            Report::Line(vec![0, 255, b'O']),
            Report::Partial(b"{".to_vec()),
            Report::TooLong,
            Report::OutputClosed,
            Report::InputClosed,
            Report::InputBlocked,
            Report::Stderr(b"".to_vec()),
            Report::Dropped(12),
            ended(Some(Status::Code(3)), By::Itself, 0),
            ended(Some(Status::Signal(9)), By::Lease, 2),
            ended(None, By::Order, 0),
        ] {
            assert_eq!(Report::decode(cut(&report.encode())), Some(report));
        }
        assert_eq!(Report::decode(b"Xcode 1 itself"), None);
    }
}
