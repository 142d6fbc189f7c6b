//! One time line of a task's life, as a person on call reads it.

use aegis_store::life::{Life, Moment};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

pub(super) const COLUMNS: &[&str] = &["when", "since submit", "epoch", "what", "who", "told"];

/// A row for people.
pub(super) fn row(life: &Life, moment: &Moment) -> Vec<String> {
    vec![
        clock(moment.at, life.task.submitted_at),
        since(moment.at.duration_since(life.task.submitted_at)),
        moment
            .epoch
            .map(|epoch| epoch.to_string())
            .unwrap_or_default(),
        moment.what.clone(),
        moment
            .actor
            .clone()
            .or_else(|| moment.worker.map(|id| worker(life, id)))
            .unwrap_or_default(),
        moment.text.clone(),
    ]
}

/// The object of a moment.
pub(super) fn document(moment: &Moment) -> Value {
    json!({
        "at": moment.at.to_string(), "epoch": moment.epoch, "what": moment.what, "worker": moment.worker,
        "actor": moment.actor, "text": moment.text, "detail": moment.detail,
    })
}

/// The name of a worker, and as much of its id as tells incarnations of that name apart.
pub(super) fn worker(life: &Life, id: Uuid) -> String {
    let short: String = id.to_string().chars().take(13).collect();
    match life.workers.get(&id) {
        Some(worker) => format!("{} ({short})", worker.name),
        None => format!("({short})"),
    }
}

/// The day only when it is another than that of the submit.
fn clock(at: Timestamp, submitted: Timestamp) -> String {
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    let form = if day(at) == day(submitted) {
        "%H:%M:%S%.3fZ"
    } else {
        "%Y-%m-%d %H:%M:%S%.3fZ"
    };
    at.strftime(form).to_string()
}

/// `+3.250s`, `+2m 05s`, `+3h 07m`, `+2d 04h`.
pub(super) fn since(duration: SignedDuration) -> String {
    format!("+{}", long(duration))
}

/// A duration with two units at most.
pub(super) fn long(duration: SignedDuration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or_default();
    let s = ms / 1000;
    match s {
        0..=59 => format!("{s}.{:03}s", ms % 1000),
        60..=3599 => format!("{}m {:02}s", s / 60, s % 60),
        3600..=86_399 => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d {:02}h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (ms, text) in [
            (0, "+0.000s"),
            (-5, "+0.000s"),
            (59_999, "+59.999s"),
            (125_000, "+2m 05s"),
            (11_220_000, "+3h 07m"),
            (187_200_000, "+2d 04h"),
        ] {
            assert_eq!(since(SignedDuration::from_millis(ms)), text);
        }
    }
}
