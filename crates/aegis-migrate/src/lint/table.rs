//! For people: what does not pass or has something to say, with reason, lock, size and the safe form.

use std::fmt::Write as _;

use aegis_ddl::{Class, Level, Phase};

use super::{Judged, Locked};

/// One paragraph a statement. `colour`: whether codes for a terminal are wanted; `clean` makes stored text harmless to it.
pub fn table(judged: &[Judged], colour: bool, clean: &dyn Fn(&str) -> String) -> String {
    let mut text = String::new();
    let said = judged
        .iter()
        .filter(|one| !one.passes || !one.findings.is_empty() || !one.unread.is_empty());
    for one in said {
        // Into a string: cannot fail.
        paragraph(&mut text, one, colour, clean).unwrap_or_default();
    }
    text
}

fn paragraph(
    text: &mut String,
    one: &Judged,
    colour: bool,
    clean: &dyn Fn(&str) -> String,
) -> std::fmt::Result {
    let (on, off) = if colour {
        (code(one.class), "\u{1b}[0m")
    } else {
        ("", "")
    };
    let verdict = if one.passes {
        "passes"
    } else {
        "may not run here"
    };
    writeln!(
        text,
        "{}:{}: {on}class {}{off}, {verdict}",
        clean(&one.file),
        one.line,
        one.class
    )?;
    if !one.statement.is_empty() {
        writeln!(text, "  {}", clean(&one.statement))?;
    }
    for lock in &one.locks {
        writeln!(text, "  locks {}", clean(&locked(lock)))?;
    }
    for finding in &one.findings {
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Notice => "notice",
        };
        writeln!(
            text,
            "  {level} [{}] {}",
            finding.rule,
            clean(&finding.message)
        )?;
        // The place in the line, below what is said of it.
        for shown in one.shown.iter().flat_map(|shown| shown.lines()) {
            writeln!(text, "  {}", clean(shown))?;
        }
        if let Some(reason) = &finding.overridden {
            writeln!(text, "      overridden: {}", clean(reason))?;
        }
        if let Some(unless) = &finding.unless {
            writeln!(text, "      harmless if {}", clean(unless))?;
        }
        if finding.overridden.is_none() && !finding.safe.is_empty() {
            writeln!(text, "      instead: {}", finding.safe)?;
        }
        if let Some(line) = &finding.declare {
            let section = match one.phase {
                Some(Phase::Migrate) => "migrate",
                Some(Phase::Tighten | Phase::Contract) => "contract",
                Some(Phase::Expand) | None => "expand",
            };
            writeln!(text, "      or declare it in [{section}]: {}", clean(line))?;
        }
    }
    if !one.passes
        && one
            .findings
            .iter()
            .all(|finding| finding.overridden.is_some())
    {
        writeln!(text, "  {}", one.class.meaning())?;
    }
    for unread in &one.unread {
        writeln!(text, "  not read: {}", clean(unread))?;
    }
    writeln!(text)
}

const fn code(class: Class) -> &'static str {
    match class {
        Class::A => "\u{1b}[32m",
        Class::B | Class::C => "\u{1b}[33m",
        Class::D | Class::E => "\u{1b}[1;31m",
    }
}

fn locked(lock: &Locked) -> String {
    let mut said = format!("{} {}", lock.relation, lock.mode);
    let waits = match (lock.blocks_reads, lock.blocks_writes) {
        (true, _) => ": readers and writers wait",
        (false, true) => ": writers wait",
        (false, false) => "",
    };
    said.push_str(waits);
    match lock.bytes {
        Some(bytes) => said.extend(["; ", &size(bytes)]),
        None if lock.blocks_writes => said.push_str("; size unknown"),
        None => {}
    }
    if let Some(queued) = lock.queued_a_minute {
        // Into a string: cannot fail.
        write!(said, "; about {queued:.0} statements a minute would queue").unwrap_or_default();
    }
    said
}

fn size(bytes: i64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 10_240 {
            return format!("{value} {unit}");
        }
        value /= 1024;
    }
    format!("{value} TiB")
}

/// The last line.
pub fn totals(judged: &[Judged]) -> String {
    let statements = judged
        .iter()
        .filter(|one| !one.statement.is_empty())
        .count();
    if judged.is_empty() {
        return "there is no statement to judge".to_owned();
    }
    let refused = judged.iter().filter(|one| !one.passes).count();
    let classes: Vec<String> = [Class::A, Class::B, Class::C, Class::D, Class::E]
        .into_iter()
        .map(|class| {
            (
                class,
                judged.iter().filter(|one| one.class == class).count(),
            )
        })
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| format!("{count} of class {class}"))
        .collect();
    format!(
        "{statements} statements ({}); {refused} may not run where they stand",
        classes.join(", ")
    )
}
