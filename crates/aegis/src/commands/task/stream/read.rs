//! Lines of a file or of standard input, one after another, on a thread of its own.
//!
//! Invariants: memory does not grow with the file: a line has a limit, and so many lines wait at most; a line is told by its
//! number in the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::thread;

use aegis_store::NewTask;
use tokio::sync::mpsc;

use super::line;

/// The longest line: an input of the largest size with every character escaped, and the rest.
const LINE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// So many lines wait at most.
const AHEAD: usize = 256;

/// What a line was.
#[derive(Debug)]
pub(super) enum Item {
    /// A task.
    Task(u64, Box<NewTask>),
    /// None, and why.
    Bad(u64, String),
    /// The file cannot be read further.
    Broken(u64, io::Error),
}

/// Opens the file, or standard input for `-`.
///
/// # Errors
/// The system's.
pub(super) fn open(path: &str) -> io::Result<Box<dyn Read + Send>> {
    Ok(match path {
        "-" => Box::new(io::stdin()),
        _ => Box::new(File::open(path)?),
    })
}

/// Reads tasks from the line `from` (the first is 1) on, until the end, or until nobody listens.
///
/// # Errors
/// When no thread can be started.
pub(super) fn tasks(
    source: Box<dyn Read + Send>,
    from: u64,
    template: NewTask,
) -> io::Result<mpsc::Receiver<Item>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    thread::Builder::new()
        .name("lines".to_owned())
        .spawn(move || read(source, from, &template, &sender))?;
    Ok(receiver)
}

fn read(source: Box<dyn Read + Send>, from: u64, template: &NewTask, sender: &mpsc::Sender<Item>) {
    let mut reader = BufReader::with_capacity(128 * 1024, source);
    let mut buffer = Vec::new();
    for number in 1.. {
        let item = match bounded(&mut reader, &mut buffer) {
            Err(error) => Item::Broken(number, error),
            Ok(Found::End) => return,
            Ok(_) if number < from => continue,
            Ok(Found::TooLong) => {
                Item::Bad(number, format!("it is longer than {LINE_BYTES_MAX} bytes"))
            }
            Ok(Found::Line) => {
                let bytes = match number {
                    1 => buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&buffer),
                    _ => &buffer,
                };
                if bytes.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                match line::task(bytes, template) {
                    Ok(task) => Item::Task(number, Box::new(task)),
                    Err(problem) => Item::Bad(number, problem),
                }
            }
        };
        let is_last = matches!(item, Item::Broken(..));
        if sender.blocking_send(item).is_err() || is_last {
            return;
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Line,
    TooLong,
    End,
}

/// The next line, without its end; what is too long is read over and not kept.
fn bounded(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Found> {
    line.clear();
    let mut long = false;
    let mut any = false;
    loop {
        let chunk = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if chunk.is_empty() {
            break;
        }
        any = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        long |= line.len() + part.len() > LINE_BYTES_MAX;
        if !long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(chunk.len(), |at| at + 1);
        reader.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(match (any, long) {
        (false, _) => Found::End,
        (true, true) => {
            line.clear();
            Found::TooLong
        }
        (true, false) => Found::Line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_their_limit_and_the_next_one_is_whole() {
        let mut text = b"a\r\n\n".to_vec();
        text.extend(vec![b'x'; LINE_BYTES_MAX + 1]);
        text.extend(b"\nlast");
        let mut reader = BufReader::with_capacity(16, text.as_slice());
        let mut line = Vec::new();
        let mut all = Vec::new();
        loop {
            let found = bounded(&mut reader, &mut line).unwrap();
            if found == Found::End {
                break;
            }
            all.push((found, String::from_utf8(line.clone()).unwrap()));
        }
        assert_eq!(
            all,
            [
                (Found::Line, "a\r".to_owned()),
                (Found::Line, String::new()),
                (Found::TooLong, String::new()),
                (Found::Line, "last".to_owned())
            ]
        );
        assert!(line.capacity() <= 2 * LINE_BYTES_MAX);
    }
}
