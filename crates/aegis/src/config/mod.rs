//! Configuration: flags over `AEGIS_*` environment over file over defaults.
//!
//! How: the file's values become the defaults of the flags that they are named after, so every value is checked and bounded
//! in one place, by the flag's own parser, and clap's order (flag, environment, default) is the order promised.
//!
//! Invariants: the whole file is checked before anything is done; a key that is no setting is an error with its line; no
//! secret is printed.
//!
//! Never: a second parser of a setting.

mod file;
mod locate;
mod print;
pub(crate) mod secret;
mod settings;

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgMatches, Command};

use crate::failure::Failure;
use crate::output::Output;

use file::File;

/// The command line with the file's values in it.
pub(crate) struct Configured {
    /// What parses the arguments.
    pub(crate) command: Command,
    file: Option<File>,
}

/// Reads the file and puts its values under the flags.
pub(crate) fn load(command: Command, arguments: &[OsString]) -> Result<Configured, Failure> {
    let file = match locate::find(arguments) {
        _ if needs_no_settings(arguments) => None,
        None => None,
        Some(found) => Some(file::read(found, &command)?),
    };
    let command = settings::with_values(command, file.as_ref());
    Ok(Configured {
        command: if asks_to_print(arguments) {
            relax(command)
        } else {
            command
        },
        file,
    })
}

impl Configured {
    /// Prints every setting of the command that was named, with where it came from.
    pub(crate) fn print(&self, matches: &ArgMatches, output: Output) {
        print::print(&self.command, matches, self.file.as_ref(), output);
    }
}

/// Whether `--print-config` stands there, for which a command needs none of its arguments.
fn asks_to_print(arguments: &[OsString]) -> bool {
    before_dashes(arguments).any(|word| word == "--print-config")
}

/// Help and the like work beside a broken file.
fn needs_no_settings(arguments: &[OsString]) -> bool {
    let first = ["help", "-V", "--version", "version", "completion"];
    let is_first = arguments
        .get(1)
        .is_some_and(|word| first.iter().any(|name| word == *name));
    is_first || before_dashes(arguments).any(|word| word == "-h" || word == "--help")
}

fn before_dashes(arguments: &[OsString]) -> impl Iterator<Item = &OsStr> {
    arguments
        .iter()
        .map(OsString::as_os_str)
        .take_while(|word| *word != "--")
}

fn relax(command: Command) -> Command {
    let groups: Vec<_> = command
        .get_groups()
        .map(|group| group.get_id().clone())
        .collect();
    let command = groups.into_iter().fold(command, |command, id| {
        command.mut_group(id, |group| group.required(false))
    });
    command
        .mut_args(|argument| {
            if argument.is_positional() {
                bare(&argument)
            } else {
                argument.required(false)
            }
        })
        .subcommand_required(false)
        .arg_required_else_help(false)
        .mut_subcommands(relax)
}

/// The same place for words, without what it asks for.
fn bare(argument: &Arg) -> Arg {
    let mut bare = Arg::new(argument.get_id().clone()).action(argument.get_action().clone());
    if let Some(count) = argument.get_num_args() {
        bare = bare.num_args(count);
    }
    if let Some(index) = argument.get_index() {
        bare = bare.index(index);
    }
    bare
}
