//! Where Aegis stands: what it is behind in, and who refuses what it refuses.

use std::fmt::Write as _;

use super::super::late::{Case, Verdict};
use super::super::results::{Engine, Results};
use super::figures::{COMPARED, Figure, median, number};
use super::forced;

/// The sentences.
pub(super) fn write(out: &mut String, results: &Results) {
    let Some(aegis) = results.engines.iter().find(|engine| engine.name == "aegis") else {
        return;
    };
    let others: Vec<&Engine> = results
        .engines
        .iter()
        .filter(|engine| engine.name != "aegis")
        .collect();
    if others.is_empty() {
        return;
    }
    out.push_str("What Aegis is behind in, by medians:\n\n");
    for figure in COMPARED {
        let Some(own) = median(&figure.of(aegis)) else {
            continue;
        };
        let ahead = ahead(figure, own, &others);
        let line = if ahead.is_empty() {
            "behind nobody".to_owned()
        } else {
            format!("behind {}", ahead.join(", "))
        };
        writeln!(
            out,
            "- {} ({}): {line}",
            figure.words(),
            number(own, figure.digits())
        )
        .ok();
    }
    out.push('\n');
    fence(out, aegis, &others);
}

/// Who is ahead, with its median. A takeover by an operator's call is no takeover of the engine's.
fn ahead(figure: Figure, own: f64, others: &[&Engine]) -> Vec<String> {
    let mut ahead: Vec<(f64, &str)> = others
        .iter()
        .filter(|engine| figure != Figure::Takeover || !forced(engine))
        .filter_map(|engine| Some((median(&figure.of(engine))?, engine.name.as_str())))
        .filter(|(theirs, _)| figure.ahead(*theirs, own))
        .collect();
    ahead.sort_by(|one, other| {
        if figure.ahead(one.0, other.0) {
            std::cmp::Ordering::Less
        } else {
            std::cmp::Ordering::Greater
        }
    });
    ahead
        .into_iter()
        .map(|(theirs, name)| format!("{name} ({})", number(theirs, figure.digits())))
        .collect()
}

/// The engines whose rows no late completion changed.
fn fence(out: &mut String, aegis: &Engine, others: &[&Engine]) {
    let refusing: Vec<&Engine> = others
        .iter()
        .copied()
        .filter(|engine| refuses(engine))
        .collect();
    if aegis.late.is_empty() || refusing.is_empty() {
        return;
    }
    let names: Vec<&str> = refusing.iter().map(|engine| engine.name.as_str()).collect();
    let Some(own) = median(&Figure::Jobs.of(aegis)).filter(|_| refuses(aegis)) else {
        return;
    };
    let mut behind = ahead(Figure::Jobs, own, &refusing);
    if let Some(own) = median(&Figure::JobsRoomy.of(aegis)) {
        let roomy = ahead(Figure::JobsRoomy, own, &refusing);
        behind.extend(
            roomy
                .into_iter()
                .map(|name| format!("{name} at the concurrency that suits it")),
        );
    }
    let standing = if behind.is_empty() {
        "ahead of them all in jobs a second, at the common concurrency and at the one that suits each".to_owned()
    } else {
        format!("in jobs a second behind {}", behind.join(", "))
    };
    writeln!(out, "Beside Aegis, a completion of a lost claim is refused by {}. Of these, Aegis is {standing}.\n", names.join(", ")).ok();
}

/// Whether no late completion changed anything, where it could have.
pub(super) fn refuses(engine: &Engine) -> bool {
    let running = engine.late.iter().find(|late| late.case == Case::Running);
    running.is_some_and(|late| late.verdict() == Verdict::Refused)
        && engine
            .late
            .iter()
            .all(|late| late.verdict() != Verdict::Accepted)
}
