//! The file: TOML, a table for each command that has settings.
//!
//! Invariants: every key is a setting and every value fits it, or nothing is done; a message names the file, the line and the
//! key, and never a line's text, since a password may stand there.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};
use toml::de::{DeTable, DeValue};

use super::locate::Found;
use super::secret::is_secret;
use super::settings::{self, Setting};
use crate::exit::Exit;
use crate::failure::Failure;

/// Larger than any configuration.
const BYTES_MAX: u64 = 1024 * 1024;

/// What stands in the file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Who says that it is this one.
    pub(super) by: &'static str,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    values: Vec<String>,
    line: usize,
}

impl File {
    /// What it says about a setting.
    pub(super) fn values(&self, name: &str) -> Option<&[String]> {
        self.entries.get(name).map(|entry| entry.values.as_slice())
    }

    /// `PATH:LINE` of a setting.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        let entry = self.entries.get(name)?;
        Some(format!("{}:{}", self.path.display(), entry.line))
    }
}

/// Reads and checks it.
pub(super) fn read(found: Found, command: &Command) -> Result<File, Failure> {
    let text = text(&found)?;
    let reader = Reader {
        found: &found,
        text: &text,
        settings: settings::all(command),
    };
    let document = DeTable::parse(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        reader.refuse(at, &format!("this is no TOML: {}", error.message()))
    })?;
    let mut entries = BTreeMap::new();
    reader.table(&[], document.get_ref(), &mut entries)?;
    Ok(File {
        path: found.path,
        by: found.by,
        entries,
    })
}

fn text(found: &Found) -> Result<String, Failure> {
    let refuse = |why: String| {
        Failure::new(
            Exit::Usage,
            format!(
                "the configuration {} ({}) cannot be read: {why}",
                found.path.display(),
                found.by
            ),
        )
    };
    let file = std::fs::File::open(&found.path).map_err(|error| refuse(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| refuse(error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(refuse(format!("it is larger than {BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8".to_owned()))
}

struct Reader<'a> {
    found: &'a Found,
    text: &'a str,
    settings: Vec<Setting>,
}

impl Reader<'_> {
    fn table(
        &self,
        place: &[&str],
        table: &DeTable<'_>,
        entries: &mut BTreeMap<String, Entry>,
    ) -> Result<(), Failure> {
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let mut whole = place.to_vec();
            whole.push(name);
            match value.get_ref() {
                DeValue::Table(below) if self.has_place(&whole) => {
                    self.table(&whole, below, entries)?;
                }
                value => {
                    let setting = self
                        .settings
                        .iter()
                        .find(|setting| setting.place == place && setting.key == name);
                    if setting.is_none() && self.has_place(&whole) {
                        let table = whole.join(".");
                        let why = format!(
                            "`{table}` is a table; write [{table}], and its settings below"
                        );
                        return Err(self.refuse(at, &why));
                    }
                    let setting =
                        setting.ok_or_else(|| self.refuse(at, &self.unknown(place, name)))?;
                    if let DeValue::Array(many) = value {
                        fits_many(setting, many.len()).map_err(|why| {
                            self.refuse(at, &format!("`{}`: {why}", setting.name()))
                        })?;
                    }
                    let values = texts(value).ok_or_else(|| {
                        self.refuse(
                            at,
                            &format!("`{}` is a table; it wants one value", setting.name()),
                        )
                    })?;
                    let values = check(setting, values)
                        .map_err(|why| self.refuse(at, &format!("`{}`: {why}", setting.name())))?;
                    entries.insert(
                        setting.name(),
                        Entry {
                            values,
                            line: self.line(at),
                        },
                    );
                }
            }
        }
        Ok(())
    }

    fn has_place(&self, place: &[&str]) -> bool {
        self.settings
            .iter()
            .any(|setting| setting.place.starts_with(place))
    }

    /// Says what was perhaps meant.
    fn unknown(&self, place: &[&str], name: &str) -> String {
        let whole = [place, &[name]].concat().join(".");
        let mut elsewhere = self.settings.iter().filter(|setting| setting.key == name);
        if let Some(setting) = elsewhere.next() {
            let table = setting.place.join(".");
            let place = if table.is_empty() {
                "at the top of the file".to_owned()
            } else {
                format!("below [{table}]")
            };
            return format!("`{whole}` is no setting; `{name}` stands {place}");
        }
        match self.nearest(place, name) {
            Some(near) => format!("`{whole}` is no setting; did you mean `{near}`?"),
            None => format!(
                "`{whole}` is no setting; `aegis {}` shows those that there are",
                [place, &["--print-config"]].concat().join(" ")
            ),
        }
    }

    /// The setting or table of this place that is written most alike.
    fn nearest(&self, place: &[&str], name: &str) -> Option<String> {
        let here = self
            .settings
            .iter()
            .filter(|setting| setting.place == place)
            .map(|setting| setting.key.as_str());
        let tables = self
            .settings
            .iter()
            .filter(|setting| setting.place.starts_with(place))
            .filter_map(|setting| setting.place.get(place.len()).copied());
        here.chain(tables)
            .map(|known| (strsim::jaro_winkler(known, name), known))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known.to_owned())
    }

    fn line(&self, at: usize) -> usize {
        self.text
            .bytes()
            .take(at)
            .filter(|byte| *byte == b'\n')
            .count()
            + 1
    }

    fn refuse(&self, at: usize, why: &str) -> Failure {
        Failure::new(
            Exit::Usage,
            format!(
                "{} line {} ({}): {why}",
                self.found.path.display(),
                self.line(at),
                self.found.by
            ),
        )
    }
}

/// A list is for settings that have several values, and says at least one: an empty one would be no answer at all.
fn fits_many(setting: &Setting, count: usize) -> Result<(), String> {
    if !matches!(setting.argument.get_action(), ArgAction::Append) {
        return Err("it has one value, not a list".to_owned());
    }
    if count == 0 {
        return Err("the list is empty; leave the setting out for its default".to_owned());
    }
    Ok(())
}

/// As the flag would be written.
fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    Some(match value {
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Integer(number) => vec![number.to_string()],
        DeValue::Float(number) => vec![number.to_string()],
        DeValue::Boolean(switch) => vec![switch.to_string()],
        DeValue::Datetime(time) => vec![time.to_string()],
        DeValue::Array(many) => {
            let many: Option<Vec<_>> = many.iter().map(|value| texts(value.get_ref())).collect();
            many?.concat()
        }
        DeValue::Table(_) => return None,
    })
}

/// Asks the flag's own parser.
fn check(setting: &Setting, values: Vec<String>) -> Result<Vec<String>, String> {
    if setting.is_switch() {
        return match values.as_slice() {
            [one] if one == "true" || one == "false" => Ok(values),
            _ => Err("it is a switch; write true or false".to_owned()),
        };
    }
    let given = &setting.argument;
    let long = setting.key.replace('_', "-");
    let mut argument = Arg::new("value")
        .long(long.clone())
        .action(given.get_action().clone())
        .value_parser(given.get_value_parser().clone())
        .allow_hyphen_values(true);
    if let Some(delimiter) = given.get_value_delimiter() {
        argument = argument.value_delimiter(delimiter);
    }
    let words = values.iter().map(|value| format!("--{long}={value}"));
    let parsed = Command::new("aegis")
        .no_binary_name(true)
        .disable_help_flag(true)
        .arg(argument)
        .try_get_matches_from(words);
    match parsed {
        Ok(_) => Ok(values),
        Err(_) if is_secret(&setting.key) => Err("the value does not fit".to_owned()),
        Err(error) => {
            let text = error.to_string();
            let first = text
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            Err(first.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory as _;

    const SECRET: &str = "hunter2hunter2";

    /// The corpus of files.
    const FILES: [&str; 4] = [
        "",
        "database_url = \"postgresql://a:hunter2hunter2@h/d\"\n[worker]\nslots = 4\ngrace_period_s = \"90s\"\n",
        "[task.submit]\nqueue = \"q\"\npriority = 3\n[worker]\nslots = [1, 2]\nnothing = true\n",
        "\u{feff}[worker.run]\r\nslots = 99999999999999999999\n\n[[worker]]\na = {b = 1979-05-27}\n",
    ];

    fn given(folder: &Path, command: &Command, bytes: &[u8]) -> Result<File, Failure> {
        let path = crate::changed_tests::file(folder, bytes);
        read(
            Found {
                path,
                by: "--config",
            },
            command,
        )
    }

    #[test]
    fn any_file_is_read_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let command = Arguments::command();
        crate::changed_tests::each(&FILES, |bytes| {
            if let Err(failure) = given(folder.path(), &command, bytes) {
                assert!(!failure.to_string().trim().is_empty());
            }
        });
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_shows_no_password() {
        let folder = tempfile::tempdir().unwrap();
        let command = Arguments::command();
        let text = FILES[1];
        let mut refused = 0;
        for end in 0..text.len() {
            if let Err(failure) = given(folder.path(), &command, &text.as_bytes()[..end]) {
                refused += 1;
                assert!(!failure.to_string().contains(&SECRET[..7]), "{failure}");
            }
        }
        assert!(refused > 20, "{refused} were refused");
    }
}
