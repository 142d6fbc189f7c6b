//! The program of a handler, and whether it can be run at all.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::error::ExecError;

/// A program with its arguments, found and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// Finds a program: a path where it has a `/`, otherwise a name in `PATH`.
    ///
    /// # Errors
    /// [`ExecError::Program`] when it is not there, no file, or may not be executed.
    pub fn find(program: impl Into<OsString>) -> Result<Self, ExecError> {
        let given = PathBuf::from(program.into());
        let refused = |why: &str| ExecError::Program {
            program: given.display().to_string(),
            why: why.to_owned(),
        };
        if given.as_os_str().is_empty() {
            return Err(refused("no name was given"));
        }
        let path = if given.as_os_str().as_encoded_bytes().contains(&b'/') {
            given.clone()
        } else {
            std::env::var_os("PATH")
                .iter()
                .flat_map(std::env::split_paths)
                .map(|folder| folder.join(&given))
                .find(|path| path.is_file())
                .ok_or_else(|| {
                    refused(
                        "no folder of PATH has it; for a file in this folder write ./ before it",
                    )
                })?
        };
        let metadata = path
            .metadata()
            .map_err(|error| refused(&error.to_string()))?;
        if !metadata.is_file() {
            return Err(refused("it is no file"));
        }
        if access(&path, AccessFlags::X_OK).is_err() || !may_be_executed(&metadata) {
            return Err(refused("it may not be executed; allow it with chmod +x"));
        }
        // Independent of where the worker's process stands later.
        let path = std::path::absolute(&path).map_err(|error| refused(&error.to_string()))?;
        Ok(Self {
            path,
            arguments: Vec::new(),
        })
    }

    /// With arguments.
    #[must_use]
    pub fn with_arguments<A: Into<OsString>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn command(&self) -> Vec<OsString> {
        let mut command = vec![self.path.clone().into_os_string()];
        command.extend(self.arguments.iter().cloned());
        command
    }
}

/// To root everything is executable that is so for anybody, and nothing else is.
fn may_be_executed(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(program: &str) -> String {
        Program::find(program).unwrap_err().to_string()
    }

    #[test]
    fn a_program_is_found_by_path_and_by_name() {
        assert_eq!(
            Program::find("/bin/sh").unwrap().path(),
            Path::new("/bin/sh")
        );
        assert!(Program::find("sh").unwrap().path().is_absolute());
    }

    #[test]
    fn what_cannot_be_run_says_why() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = why(file.path().to_str().unwrap());
        assert!(text.contains("chmod +x"), "{text}");
        for (program, reason) in [
            ("", "no name"),
            ("/tmp", "no file"),
            ("./nothing-here", "No such file"),
            ("nothing-here-at-all", "PATH"),
        ] {
            let text = why(program);
            assert!(text.contains(reason), "{program}: {text}");
        }
    }
}
