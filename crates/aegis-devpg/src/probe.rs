//! A folder that may hold PostgreSQL's programs, and the version that they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with `postgres` and `initdb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The folder; `psql` and `pgbench` stand in it too where the packager put them.
    pub bin: PathBuf,
    /// The major version, such as 18.
    pub major: u32,
    /// What `postgres -V` says, such as `postgres (PostgreSQL) 18.6`.
    pub version: String,
}

/// Checks one folder and asks its version; the error says what is wrong with it.
pub(crate) fn probe(bin: &Path, lowest: u32) -> Result<Binaries, String> {
    for program in ["postgres", "initdb"] {
        if !bin.join(program).is_file() {
            return Err(format!("it has no `{program}`"));
        }
    }
    let output = Command::new(bin.join("postgres"))
        .arg("-V")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`postgres -V` does not run: {error}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`postgres -V` failed: {}", said.trim()));
    }
    let major = major_of(&version).ok_or_else(|| format!("`postgres -V` says {version:?}"))?;
    if major < lowest {
        return Err(format!("{version} is older than {lowest}"));
    }
    Ok(Binaries {
        bin: bin.to_path_buf(),
        major,
        version,
    })
}

/// The major in `postgres (PostgreSQL) 15.18 (Debian …)`, `18beta1` included.
fn major_of(version: &str) -> Option<u32> {
    let number = version.split_whitespace().nth(2)?;
    let digits: &str = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majors_are_read_from_what_packagers_print() {
        for (version, major) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                Some(15),
            ),
            ("postgres (PostgreSQL) 18.6", Some(18)),
            ("postgres (PostgreSQL) 19beta1", Some(19)),
            ("postgres", None),
        ] {
            assert_eq!(major_of(version), major, "{version}");
        }
    }
}
