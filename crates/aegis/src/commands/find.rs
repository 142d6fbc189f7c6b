//! Finds what a person means by an id or the beginning of one.

use std::io::BufRead;
use std::time::Duration;

use aegis_model::ErrorCode;
use aegis_store::Store;
use aegis_store::survey::{Named, OperationId, WorkerId};
use aegis_store::view::Found;
use uuid::Uuid;

use crate::exit::Exit;
use crate::failure::Failure;

/// Ids read from standard input at once: they stand in memory, since nothing is changed before all of them are known.
const IDS_MAX: usize = 1_000_000;

/// The task whose id starts like this.
pub(crate) async fn task(store: &Store, prefix: &str) -> Result<Uuid, Failure> {
    match store.find_task(prefix).await? {
        Found::One(id) => Ok(id),
        Found::None => Err(Failure::new(
            Exit::NotFound,
            format!("no task's id starts with `{prefix}`; see `aegis task list`"),
        )
        .with_code(ErrorCode::NOT_FOUND)),
        Found::Several => Err(Failure::new(
            Exit::Refused,
            format!("more than one task's id starts with `{prefix}`; give more digits"),
        )
        .with_code(ErrorCode::NOT_FOUND)),
    }
}

/// The operation that a person means: `TASK/NAME/KEY/vN`, or the beginning of it.
pub(crate) async fn operation(store: &Store, wanted: &str) -> Result<OperationId, Failure> {
    match store.find_operation(wanted).await? {
        Named::One(found) => Ok(found),
        Named::None => Err(Failure::new(
            Exit::NotFound,
            format!("there is no operation `{wanted}`; copy TASK/NAME/KEY/vN, or the beginning of it, from `aegis operation list`"),
        )
        .with_code(ErrorCode::NOT_FOUND)),
        Named::Several(found) => {
            let ids: Vec<String> = found.into_iter().map(|operation| operation.id).collect();
            Err(several("operation", wanted, &ids))
        }
    }
}

/// The worker that a person means: its name, its id, or the beginning of it; `all`: also one that has ended.
pub(crate) async fn worker(store: &Store, wanted: &str, all: bool) -> Result<WorkerId, Failure> {
    match store.find_worker(wanted, all).await? {
        Named::One(found) => Ok(found),
        Named::None => Err(no_worker(wanted)),
        Named::Several(found) => {
            let ids: Vec<String> = found
                .into_iter()
                .map(|worker| worker.id.to_string())
                .collect();
            Err(several("worker", wanted, &ids))
        }
    }
}

/// No worker is meant by that.
pub(crate) fn no_worker(wanted: &str) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!("no worker is called `{wanted}`, by its name or the first four or more characters of its id; see `aegis worker list --all`"),
    )
    .with_code(ErrorCode::NOT_FOUND)
}

fn several(thing: &str, wanted: &str, ids: &[String]) -> Failure {
    Failure::new(
        Exit::Refused,
        format!(
            "`{wanted}` stands for more than one {thing}; give one of {}, or more of it",
            ids.join(", ")
        ),
    )
}

/// A length of time, as a person writes it: seconds (`90`, `0.5`), or with units (`15m`, `2h 30m`, `7d`).
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = match text.trim().parse::<f64>() {
        Ok(value) => value,
        Err(_) => with_units(text.trim()).ok_or_else(|| {
            format!("`{text}` is no length of time; write seconds, such as 90 or 0.5, or 15m, 2h 30m, 7d")
        })?,
    };
    if (0.0..=3.2e8).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("{text} is not between 0 and 320000000 seconds"))
    }
}

fn with_units(text: &str) -> Option<f64> {
    let span: jiff::Span = text.parse().ok()?;
    // A day is 24 hours here; months and years have no length without a calendar.
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    span.total((jiff::Unit::Second, days)).ok()
}

/// Ids as given; `-` stands for those on standard input, one a line, empty lines left out.
pub(crate) fn ids(given: &[String]) -> Result<Vec<String>, Failure> {
    if !given.iter().any(|id| id == "-") {
        return Ok(given.to_vec());
    }
    if given.len() > 1 {
        return Err(Failure::new(
            Exit::Usage,
            "`-` stands for the ids on standard input; leave the others out",
        ));
    }
    from_lines(std::io::stdin().lock())
}

fn from_lines(input: impl BufRead) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for line in input.lines() {
        let line = line.map_err(|error| {
            Failure::new(
                Exit::Refused,
                format!("standard input cannot be read: {error}"),
            )
        })?;
        if line.trim().is_empty() {
            continue;
        }
        if ids.len() == IDS_MAX {
            return Err(Failure::new(
                Exit::Refused,
                format!(
                    "standard input has more than {IDS_MAX} ids; nothing was done: name them by a filter, or in parts"
                ),
            ));
        }
        ids.push(line.trim().to_owned());
    }
    Ok(ids)
}

/// Who acts where nobody said a name and the shell has none.
pub(crate) const UNNAMED: &str = "unnamed";

/// Who acts: `--actor`, else the user of the shell, else [`UNNAMED`].
pub(crate) fn actor(given: Option<String>) -> String {
    given
        .or_else(|| {
            std::env::var("USER")
                .ok()
                .filter(|user| !user.trim().is_empty())
        })
        .unwrap_or_else(|| UNNAMED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The corpus of lengths of time.
    const LENGTHS: [&str; 7] = ["90", "0.5", "15m", "2h 30m", "7d", "1mo", "inf"];

    #[test]
    fn any_word_is_a_number_of_seconds_or_refused() {
        crate::changed_tests::each(&LENGTHS, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            match seconds(&text) {
                Ok(length) => assert!(length.as_secs_f64() <= 3.2e8, "{text:?}: {length:?}"),
                Err(error) => assert!(!error.is_empty()),
            }
        });
    }

    #[test]
    fn too_many_ids_are_refused_and_not_cut() {
        let all = "a\n\n".repeat(IDS_MAX);
        assert_eq!(from_lines(all.as_bytes()).unwrap().len(), IDS_MAX);
        let refused = from_lines(format!("{all}b\n").as_bytes()).unwrap_err();
        assert!(
            refused.to_string().contains("more than 1000000"),
            "{refused}"
        );
    }

    #[test]
    fn a_length_of_time_is_in_seconds_or_has_units() {
        let cases = [
            ("90", 90.0),
            ("0.5", 0.5),
            ("15m", 900.0),
            ("2h 30m", 9000.0),
            ("7d", 604_800.0),
            ("1500ms", 1.5),
        ];
        for (text, wanted) in cases {
            assert!(
                (seconds(text).unwrap().as_secs_f64() - wanted).abs() < 1e-9,
                "{text}"
            );
        }
        for text in [
            "", "-1", "-2h", "soon", "inf", "NaN", "1e9", "1 month", "1y",
        ] {
            assert!(seconds(text).is_err(), "{text}: {:?}", seconds(text));
        }
    }
}
