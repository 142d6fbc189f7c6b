//! How far long work has come: on stderr, and on a terminal only.
//!
//! Invariants: a program that reads stdout or a log sees nothing of it; it is gone when the work has ended.
//!
//! Never: the only place where a result is said.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work without a count turns, so that one sees that it goes on.
const TURN_EVERY: Duration = Duration::from_millis(200);

/// A line that grows. Ends itself when it is dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of so many `things`, or of nobody knows how many.
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let target = if std::io::stderr().is_terminal() && !dumb {
            ProgressDrawTarget::stderr_with_hz(5)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target);
        let template = match total {
            Some(_) => "{msg} {pos} of {len}  {wide_bar}  {eta} left",
            None => "{spinner} {msg} {pos}  {per_sec}  {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        if total.is_none() {
            bar.enable_steady_tick(TURN_EVERY);
        }
        Self(bar)
    }

    /// So many more are done.
    pub(crate) fn more(&self, done: u64) {
        self.0.inc(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
