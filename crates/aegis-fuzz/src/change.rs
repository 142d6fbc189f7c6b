//! Known bytes, changed: what the ordinary tests use in place of libFuzzer.
//!
//! Invariants: the same seed makes the same bytes; a result is never longer than [`BYTES_MAX`].

/// Longest result.
pub const BYTES_MAX: usize = 64 * 1024;

/// What breaks readers more often than chance would find it.
const PIECES: [&[u8]; 26] = [
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n",
    b"\x1b[31m",
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"[",
    b"(",
    b")",
    b"]",
    b"}",
    b"--",
    b"/*",
    b"$$",
    b";",
    b"=",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"NaN",
    "\u{202e}\u{feff}".as_bytes(),
];

/// Numbers from a seed (splitmix64): no dependency, and the same everywhere.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// From a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One below `end`; 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next_u64() % end).unwrap_or(0)
    }
}

/// Known bytes after up to eight changes; `other` is where foreign pieces come from.
#[must_use]
pub fn changed(known: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = known.to_vec();
    for _ in 0..=numbers.below(8) {
        once(&mut bytes, other, numbers);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn once(bytes: &mut Vec<u8>, other: &[u8], numbers: &mut Numbers) {
    let at = numbers.below(bytes.len() + 1);
    let to = (at + 1 + numbers.below(16)).min(bytes.len());
    match numbers.below(9) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, u8::try_from(numbers.below(256)).unwrap_or(0)),
        2 => drop(bytes.drain(at..to)),
        3 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << numbers.below(8);
            }
        }
        4 => {
            let piece = PIECES[numbers.below(PIECES.len())];
            drop(bytes.splice(at..at, piece.iter().copied()));
        }
        // Deep nesting, long words.
        5 => {
            let piece = PIECES[numbers.below(PIECES.len())];
            let many = piece.repeat(1 << numbers.below(10));
            drop(bytes.splice(at..at, many));
        }
        6 => bytes.extend_from_within(at..),
        7 => {
            let from = numbers.below(other.len());
            let until = (from + 1 + numbers.below(64)).min(other.len());
            drop(bytes.splice(at..to.max(at), other[from..until].iter().copied()));
        }
        _ => number(bytes, at, numbers),
    }
}

/// A run of digits becomes a number at an edge.
fn number(bytes: &mut Vec<u8>, from: usize, numbers: &mut Numbers) {
    const EDGES: [&str; 8] = [
        "0",
        "-1",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "1e400",
        "0.1",
        "00",
    ];
    let Some(start) = (from..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else {
        return;
    };
    let end = (start..bytes.len())
        .find(|at| !bytes[*at].is_ascii_digit())
        .unwrap_or(bytes.len());
    let edge = EDGES[numbers.below(EDGES.len())];
    drop(bytes.splice(start..end, edge.bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_bytes_and_another_seed_others() {
        let all = |seed| {
            let mut numbers = Numbers::new(seed);
            (0..50)
                .map(|_| changed(b"{\"a\": 12}", b"other", &mut numbers))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        assert!(all(1).iter().any(|bytes| bytes != b"{\"a\": 12}"));
    }

    #[test]
    fn nothing_grows_without_end_and_nothing_empty_stops_it() {
        let mut numbers = Numbers::new(3);
        let mut bytes = Vec::new();
        for _ in 0..20_000 {
            bytes = changed(&bytes, &[], &mut numbers);
            assert!(bytes.len() <= BYTES_MAX);
        }
    }
}
