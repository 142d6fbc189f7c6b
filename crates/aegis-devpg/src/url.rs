//! Connection URLs that libpq and tokio-postgres read alike. Never a password in one
//! that goes through the socket.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The URL of `database` for `user` through the socket in `folder`.
pub(crate) fn socket_url(user: &str, database: &str, folder: &Path, port: u16) -> String {
    format!(
        "postgresql://{}@/{}?host={}&port={port}",
        percent(user.as_bytes()),
        percent(database.as_bytes()),
        percent(folder.as_os_str().as_bytes()),
    )
}

/// The URL of `database` on 127.0.0.1.
pub(crate) fn tcp_url(user: &str, password: &str, database: &str, port: u16) -> String {
    format!(
        "postgresql://{}:{}@127.0.0.1:{port}/{}",
        percent(user.as_bytes()),
        percent(password.as_bytes()),
        percent(database.as_bytes()),
    )
}

fn percent(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            let digit = |four: u8| char::from(HEX[usize::from(four)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_spaces_and_signs_is_encoded() {
        assert_eq!(
            socket_url("a b", "x/y", Path::new("/tmp/a b&c"), 5432),
            "postgresql://a%20b@/x%2Fy?host=%2Ftmp%2Fa%20b%26c&port=5432"
        );
    }
}
