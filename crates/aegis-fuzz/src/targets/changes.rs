//! A folder of changes: `change.toml`, `migrations.lock`, `targets.toml`.

use aegis_migrate::change::{self, Files, Phase, normalised};
use aegis_migrate::lock::LockFile;
use aegis_migrate::targets::{self, TARGETS_FILE};

use crate::holds::{each_says, same, text};

const ID: &str = "20261129T1030_split_name";

/// `change.toml`, then a line `-- next` and an SQL file, which is there under the names that the corpus uses.
pub(super) fn change(bytes: &[u8]) {
    const NEXT: &[u8] = b"\n-- next\n";
    let cut = bytes.windows(NEXT.len()).position(|window| window == NEXT);
    let (document, sql) = match cut {
        Some(at) => (&bytes[..at], &bytes[at + NEXT.len()..]),
        None => (bytes, b"SELECT 1;".as_slice()),
    };
    let names = [
        "expand.sql",
        "migrate.sql",
        "validate.sql",
        "tighten.sql",
        "contract.sql",
    ];
    let mut files = vec![(format!("{ID}/change.toml"), document)];
    for name in names {
        // A file that nothing names is a mistake: only named ones are there.
        if document
            .windows(name.len())
            .any(|window| window == name.as_bytes())
        {
            files.push((format!("{ID}/{name}"), sql));
        }
    }
    let files = Files::embedded(
        "m",
        files.iter().map(|(name, bytes)| (name.as_str(), *bytes)),
    );
    match change::read(&files, ID) {
        Ok(change) => {
            assert_eq!(change.id.to_string(), ID);
            for phase in Phase::ALL {
                assert_eq!(change.has(phase), change.sha256(phase).is_some(), "{phase}");
                let _ = change.parts(phase);
            }
        }
        Err(problems) => each_says(&problems, bytes),
    }
    // A checkout with other line ends is the same file.
    if let Some(sql) = text(sql)
        && !sql.contains('\r')
    {
        same(&normalised(sql), &normalised(&sql.replace('\n', "\r\n")));
    }
}

/// `migrations.lock`.
pub(super) fn lock(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    match LockFile::parse(text, "migrations.lock") {
        Ok(lock) => {
            let again = LockFile::parse(lock.text(), "migrations.lock");
            same(
                &Some(&lock.lines),
                &again.ok().as_ref().map(|lock| &lock.lines),
            );
            for (position, line) in lock.lines.iter().enumerate() {
                assert_eq!(lock.position(&line.at), Some(position));
            }
            // What is appended is read again, and the lines before stay what they were.
            let mut more = lock.clone();
            if let Ok(at) = "29991231T2359_z/contract".parse()
                && lock.line(&at).is_none()
            {
                more.append(at, "0".repeat(64));
                let again = LockFile::parse(more.text(), "migrations.lock");
                same(&Some(more.lines), &again.ok().map(|lock| lock.lines));
            }
        }
        Err(problems) => each_says(&problems, bytes),
    }
}

/// `targets.toml`.
pub(super) fn targets(bytes: &[u8]) {
    let files = Files::embedded("m", [(TARGETS_FILE, bytes)]);
    if let Err(problems) = targets::read(&files) {
        each_says(&problems, bytes);
    }
}
