//! Which flags are settings, and what they are called in the file and in the environment.
//!
//! A setting's name is its flag's, with `_`: `--lease-ttl-ms` of `aegis worker` is `lease_ttl_ms` under `[worker]` and
//! `AEGIS_WORKER_LEASE_TTL_MS`. Flags of all commands stand at the top of the file.

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};

use super::file::File;

/// The commands that have settings, and which of their flags are none: what belongs to one call.
const PLACES: [(&[&str], &[&str]); 6] = [
    (&[], &["config", "print_config", "help", "version"]),
    (&["worker"], &WORKER_NONE),
    (&["dev"], &["help", "reset", "yes"]),
    (&["db", "install"], &["help"]),
    (&["db", "maintain"], &["help"]),
    (&["task", "submit"], &SUBMIT_NONE),
];

/// Their order says what belongs together, which only a command line has.
const WORKER_NONE: [&str; 4] = ["help", "kind", "protocol", "exec"];

/// What one task is about is no setting.
const SUBMIT_NONE: [&str; 16] = [
    "traceparent",
    "help",
    "kind",
    "input",
    "key",
    "run_at",
    "delay",
    "deadline",
    "label",
    "wait",
    "jsonl",
    "from",
    "file",
    "yes",
    "dry_run",
    "skip_bad",
];

/// One setting.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// The commands on the way to it; none for all commands.
    pub(super) place: &'static [&'static str],
    /// Its name in the file.
    pub(super) key: String,
    /// Its flag, as clap knows it.
    pub(super) argument: Arg,
    /// Its environment variable.
    pub(super) environment: String,
}

impl Setting {
    /// `worker.slots`.
    pub(super) fn name(&self) -> String {
        let words = self.place.iter().copied().chain([self.key.as_str()]);
        words.collect::<Vec<_>>().join(".")
    }

    /// The unit that its name ends with.
    pub(super) fn unit(&self) -> &'static str {
        let suffixes = [
            ("_ms", "ms"),
            ("_s", "s"),
            ("_days", "days"),
            ("_bytes", "bytes"),
            ("_rows", "rows"),
            ("days_ahead", "days"),
        ];
        let found = suffixes
            .into_iter()
            .find(|(suffix, _)| self.key.ends_with(suffix));
        found.map_or("", |(_, unit)| unit)
    }

    /// Whether it is a switch: on or off.
    pub(super) fn is_switch(&self) -> bool {
        matches!(self.argument.get_action(), ArgAction::SetTrue)
    }
}

/// All settings, or those of one place.
pub(super) fn all(command: &Command) -> Vec<Setting> {
    PLACES
        .iter()
        .flat_map(|(place, none)| of_place(command, place, none))
        .collect()
}

fn of_place(command: &Command, place: &'static [&'static str], none: &[&str]) -> Vec<Setting> {
    let found = place
        .iter()
        .try_fold(command, |at, name| at.find_subcommand(name));
    let arguments = found.into_iter().flat_map(Command::get_arguments);
    arguments
        .filter(|argument| is_setting(argument, place, none))
        .filter_map(|argument| {
            let key = argument.get_long()?.replace('-', "_");
            let environment = match argument.get_env() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => format!(
                    "AEGIS_{}",
                    place
                        .iter()
                        .copied()
                        .chain([key.as_str()])
                        .collect::<Vec<_>>()
                        .join("_")
                )
                .to_uppercase(),
            };
            Some(Setting {
                place,
                key,
                argument: argument.clone(),
                environment,
            })
        })
        .collect()
}

fn is_setting(argument: &Arg, place: &[&str], none: &[&str]) -> bool {
    let id = argument.get_id().as_str();
    // What all commands have is a setting of all.
    !none.contains(&id)
        && !argument.is_hide_set()
        && (place.is_empty() || !argument.is_global_set())
}

/// The command with the environment's names and the file's values.
pub(super) fn with_values(command: Command, file: Option<&File>) -> Command {
    all(&command).into_iter().fold(command, |command, setting| {
        let values = file
            .and_then(|file| file.values(&setting.name()))
            .map(<[String]>::to_vec);
        at_place(
            command,
            setting.place,
            &|argument| adapt(argument, &setting, values.as_deref()),
            &setting.argument,
        )
    })
}

fn at_place(
    command: Command,
    place: &[&str],
    adapt: &dyn Fn(Arg) -> Arg,
    argument: &Arg,
) -> Command {
    match place.split_first() {
        None => command.mut_arg(argument.get_id(), adapt),
        Some((first, rest)) => {
            command.mut_subcommand(*first, |sub| at_place(sub, rest, adapt, argument))
        }
    }
}

fn adapt(argument: Arg, setting: &Setting, values: Option<&[String]>) -> Arg {
    // Their values are shown by `--print-config`, masked.
    let mut argument = argument
        .env(setting.environment.clone())
        .hide_env_values(true);
    if setting.is_switch() {
        // `1`, `true`, `yes`, `on` and their opposites, as people write them into an environment.
        argument = argument.value_parser(BoolishValueParser::new());
    }
    if let Some(values) = values {
        argument = argument
            .default_values(values.to_vec())
            .hide_default_value(super::secret::is_secret(&setting.key));
    }
    argument
}
