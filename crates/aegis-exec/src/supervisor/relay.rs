//! The threads that only move bytes: each may wait for a pipe as long as it likes, since none of them judges anything.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use aegis_protocol::limits::{LOG_BYTES_MAX, LOG_LINES_MAX};

use crate::clock::boot_ns;
use crate::frame::{Order, Report};
use crate::lines::{self, Line};

/// What the judging thread hears.
#[derive(Debug)]
pub(super) enum Event {
    /// An order of the worker that is not a line.
    Order(Order),
    /// The worker's pipe is closed, or nobody reads what is said to it.
    WorkerGone,
    /// The handler's process has ended; it was not waited for yet.
    HandlerEnded,
    /// One of its outputs is closed and everything of it was passed on.
    OutputDone,
}

/// What is said to the worker: one frame at a time, whichever thread says it.
#[derive(Clone)]
pub(super) struct Worker(Arc<Mutex<File>>);

impl Worker {
    /// This process's standard output.
    pub(super) fn on_stdout() -> std::io::Result<Self> {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self(Arc::new(Mutex::new(File::from(stdout)))))
    }

    /// False: nobody reads it any more.
    pub(super) fn say(&self, report: &Report) -> bool {
        let mut to = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        to.write_all(&report.encode()).is_ok()
    }
}

/// Reads the worker's orders from this process's standard input until it closes.
pub(super) fn orders(lines: &Sender<Vec<u8>>, events: &Sender<Event>) {
    let mut stdin = BufReader::new(std::io::stdin());
    let mut frame = Vec::new();
    loop {
        frame.clear();
        match stdin.read_until(b'\n', &mut frame) {
            Ok(count) if count > 0 && frame.pop() == Some(b'\n') => {}
            // The end, an error, or an order that was cut off by the worker's death.
            _ => break,
        }
        let sent = match Order::decode(&frame) {
            Some(Order::Line(line)) => {
                // Gone when the handler has closed its input: that was told already.
                lines.send(line).ok();
                Ok(())
            }
            Some(order) => events.send(Event::Order(order)),
            None => break,
        };
        if sent.is_err() {
            return;
        }
    }
    events.send(Event::WorkerGone).ok();
}

/// Since when the handler has left something unread; 0: there is nothing.
#[derive(Debug, Default)]
pub(super) struct Unread(AtomicI64);

impl Unread {
    /// In nanoseconds of the boot-time clock.
    pub(super) fn since_ns(&self) -> Option<i64> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            since => Some(since),
        }
    }
}

/// Writes to the handler's standard input until the worker has nothing more to say.
pub(super) fn input(
    mut to: ChildStdin,
    lines: &Receiver<Vec<u8>>,
    unread: &Unread,
    worker: &Worker,
) {
    /// So that a handler that reads slowly is not taken for one that does not read.
    const PIECE_BYTES: usize = 16 * 1024;
    while let Ok(mut line) = lines.recv() {
        line.push(b'\n');
        for piece in line.chunks(PIECE_BYTES) {
            unread.0.store(boot_ns().max(1), Ordering::SeqCst);
            let written = to.write_all(piece);
            unread.0.store(0, Ordering::SeqCst);
            if written.is_err() {
                worker.say(&Report::InputClosed);
                return;
            }
        }
    }
}

/// Passes the handler's standard output on, line by line.
pub(super) fn output(
    from: ChildStdout,
    line_bytes_max: usize,
    worker: &Worker,
    events: &Sender<Event>,
) {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut heard = true;
    while heard {
        let report = match lines::next(&mut from, line_bytes_max) {
            Ok(Line::Whole(line)) => Report::Line(line),
            Ok(Line::Long(_)) => {
                heard = worker.say(&Report::TooLong);
                // Read on, so that its end is seen; nothing of it counts.
                std::io::copy(&mut from, &mut std::io::sink()).ok();
                break;
            }
            Ok(Line::End(rest)) => {
                if !rest.is_empty() {
                    heard = worker.say(&Report::Partial(rest));
                }
                break;
            }
            Err(_) => break,
        };
        heard = worker.say(&report);
    }
    heard = heard && worker.say(&Report::OutputClosed);
    events
        .send(if heard {
            Event::OutputDone
        } else {
            Event::WorkerGone
        })
        .ok();
}

/// Passes the handler's standard error on, with a bound; what is over it is counted and thrown away.
pub(super) fn errors(from: ChildStderr, worker: &Worker, events: &Sender<Event>) {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let (mut kept, mut dropped) = (0_u64, 0_u64);
    loop {
        let (line, last) = match lines::next(&mut from, LOG_BYTES_MAX) {
            Ok(Line::Whole(line) | Line::Long(line)) => (line, false),
            Ok(Line::End(rest)) => (rest, true),
            Err(_) => (Vec::new(), true),
        };
        if !(last && line.is_empty()) {
            if kept < LOG_LINES_MAX {
                kept += 1;
                worker.say(&Report::Stderr(line));
            } else {
                dropped += 1;
            }
        }
        if last {
            break;
        }
    }
    if dropped > 0 {
        worker.say(&Report::Dropped(dropped));
    }
    events.send(Event::OutputDone).ok();
}
