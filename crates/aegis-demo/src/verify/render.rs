//! A verdict as a table for people and as one line for machines. Both from the same counts.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde_json::{Map, Value};

use super::{Judgement, Verdict};

/// How many breaches are printed beneath the table; all of them are in the JSON.
const MAX_SENTENCES: usize = 20;

/// The verdict as one JSON object; `more` is put beside the counts (`seconds`, `seed`).
///
/// # Errors
/// Never for the values that a verdict holds.
pub fn json(verdict: &Verdict, more: &[(&str, Value)]) -> Result<Value, serde_json::Error> {
    let mut object = match serde_json::to_value(verdict)? {
        Value::Object(object) => object,
        other => Map::from_iter([("verdict".to_owned(), other)]),
    };
    object.extend(
        more.iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone())),
    );
    Ok(Value::Object(object))
}

/// The verdict as a table, the broken promises in sentences, and one closing line.
pub fn table(verdict: &Verdict) -> String {
    let c = &verdict.counts;
    let zero = |count: u64| match (count, verdict.doubts.is_empty()) {
        (0, true) => "must be 0: kept",
        // Nothing found in evidence that is not whole is not "kept".
        (0, false) => "must be 0: not proven",
        _ => "must be 0: BROKEN",
    };
    let rows: [(&str, u64, &str); 19] = [
        ("orders submitted", c.submitted, ""),
        ("tasks succeeded", c.succeeded, ""),
        (
            "bad orders failed in validation",
            c.failed_as_expected,
            "as they should",
        ),
        (
            "takeovers from lost workers",
            c.takeovers,
            "killed or frozen",
        ),
        ("handed back in a drain", c.handed_back, "SIGTERM"),
        (
            "stale writes refused",
            c.stale_writes_refused,
            "by the database",
        ),
        (
            "stale fencing tokens refused",
            c.stale_tokens_refused,
            "by the payment service",
        ),
        ("stale accepted", c.stale_accepted, zero(c.stale_accepted)),
        (
            "receipts written",
            c.receipts,
            "in the transaction of the completion",
        ),
        (
            "effects applied",
            c.effects_applied,
            "in the payment service's record",
        ),
        ("effects lost", c.effects_lost, zero(c.effects_lost)),
        (
            "effects duplicated",
            c.effects_duplicated,
            zero(c.effects_duplicated),
        ),
        (
            "effects of nobody",
            c.effects_phantom,
            zero(c.effects_phantom),
        ),
        ("unknown results opened", c.unknown_opened, ""),
        (
            "unknown results resolved",
            c.unknown_resolved,
            "by a person, with evidence",
        ),
        ("unknown results left", c.unknown_left, zero(c.unknown_left)),
        ("tasks lost", c.tasks_lost, zero(c.tasks_lost)),
        (
            "tasks unfinished",
            c.tasks_unfinished,
            zero(c.tasks_unfinished),
        ),
        (
            "tasks that waited for their protocol",
            c.waited_for_protocol,
            "visibly, nobody could read them",
        ),
    ];
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["what", "count", ""]);
    for (what, count, note) in rows {
        table.add_row([what.to_owned(), count.to_string(), note.to_owned()]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut parts = vec![table.to_string()];
    parts.extend(
        verdict
            .breaches
            .iter()
            .take(MAX_SENTENCES)
            .map(|breach| format!("broken: {}", breach.sentence)),
    );
    if verdict.breaches.len() > MAX_SENTENCES {
        parts.push(format!(
            "… and {} more; --json has all",
            verdict.breaches.len() - MAX_SENTENCES
        ));
    }
    parts.extend(
        verdict
            .doubts
            .iter()
            .take(MAX_SENTENCES)
            .map(|doubt| format!("in doubt: {doubt}")),
    );
    parts.push(
        match verdict.verdict {
            Judgement::Pass => "pass: every promise was kept",
            Judgement::Fail => "fail: a promise was broken",
            Judgement::Inconclusive => {
                "inconclusive: the evidence is not whole, so this is no pass"
            }
        }
        .to_owned(),
    );
    parts.join("\n")
}
