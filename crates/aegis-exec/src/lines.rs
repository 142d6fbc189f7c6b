//! Reads lines with a bound, from whatever blocks.

use std::io::{BufRead, ErrorKind, Result};

/// One look at a stream of lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole one, without its line end.
    Whole(Vec<u8>),
    /// The first bytes of one that is longer than the bound.
    Long(Vec<u8>),
    /// What stood behind the last line end when the stream ended; empty when nothing did.
    End(Vec<u8>),
}

/// The next line. After [`Line::Long`] the next call goes on within the same line.
pub(crate) fn next(reader: &mut impl BufRead, bytes_max: usize) -> Result<Line> {
    let mut line = Vec::new();
    loop {
        let available = match reader.fill_buf() {
            Ok([]) => return Ok(Line::End(line)),
            Ok(available) => available,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = available.iter().position(|&byte| byte == b'\n');
        let rest = bytes_max - line.len();
        let take = end.unwrap_or(available.len());
        if take > rest {
            line.extend_from_slice(&available[..rest]);
            reader.consume(rest);
            return Ok(Line::Long(line));
        }
        line.extend_from_slice(&available[..take]);
        reader.consume(take + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Line::Whole(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_of_each_length_are_cut_where_they_should() {
        for capacity in [1, 2, 3, 7, 64] {
            let text: &[u8] = b"ab\n\nabcd\nabcdefg\nxy";
            let mut reader = BufReader::with_capacity(capacity, text);
            let mut read = || next(&mut reader, 4).unwrap();
            assert_eq!(read(), Line::Whole(b"ab".to_vec()));
            assert_eq!(read(), Line::Whole(Vec::new()));
            assert_eq!(read(), Line::Whole(b"abcd".to_vec()));
            assert_eq!(read(), Line::Long(b"abcd".to_vec()));
            assert_eq!(read(), Line::Whole(b"efg".to_vec()));
            assert_eq!(read(), Line::End(b"xy".to_vec()));
            assert_eq!(read(), Line::End(Vec::new()));
        }
    }
}
