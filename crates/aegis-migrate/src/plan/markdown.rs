//! A plan for a pull request: one table a phase.
//!
//! Never: a text of a file that ends a cell or begins a link.

use std::fmt::Write as _;

use super::{Item, Locked, What};

/// The plan as GitHub's and GitLab's Markdown.
pub fn markdown(items: &[Item], has_catalog: bool) -> String {
    let mut text = String::new();
    let mut of = None;
    for item in items {
        if of != Some(&item.phase_of) {
            // Into a string: cannot fail, here and below.
            write!(
                text,
                "### {}\n\n| where | class | what | locks | why |\n| --- | --- | --- | --- | --- |\n",
                item.phase_of
            )
            .ok();
            of = Some(&item.phase_of);
        }
        let [place, class, what, why] = words(&item.what);
        writeln!(
            text,
            "| {} | {class} | {} | {} | {} |",
            cell(&place),
            code(&what),
            cell(&locks(&item.locks)),
            cell(&why)
        )
        .ok();
    }
    if items.is_empty() {
        text.push_str("Nothing to do.\n");
    } else if !has_catalog {
        text.push_str(
            "\nWithout a catalog: sizes are unknown, and each class is the worst it can be.\n",
        );
    }
    text
}

/// Where, class, what, why.
pub fn words(what: &What) -> [String; 4] {
    match what {
        What::Statement {
            file,
            line,
            statement,
            class,
            passes,
            why,
        } => [
            format!("{file}:{line}"),
            format!("{class}{}", if *passes { "" } else { " (refused here)" }),
            statement.clone(),
            why.join("; "),
        ],
        What::Sync { table } => [
            String::new(),
            "A".to_owned(),
            format!("the trigger on {table} that keeps both sides alike"),
            String::new(),
        ],
        What::EndSync { table } => [
            String::new(),
            "D".to_owned(),
            format!("the end of the trigger on {table} that keeps both sides alike"),
            String::new(),
        ],
        What::Backfill {
            table,
            key_fault: Some(fault),
            ..
        } => [
            String::new(),
            "E".to_owned(),
            format!("the backfill of {table}"),
            fault.clone(),
        ],
        What::Backfill { table, rows, .. } => {
            let rows = rows.map_or_else(
                || "an unknown number of".to_owned(),
                |rows| format!("about {rows:.0}"),
            );
            [
                String::new(),
                "C".to_owned(),
                format!("the backfill of {table}"),
                format!("{rows} rows, in batches"),
            ]
        }
        What::Reconcile => [
            String::new(),
            "C".to_owned(),
            "the reconciliation".to_owned(),
            "reads everything, writes nothing".to_owned(),
        ],
        What::Baseline { from } => [
            String::new(),
            "A".to_owned(),
            format!("the baseline, from {from}"),
            "executed on a fresh database, recorded on any other".to_owned(),
        ],
        What::Override { file, said } => [
            file.clone(),
            "E (refused here)".to_owned(),
            "an override that is none".to_owned(),
            said.clone(),
        ],
    }
}

/// The locks in one cell.
pub fn locks(locks: &[Locked]) -> String {
    let each = locks.iter().map(|lock| {
        let size = lock.bytes.map_or_else(String::new, |bytes| {
            format!(" ({})", bytes_for_people(bytes))
        });
        let queued = lock.queued_a_minute.map_or_else(String::new, |queued| {
            format!(": about {queued:.0} statements a minute would queue")
        });
        format!("{} on {}{size}{queued}", lock.mode, lock.relation)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// `12 GiB`.
fn bytes_for_people(bytes: i64) -> String {
    let mut whole = bytes.max(0);
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if whole < 10_240 {
            return format!("{whole} {unit}");
        }
        whole /= 1024;
    }
    format!("{whole} TiB")
}

fn cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('[', "\\[")
        .replace(['\n', '\r'], " ")
}

fn code(text: &str) -> String {
    let text = text
        .replace('|', "\\|")
        .replace('`', "'")
        .replace(['\n', '\r'], " ");
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_a_cell() {
        assert_eq!(cell("a|b<c>\n[d]"), "a\\|b&lt;c> \\[d]");
        assert_eq!(code("a`|b"), "`a'\\|b`");
        assert_eq!(bytes_for_people(13 * 1024 * 1024 * 1024), "13 GiB");
        assert_eq!(bytes_for_people(700), "700 bytes");
    }
}
