//! Short texts: words of a command line, headers, the address of a database.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use aegis_demo::payments::FencingToken;
use aegis_migrate::change::{ChangeId, Length, Phase, PhaseOf};
use aegis_migrate::foreign::{Tool, Version};
use aegis_model::{ProtocolRange, TraceContext};
use aegis_store::Config;

use crate::holds::{same, says, text};

/// The address of a database: its place, or an error; neither shows the password.
pub(super) fn config_url(bytes: &[u8]) {
    const SECRET: &str = "hunter2hunter2";
    let Some(text) = text(bytes) else { return };
    if let Err(error) = Config::from_url(text) {
        says(&error, bytes);
    }
    // The same words as a password, with a word in it that must not be seen.
    let url = format!("postgresql://aegis:{text}{SECRET}@db.example:5432/app?sslmode=disable");
    match Config::from_url(&url) {
        Ok(config) => assert!(
            !config.place().contains(SECRET),
            "the place shows the password"
        ),
        Err(error) => assert!(!error.to_string().contains(SECRET), "{error}"),
    }
}

/// What a downstream compares before it acts: the order is that of its three numbers.
pub(super) fn fencing_token(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    round::<FencingToken>(text);
}

/// Ids, phases, lengths of time, versions, ranges, traces: all from the same text.
pub(super) fn words(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    round::<ChangeId>(text);
    round::<Phase>(text);
    round::<PhaseOf>(text);
    round::<Length>(text);
    round::<TraceContext>(text);
    if let Err(error) = text.parse::<Tool>() {
        says(&error, bytes);
    }
    if let Ok(range) = text.parse::<ProtocolRange>() {
        assert!(
            1 <= range.min() && range.min() <= range.max() && range.writes() == range.max(),
            "{text}"
        );
    }
    if let Some(version) = Version::parse(text) {
        same(
            &Some(&version),
            &Version::parse(&version.to_string()).as_ref(),
        );
    }
}

fn round<T>(text: &str)
where
    T: FromStr<Err: Display> + Display + Debug + PartialEq,
{
    match text.parse::<T>() {
        Ok(read) => same(&Some(&read), &read.to_string().parse::<T>().ok().as_ref()),
        Err(error) => says(&error, text.as_bytes()),
    }
}
