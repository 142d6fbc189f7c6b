//! Where the file is: `--config`, `AEGIS_CONFIG`, `./aegis.toml`, the user's folder.
//!
//! Invariants: one that was named must exist; the first that is found is the only one that is read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::before_dashes;

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Where.
    pub(super) path: PathBuf,
    /// Who says so.
    pub(super) by: &'static str,
}

/// The file, where there is one.
pub(super) fn find(arguments: &[OsString]) -> Option<Found> {
    let environment = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = flag(arguments) {
        return Some(Found {
            path,
            by: "flag --config",
        });
    }
    if let Some(path) = environment("AEGIS_CONFIG") {
        return Some(Found {
            path: path.into(),
            by: "environment AEGIS_CONFIG",
        });
    }
    let here = Path::new("aegis.toml");
    if here.is_file() {
        return Some(Found {
            path: here.to_owned(),
            by: "the working folder",
        });
    }
    let folder = environment("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| environment("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    let path = folder.join("aegis/aegis.toml");
    path.is_file().then_some(Found {
        path,
        by: "the user's folder",
    })
}

/// What `--config` says. It is needed before the arguments can be parsed, since the file changes how they are.
fn flag(arguments: &[OsString]) -> Option<PathBuf> {
    let mut words = before_dashes(arguments).skip(1);
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word
            .to_str()
            .and_then(|word| word.strip_prefix("--config="))
        {
            return Some(path.into());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_found_wherever_it_stands() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            flag(&words("aegis worker --config a.toml")),
            Some("a.toml".into())
        );
        assert_eq!(
            flag(&words("aegis --config=b.toml worker")),
            Some("b.toml".into())
        );
        assert_eq!(flag(&words("aegis demo hold -- x --config c")), None);
        assert_eq!(flag(&words("aegis --config")), None);
    }
}
