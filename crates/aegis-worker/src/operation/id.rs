//! The id of an operation: what the remote system gets as its idempotency key.
//!
//! Invariant: different (task, name, key, version) have different ids. Neither the epoch nor the order of calls is part of it.

use uuid::Uuid;

/// `{task}/{name}/{key}/v{version}`, with `/` and `%` in name and key as `%2F` and `%25`.
pub fn operation_id(task: Uuid, name: &str, key: &str, version: u32) -> String {
    format!("{task}/{}/{}/v{version}", escaped(name), escaped(key))
}

/// Also escapes what an HTTP header cannot carry.
fn escaped(part: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |four: u8| char::from(DIGITS[usize::from(four)]);
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'/' | b'%' | 0..=b' ' | 0x7f..=0xff => {
                text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
            plain => text.push(char::from(plain)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_and_do_not_collide() {
        let task = Uuid::from_u128(1);
        assert_eq!(
            operation_id(task, "charge", "order 7", 1),
            "00000000-0000-0000-0000-000000000001/charge/order%207/v1"
        );
        assert_ne!(
            operation_id(task, "a/b", "c", 1),
            operation_id(task, "a", "b/c", 1)
        );
        assert_ne!(
            operation_id(task, "a%2F", "c", 1),
            operation_id(task, "a/", "c", 1)
        );
        assert!(operation_id(task, "zahlung", "größe\n", 2).is_ascii());
    }
}
