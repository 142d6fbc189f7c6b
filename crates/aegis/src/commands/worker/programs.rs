//! Handlers that are programs: `--kind resize --protocol 1..2 --exec ./resize.py`, as often as there are kinds.
//!
//! The order of the words decides: `--exec` belongs to the kinds and the protocol since the last `--exec`. Kinds without one
//! stand for what this program executes by itself, as before.

use std::time::Duration;

use aegis_exec::{ExecError, ExecHandler, ExecOptions, Program};
use aegis_model::ProtocolRange;
use aegis_worker::{HandlerOptions, WorkerBuilder};
use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::exit::Exit;
use crate::failure::{Failure, chain};

const KIND: &str = "kind";
const PROTOCOL: &str = "protocol";
const EXEC: &str = "exec";

/// What one `--exec` stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct One {
    kinds: Vec<String>,
    protocol: ProtocolRange,
    program: String,
}

/// All of them, and the kinds that stand before none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Programs {
    all: Vec<One>,
    /// Kinds that this program executes by itself.
    pub(super) own_kinds: Vec<String>,
    /// Were `--handlers` asked for by name?
    handlers_named: bool,
}

impl Programs {
    /// Are the kinds that this program executes by itself wanted, too?
    pub(super) fn leave_room_for_own(&self) -> bool {
        self.all.is_empty() || self.handlers_named || !self.own_kinds.is_empty()
    }

    /// Finds each program, and hears its first line.
    pub(super) async fn checked(&self, stop_within: Duration) -> Result<Vec<ExecHandler>, Failure> {
        let mut options = ExecOptions::default();
        // Ended, reported and handed back before the worker gives up on it.
        options.kill_after = stop_within.mul_f64(5.0 / 6.0);
        let mut handlers = Vec::new();
        for one in &self.all {
            let program = Program::find(&one.program)?;
            for (index, kind) in one.kinds.iter().enumerate() {
                let handler =
                    ExecHandler::new(kind, one.protocol, program.clone(), options.clone());
                if index == 0 {
                    handler.check().await?;
                }
                handlers.push(handler);
            }
        }
        Ok(handlers)
    }
}

/// Adds handlers for each queue; answers their kinds.
pub(super) fn add_to(
    mut builder: WorkerBuilder,
    queues: &[String],
    handlers: &[ExecHandler],
) -> (WorkerBuilder, Vec<String>) {
    use aegis_worker::TaskHandler as _;
    for queue in queues {
        for handler in handlers {
            let options = HandlerOptions {
                queue: Some(queue.clone()),
                slots: None,
            };
            builder = builder.handler_with(handler.clone(), options);
        }
    }
    let kinds = handlers.iter().map(|one| one.kind().to_owned()).collect();
    (builder, kinds)
}

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Self {
        Self::new(Exit::Usage, chain(&error)).with_code(error.code())
    }
}

/// A word of the command line, in its place.
enum Word {
    Kind(String),
    Protocol(String),
    Exec(String),
}

/// Puts the words together.
fn grouped(words: Vec<Word>) -> Result<Programs, String> {
    let mut programs = Programs::default();
    let (mut kinds, mut protocol): (Vec<String>, Option<String>) = (Vec::new(), None);
    for word in words {
        match word {
            Word::Kind(kind) => kinds.push(kind),
            Word::Protocol(range) => {
                if let Some(before) = protocol.replace(range) {
                    return Err(format!(
                        "--protocol {before} is followed by another --protocol without an --exec between: give one for each --exec"
                    ));
                }
            }
            Word::Exec(program) => {
                if kinds.is_empty() {
                    return Err(format!(
                        "--exec {program} has no --kind before it: write --kind KIND --protocol 1..2 --exec {program}"
                    ));
                }
                let protocol = match protocol.take() {
                    None => ProtocolRange::FIRST,
                    Some(range) => range
                        .parse()
                        .map_err(|error: aegis_model::ProtocolError| error.to_string())?,
                };
                programs.all.push(One {
                    kinds: std::mem::take(&mut kinds),
                    protocol,
                    program,
                });
            }
        }
    }
    if let Some(range) = protocol {
        return Err(format!(
            "--protocol {range} has no --exec behind it: it says what a program reads and writes"
        ));
    }
    programs.own_kinds = kinds;
    Ok(programs)
}

/// In the order of the command line; these are no settings of a file, which has no such order.
fn words(matches: &ArgMatches) -> Vec<Word> {
    type ToWord = fn(String) -> Word;
    let ways: [(&str, ToWord); 3] = [
        (KIND, Word::Kind),
        (PROTOCOL, Word::Protocol),
        (EXEC, Word::Exec),
    ];
    let mut found: Vec<(usize, Word)> = Vec::new();
    for (name, word) in ways {
        let values = matches.get_many::<String>(name).into_iter().flatten();
        let places = matches.indices_of(name).into_iter().flatten();
        found.extend(
            places
                .zip(values)
                .map(|(at, value)| (at, word(value.clone()))),
        );
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, word)| word).collect()
}

impl FromArgMatches for Programs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut programs = grouped(words(matches))
            .map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, format!("{why}\n")))?;
        programs.handlers_named = matches!(
            matches.value_source("handlers"),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        );
        Ok(programs)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Programs {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new(KIND)
                    .long(KIND)
                    .value_name("KIND")
                    .action(ArgAction::Append)
                    .value_delimiter(',')
                    .value_parser(ValueParser::string())
                    .help("Only these of --handlers; with --exec behind it, the kind that the program executes"),
            )
            .arg(
                Arg::new(PROTOCOL)
                    .long(PROTOCOL)
                    .value_name("RANGE")
                    .action(ArgAction::Append)
                    .value_parser(ValueParser::string())
                    .help("For the next --exec: the protocols of data that the program reads; the highest is the one it writes [default: 1]"),
            )
            .arg(
                Arg::new(EXEC)
                    .long(EXEC)
                    .value_name("PROGRAM")
                    .action(ArgAction::Append)
                    .value_parser(ValueParser::string())
                    .help("Executes the --kind before it by a program that speaks the exec protocol, a child per attempt; repeatable with its kind"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Programs, String> {
        let handlers = Arg::new("handlers").long("handlers").default_value("a,b");
        let command = Programs::augment_args(Command::new("worker").arg(handlers));
        let matches = command
            .no_binary_name(true)
            .try_get_matches_from(line.split(' '));
        Programs::from_arg_matches(&matches.unwrap()).map_err(|error| error.to_string())
    }

    fn one(kinds: &[&str], protocol: &str, program: &str) -> One {
        One {
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            protocol: protocol.parse().unwrap(),
            program: program.to_owned(),
        }
    }

    #[test]
    fn each_program_gets_the_kinds_and_the_protocol_before_it() {
        let programs = parse(
            "--kind resize --protocol 1..2 --exec ./resize.py --kind a,b --exec ./ab --kind own",
        )
        .unwrap();
        assert_eq!(
            programs.all,
            [
                one(&["resize"], "1..2", "./resize.py"),
                one(&["a", "b"], "1", "./ab")
            ]
        );
        assert_eq!(programs.own_kinds, ["own"]);
        assert!(programs.leave_room_for_own());
        assert!(!parse("--kind a --exec x").unwrap().leave_room_for_own());
        assert!(
            parse("--kind a --exec x --handlers a")
                .unwrap()
                .leave_room_for_own()
        );
    }

    #[test]
    fn what_belongs_to_nothing_is_refused() {
        for (line, wanted) in [
            ("--exec ./x --kind a", "no --kind before it"),
            ("--kind a --protocol 1..2", "no --exec behind it"),
            (
                "--kind a --protocol 1 --protocol 2 --exec x",
                "another --protocol",
            ),
            ("--kind a --protocol two --exec x", "LOW..HIGH"),
            ("--kind a --protocol 2..1 --exec x", "is empty"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(wanted), "{line}: {error}");
        }
    }
}
