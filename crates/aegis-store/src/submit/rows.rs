//! Rows as a binary COPY takes them, gathered into pieces of 64 KiB: the driver's own writer sends one for every 4 KiB, and each
//! costs a wake-up, a system call on both sides and a message to take apart.
//!
//! Invariant: each row has exactly as many fields as it was begun with. The form is PostgreSQL's, in big-endian:
//! <https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-BINARY-FORMAT>.

use bytes::{BufMut as _, Bytes, BytesMut};
use jiff::Timestamp;
use uuid::Uuid;

const PIECE_BYTES: usize = 64 * 1024;
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// 2000-01-01, from which PostgreSQL counts, in microseconds of the Unix epoch.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// What was not sent yet.
pub(super) struct Rows {
    buffer: BytesMut,
}

impl Rows {
    /// With the head of the whole.
    pub(super) fn new() -> Self {
        let mut buffer = BytesMut::with_capacity(PIECE_BYTES + 4096);
        buffer.put_slice(SIGNATURE);
        // Neither flags nor an extension.
        buffer.put_u64(0);
        Self { buffer }
    }

    /// Begins a row.
    pub(super) fn row(&mut self, fields: i16) -> &mut Self {
        self.buffer.put_i16(fields);
        self
    }

    /// What is to be sent now: a piece that is full.
    pub(super) fn full(&mut self) -> Option<Bytes> {
        (self.buffer.len() >= PIECE_BYTES).then(|| {
            let piece = self.buffer.split().freeze();
            self.buffer.reserve(PIECE_BYTES + 4096);
            piece
        })
    }

    /// The rest, with the end of the whole.
    pub(super) fn end(mut self) -> Bytes {
        self.buffer.put_i16(-1);
        self.buffer.freeze()
    }

    pub(super) fn uuid(&mut self, value: Uuid) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    pub(super) fn int2(&mut self, value: i16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn int4(&mut self, value: i32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn int8(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn timestamptz(&mut self, value: Option<Timestamp>) -> &mut Self {
        match value {
            Some(at) => self.int8(at.as_microsecond() - EPOCH_2000_US),
            None => self.null(),
        }
    }

    pub(super) fn text(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(text) => self.bytes(text.as_bytes()),
            None => self.null(),
        }
    }

    /// At most as long as an inline input, so its length fits.
    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.buffer
            .put_i32(i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.buffer.put_slice(value);
        self
    }

    fn null(&mut self) -> &mut Self {
        self.buffer.put_i32(-1);
        self
    }
}
