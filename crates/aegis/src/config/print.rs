//! `--print-config`: every setting, its value, its unit, and where it came from.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use super::file::File;
use super::secret;
use super::settings::{self, Setting};
use crate::output::{Output, note};

/// Prints those of all commands and those of the command that was named.
pub(super) fn print(command: &Command, matches: &ArgMatches, file: Option<&File>, output: Output) {
    let (place, leaf) = named(matches);
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for setting in settings::all(command)
        .iter()
        .filter(|setting| setting.place.is_empty() || setting.place == place)
    {
        let values = values(setting, leaf);
        let source = source(setting, leaf, file);
        rows.push(vec![
            setting.name(),
            values.join(","),
            setting.unit().to_owned(),
            source.clone(),
        ]);
        documents.push(json!({
            "name": setting.name(), "value": document(&values, setting), "unit": setting.unit(), "from": source,
            "flag": format!("--{}", setting.key.replace('_', "-")), "environment": setting.environment,
        }));
    }
    match file {
        Some(file) => note(&format!(
            "configuration file: {} (named by {})",
            file.path.display(),
            file.by
        )),
        None => note("configuration file: none"),
    }
    output.list(&["setting", "value", "unit", "from"], rows, documents);
}

/// The command that was named, and what was given to it.
fn named(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut place, mut at) = (Vec::new(), matches);
    while let Some((name, below)) = at.subcommand() {
        place.push(name);
        at = below;
    }
    (place, at)
}

fn values(setting: &Setting, matches: &ArgMatches) -> Vec<String> {
    let raw = matches
        .try_get_raw(setting.argument.get_id().as_str())
        .ok()
        .flatten();
    raw.into_iter()
        .flatten()
        .map(|value| secret::shown(&setting.key, &value.to_string_lossy()))
        .collect()
}

fn source(setting: &Setting, matches: &ArgMatches, file: Option<&File>) -> String {
    match matches.value_source(setting.argument.get_id().as_str()) {
        Some(ValueSource::CommandLine) => format!("flag --{}", setting.key.replace('_', "-")),
        Some(ValueSource::EnvVariable) => format!("environment {}", setting.environment),
        _ => match file.and_then(|file| file.place(&setting.name())) {
            Some(place) => format!("file {place}"),
            None => "default".to_owned(),
        },
    }
}

/// Numbers and switches as such.
fn document(values: &[String], setting: &Setting) -> Value {
    let one = |text: &String| match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_number() || value.is_boolean() => value,
        _ => Value::String(text.clone()),
    };
    match values {
        [] => Value::Null,
        [value] if !matches!(setting.argument.get_action(), clap::ArgAction::Append) => one(value),
        several => Value::Array(several.iter().map(one).collect()),
    }
}
