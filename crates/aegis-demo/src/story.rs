//! The voice of the demo: what happens is told while it happens, one line each, with the time and who does it.
//!
//! The story goes to one stream, standard output, or standard error when a machine reads standard output. Colours
//! only on a terminal, and never with `NO_COLOR`. A stream that nobody reads any more ends the telling, never the
//! demo.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// The demo itself, which starts, kills and freezes.
    Demo,
    /// A worker process, by the name that the story gives it, for example `worker 2 (v1)`.
    Worker(String),
    /// The payment service.
    Payments,
    /// The database and the rules in it.
    Engine,
    /// The person who resolves what is unknown: the demo, by the public command line.
    Operator,
    /// The verifier.
    Verify,
}

impl Actor {
    fn name(&self) -> &str {
        match self {
            Self::Demo => "demo",
            Self::Worker(name) => name,
            Self::Payments => "payments",
            Self::Engine => "engine",
            Self::Operator => "operator",
            Self::Verify => "verify",
        }
    }

    fn colour(&self) -> &'static str {
        match self {
            Self::Demo => "1",
            Self::Worker(_) => "36",
            Self::Payments => "33",
            Self::Engine => "34",
            Self::Operator => "35",
            Self::Verify => "32",
        }
    }
}

/// Tells the story.
pub struct Story {
    started: Instant,
    coloured: bool,
    out: Mutex<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Story")
            .field("coloured", &self.coloured)
            .finish_non_exhaustive()
    }
}

/// The column in which the text begins, so that names of all lengths leave one left edge.
const NAME_WIDTH: usize = 14;
/// Where the text is broken, so that a line fits an ordinary terminal.
const TEXT_WIDTH: usize = 84;

impl Story {
    /// To standard output, or to standard error when `json` keeps standard output for one object.
    pub fn new(json: bool) -> Self {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let terminal = if json {
            io::stderr().is_terminal()
        } else {
            io::stdout().is_terminal()
        };
        let out: Box<dyn Write + Send> = if json {
            Box::new(io::stderr())
        } else {
            Box::new(io::stdout())
        };
        Self::to(out, terminal && !no_colour)
    }

    /// To any stream.
    pub fn to(out: Box<dyn Write + Send>, coloured: bool) -> Self {
        Self {
            started: Instant::now(),
            coloured,
            out: Mutex::new(out),
        }
    }

    /// Tells one thing. A text of several lines is indented under its first.
    pub fn tell(&self, actor: &Actor, text: impl Display) {
        self.write(&line(
            self.started.elapsed(),
            actor,
            &text.to_string(),
            self.coloured,
        ));
    }

    /// A headline between two acts.
    pub fn act(&self, title: &str) {
        let (on, off) = if self.coloured {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        self.write(&format!("\n{on}== {title} =={off}\n"));
    }

    /// Something as it is, such as the closing table.
    pub fn show(&self, block: &str) {
        self.write(&format!("\n{block}\n"));
    }

    /// How long the story has lasted.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn write(&self, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A closed pipe is a reader who left (`| head`): the demo goes on and its exit code still tells.
        drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }
}

fn line(at: Duration, actor: &Actor, text: &str, coloured: bool) -> String {
    let seconds = at.as_secs_f64();
    let name = actor.name();
    let (on, off) = if coloured {
        (format!("\x1b[{}m", actor.colour()), "\x1b[0m")
    } else {
        (String::new(), "")
    };
    let indent = format!("\n{:1$}", "", 11 + NAME_WIDTH);
    let text = wrapped(text.trim_end()).join(&indent);
    format!("{seconds:6.1} s  {on}{name:<NAME_WIDTH$}{off} {text}\n")
}

/// Lines of at most [`TEXT_WIDTH`] characters, broken at spaces; a longer word stands alone.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let width = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && width > TEXT_WIDTH {
                lines.push(std::mem::take(&mut line));
            } else if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_has_time_actor_and_text_on_one_left_edge() {
        let at = Duration::from_millis(12_340);
        let demo = line(at, &Actor::Demo, "starts\nand goes on", false);
        let worker = line(
            at,
            &Actor::Worker("worker 2 (v1)".into()),
            "takes over",
            false,
        );
        assert_eq!(
            demo,
            "  12.3 s  demo           starts\n                         and goes on\n"
        );
        assert_eq!(worker, "  12.3 s  worker 2 (v1)  takes over\n");
    }

    #[test]
    fn a_long_text_is_broken_at_spaces_and_loses_nothing() {
        let text = format!("{}\n{}", "word ".repeat(40).trim_end(), "x".repeat(100));
        let lines = wrapped(&text);
        assert!(lines.len() > 3);
        for line in &lines[..lines.len() - 1] {
            assert!(line.chars().count() <= TEXT_WIDTH, "{line}");
        }
        assert_eq!(lines.join(" "), text.replace('\n', " "));
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        for coloured in [false, true] {
            let kept = Kept::default();
            let story = Story::to(Box::new(kept.clone()), coloured);
            story.act("one");
            story.tell(&Actor::Payments, "loses an answer");
            story.show("table");
            let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.contains('\x1b'), coloured);
            assert!(text.contains("loses an answer") && text.ends_with("\ntable\n"));
        }
    }

    #[test]
    fn a_reader_who_left_is_no_error() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        Story::to(Box::new(Gone), false).tell(&Actor::Demo, "talks on");
    }
}
