//! The frames of PostgreSQL's protocol as a client sends them, gathered into batches that the server answers as one.
//!
//! Invariants: bytes are never changed, dropped or reordered here; a batch ends at Sync, Query, Flush, or a piece of a COPY.

/// A whole batch and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// As it was sent.
    pub bytes: Vec<u8>,
    /// What it does.
    pub does: Does,
    /// It asks for tasks; one of the writes.
    pub claims: bool,
}

/// What a batch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Does {
    /// Opens a connection, authenticates, reads, prepares, or is a piece of a COPY.
    Else,
    /// COMMIT.
    Commit,
    /// Takes lost tasks back, promotes what is due.
    Housekeep,
    /// Executes statements that write, by themselves or inside a transaction.
    Write,
}

impl Batch {
    /// What the client calls itself, when this opens a connection and it says so.
    pub fn application_name(&self) -> Option<&str> {
        const VERSION_3: &[u8] = &[0, 3, 0, 0];
        if self.bytes.get(4..8) != Some(VERSION_3) {
            return None;
        }
        let mut words = self.bytes.get(8..)?.split(|byte| *byte == 0);
        while let Some(name) = words.next().filter(|name| !name.is_empty()) {
            let value = words.next()?;
            if name == b"application_name" {
                return std::str::from_utf8(value).ok();
            }
        }
        None
    }
}

/// Cuts a client's bytes into batches.
#[derive(Debug, Default)]
pub struct Frames {
    /// Whole frames of the open batch, then the beginning of a frame.
    bytes: Vec<u8>,
    /// How many of them are whole frames.
    whole: usize,
    does: Option<Does>,
    claims: bool,
    started: bool,
}

/// Claims, steps, checkpoints, dispatches, results and completions; not renewals and housekeeping.
const WRITES: [&[u8]; 3] = [
    b"update aegis.task t",
    b"delete from aegis.task t",
    b"insert into aegis.operation",
];

/// Only an acquisition writes this.
const CLAIMS: &[u8] = b"set last_request =";

impl Frames {
    /// Takes bytes; gives the batches that are whole now.
    pub fn take(&mut self, more: &[u8]) -> Vec<Batch> {
        self.bytes.extend_from_slice(more);
        let mut batches = Vec::new();
        while let Some((kind, length)) = self.next_frame() {
            let body = &self.bytes[self.whole..self.whole + length];
            let does = match kind {
                b'Q' | b'P' => looks(body),
                _ => Does::Else,
            };
            self.does = Some(stronger(self.does.unwrap_or(Does::Else), does));
            self.claims |= does == Does::Write && has(body, CLAIMS);
            self.whole += length;
            // Parse, Bind, Describe, Execute and Close wait for the Sync that ends them.
            if !matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C') {
                let rest = self.bytes.split_off(self.whole);
                batches.push(Batch {
                    bytes: std::mem::replace(&mut self.bytes, rest),
                    does: self.does.take().unwrap_or(Does::Else),
                    claims: std::mem::take(&mut self.claims),
                });
                self.whole = 0;
            }
        }
        batches
    }

    /// The kind and the length of the next whole frame; the first of a connection has no kind.
    fn next_frame(&mut self) -> Option<(u8, usize)> {
        let rest = &self.bytes[self.whole..];
        let head = usize::from(self.started);
        let length = rest.get(head..head + 4)?;
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize + head;
        if rest.len() < length || length < head + 4 {
            return None;
        }
        let kind = if self.started { rest[0] } else { 0 };
        // A request for TLS (80877103) or GSS (80877104) is answered before the real start.
        let asks = !self.started && length == 8 && rest.get(4..6) == Some(&[0x04, 0xd2]);
        self.started = !asks;
        Some((kind, length))
    }
}

fn has(body: &[u8], word: &[u8]) -> bool {
    let text = body.to_ascii_lowercase();
    text.windows(word.len()).any(|window| window == word)
}

fn looks(body: &[u8]) -> Does {
    let text = body.to_ascii_lowercase();
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    if has(b"commit\0") {
        Does::Commit
    } else if WRITES.iter().any(|word| has(word)) {
        Does::Write
    } else if has(b"from aegis.tick(") {
        Does::Housekeep
    } else {
        Does::Else
    }
}

fn stronger(one: Does, other: Does) -> Does {
    match (one, other) {
        (Does::Commit, _) | (_, Does::Commit) => Does::Commit,
        (Does::Write, _) | (_, Does::Write) => Does::Write,
        (Does::Housekeep, _) | (_, Does::Housekeep) => Does::Housekeep,
        _ => Does::Else,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(u32::try_from(body.len() + 4).unwrap_or(0).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn start() -> Vec<u8> {
        frame(b'x', b"\0\x03\0\0user\0a\0\0")[1..].to_vec()
    }

    #[test]
    fn a_batch_ends_at_its_sync_and_knows_what_it_does() {
        let parse = frame(b'P', b"\0UPDATE aegis.task t SET rev = rev + 1\0\0\0");
        let bytes = [
            start(),
            parse.clone(),
            frame(b'B', b""),
            frame(b'E', b""),
            frame(b'S', b""),
            frame(b'Q', b"COMMIT\0"),
            frame(b'P', b"\0SELECT 1\0\0\0"),
            frame(b'S', b""),
            frame(b'P', b"\0SELECT claimable FROM aegis.tick($1::uuid)\0\0\0"),
            frame(b'S', b""),
        ]
        .concat();
        // However the bytes arrive, the batches are the same.
        for piece in [1, 3, 7, 1000] {
            let mut frames = Frames::default();
            let batches: Vec<Batch> = bytes
                .chunks(piece)
                .flat_map(|chunk| frames.take(chunk))
                .collect();
            let does: Vec<Does> = batches.iter().map(|batch| batch.does).collect();
            let expected = [
                Does::Else,
                Does::Write,
                Does::Commit,
                Does::Else,
                Does::Housekeep,
            ];
            assert_eq!(does, expected);
            let again: Vec<u8> = batches.into_iter().flat_map(|batch| batch.bytes).collect();
            assert_eq!(again, bytes, "not one byte is changed");
        }
    }

    #[test]
    fn an_acquisition_is_told_from_other_writes() {
        // The engine's own words, so that a renamed column is noticed.
        let acquire = include_str!("../../../aegis-store/sql/task/acquire.sql");
        let complete = include_str!("../../../aegis-store/sql/task/complete.sql");
        let parse = |sql: &str| frame(b'P', format!("\0{sql}\0\0\0").as_bytes());
        let end = || [frame(b'B', b""), frame(b'E', b""), frame(b'S', b"")].concat();
        let mut frames = Frames::default();
        let bytes = [
            start(),
            parse(acquire),
            end(),
            parse(complete),
            end(),
            parse("SELECT 1"),
            end(),
        ];
        let batches = frames.take(&bytes.concat());
        let told: Vec<(Does, bool)> = batches.iter().map(|one| (one.does, one.claims)).collect();
        let expected = [
            (Does::Else, false),
            (Does::Write, true),
            (Does::Write, false),
            (Does::Else, false),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn who_opens_a_connection_is_known_by_name() {
        let named = frame(b'x', b"\0\x03\0\0user\0a\0application_name\0worker-7\0\0");
        let mut frames = Frames::default();
        let opened = frames.take(&named[1..]);
        assert_eq!(opened[0].application_name(), Some("worker-7"));
        let asks = frames.take(&frame(b'Q', b"application_name\0worker-8\0"));
        assert_eq!(asks[0].application_name(), None);
        let nameless = Frames::default().take(&start());
        assert_eq!(nameless[0].application_name(), None);
    }

    #[test]
    fn a_question_for_tls_is_followed_by_the_start() {
        let tls = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
        let mut frames = Frames::default();
        assert_eq!(frames.take(&tls).len(), 1);
        assert_eq!(frames.take(&start()).len(), 1);
        assert_eq!(frames.take(&frame(b'Q', b"commit\0"))[0].does, Does::Commit);
    }
}
