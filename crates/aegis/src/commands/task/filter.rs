//! Which tasks a command means: the filter options that `list` and every change share.

use std::collections::BTreeMap;

use aegis_model::State;
use aegis_model::limits::DURATION_MS_MAX;
use aegis_model::state::STATES;
use aegis_store::view::TaskFilter;
use clap::Args;
use jiff::{Span, SpanRelativeTo};

/// What `--state` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Of(State),
    Parked,
    Discarded,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which tasks")]
pub(super) struct FilterArguments {
    /// In one of these states; `parked` and `discarded` part the failed and quarantined ones.
    #[arg(long, value_delimiter = ',', value_parser = standing, value_name = "STATE,…")]
    state: Vec<Standing>,
    /// Of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// With this label; repeatable: with all of them.
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Submitted so long ago or earlier, such as 90s, 2h or 7d.
    #[arg(long, value_name = "AGE", value_parser = duration_ms)]
    older_than: Option<i64>,
    /// Submitted within so long.
    #[arg(long, value_name = "AGE", value_parser = duration_ms)]
    newer_than: Option<i64>,
}

impl FilterArguments {
    /// As the store takes it.
    pub(super) fn filter(&self) -> TaskFilter {
        TaskFilter {
            states: self
                .state
                .iter()
                .filter_map(|standing| match standing {
                    Standing::Of(state) => Some(*state),
                    _ => None,
                })
                .collect(),
            parked: self.state.contains(&Standing::Parked),
            discarded: self.state.contains(&Standing::Discarded),
            queue: self.queue.clone(),
            kind: self.kind.clone(),
            tenant: self.tenant.clone(),
            labels: self.label.iter().cloned().collect::<BTreeMap<_, _>>(),
            older_than_ms: self.older_than,
            newer_than_ms: self.newer_than,
            before: None,
            limit: 0,
        }
    }
}

fn standing(word: &str) -> Result<Standing, String> {
    match word {
        "parked" => return Ok(Standing::Parked),
        "discarded" => return Ok(Standing::Discarded),
        _ => {}
    }
    State::from_word(word).map(Standing::Of).ok_or_else(|| {
        let words: Vec<&str> = STATES.into_iter().map(State::word).collect();
        format!(
            "`{word}` is no state; use one of {}, parked, discarded",
            words.join(", ")
        )
    })
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it is not NAME=VALUE".to_owned()),
    }
}

/// `90`, `1.5` (seconds), `90s`, `2h 30m`, `7d`: in milliseconds.
pub(super) fn duration_ms(text: &str) -> Result<i64, String> {
    let ms = match text.trim().parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => seconds * 1000.0,
        Ok(_) => return Err("it is not finite".to_owned()),
        Err(_) => {
            text.parse::<Span>()
                .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()))
                .map_err(|error| format!("it is no duration such as 90s, 2h or 7d: {error}"))?
                .as_secs_f64()
                * 1000.0
        }
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "a bound of ten years in milliseconds"
    )]
    let max = DURATION_MS_MAX as f64;
    if !(0.0..=max).contains(&ms) {
        return Err("it is not between 0 and ten years".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, reason = "within the bound above")]
    Ok(ms.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The corpus of the words that filters take.
    const WORDS: [&str; 9] = [
        "90", "0.25", "2h 30m", "7d", "P1DT2H", "-1", "1e300", "team=a=b", "failed",
    ];

    #[test]
    fn any_word_is_a_length_or_refused() {
        crate::changed_tests::each(&WORDS, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            match duration_ms(&text) {
                Ok(ms) => assert!((0..=DURATION_MS_MAX).contains(&ms), "{text:?}: {ms}"),
                Err(error) => assert!(!error.is_empty()),
            }
            if let Ok((name, value)) = label(&text) {
                assert_eq!(format!("{name}={value}"), text);
            }
            if let Err(why) = standing(&text) {
                assert!(!why.is_empty(), "{text:?}");
            }
        });
    }

    #[test]
    fn durations_are_seconds_or_have_units() {
        for (text, ms) in [
            ("90", 90_000),
            ("0.25", 250),
            ("90s", 90_000),
            ("2h 30m", 9_000_000),
            ("7d", 604_800_000),
            ("1w", 604_800_000),
            ("15ms", 15),
        ] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        for text in ["", "x", "-1", "-5s", "inf", "100000d", "1 month"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_label_has_a_name_and_perhaps_an_empty_value() {
        assert_eq!(label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(label("a="), Ok(("a".to_owned(), String::new())));
        assert!(label("a").is_err() && label("=b").is_err());
    }
}
