//! The text of the trigger.
//!
//! An INSERT has no row of before, so a side counts as written when one of its columns is neither NULL nor its default. The names
//! of both triggers begin with `zz_`: PostgreSQL fires them in name order, and what another one has changed has to be seen.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aegis_catalog::{Name, quote};

use super::{Column, Rule, SILENT_SETTING, Sides};

/// How the names of a change's triggers begin.
pub(super) fn trigger_prefix(rule: &Rule) -> String {
    format!("zz_aegis_sync_{}_", tag(&rule.change))
}

/// How the names of the views begin that its expressions are for a moment.
pub(super) fn pin_prefix(rule: &Rule) -> String {
    format!("aegis_pin_{}_", tag(&rule.change))
}

/// The function that both triggers call.
pub(super) fn function(rule: &Rule) -> Name {
    Name::new(
        &*rule.table.schema,
        format!("aegis_sync_{}", tag(&rule.change)),
    )
}

/// A change's id as a part of a name: FNV-1a of 64 bits, since an id may be longer than a name.
fn tag(change: &str) -> String {
    let hash = change
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}")
}

/// Whether a default is the same value twice in one statement: a literal, or the time of the transaction.
pub(super) fn is_steady(default: &str) -> bool {
    if ["CURRENT_TIMESTAMP", "CURRENT_DATE", "now()"].contains(&default) {
        return true;
    }
    // A literal with its type behind it: what pg_get_expr writes of a constant.
    let value = default
        .rsplit_once("::")
        .map_or(default, |(value, type_of)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || " _.\"[](),".contains(c);
            if type_of.chars().all(plain) {
                value
            } else {
                default
            }
        });
    let quoted = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    let is_text = quoted.is_some_and(|text| !text.replace("''", "").contains('\''));
    let number = value.trim_start_matches(['(', '-']).trim_end_matches(')');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_text || is_number || ["true", "false", "NULL"].contains(&value)
}

pub(super) fn create(sides: &Sides) -> Vec<String> {
    let rule = &sides.rule;
    let (function, table, prefix) = (function(rule).sql(), rule.table.sql(), trigger_prefix(rule));
    let moved = sides
        .old
        .iter()
        .chain(&sides.new)
        .map(|column| differs(column, "OLD", "NEW"))
        .collect::<Vec<_>>()
        .join(" OR ");
    // Here and not in the body: a call with settings of its own, for each row of a batch, costs more than the row.
    let heard = format!(
        "pg_catalog.current_setting('{SILENT_SETTING}', true) IS DISTINCT FROM {}",
        literal(&rule.change)
    );
    vec![
        format!(
            "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER\nSET search_path = pg_catalog, pg_temp AS {}",
            dollar(&body(sides))
        ),
        format!(
            "CREATE OR REPLACE TRIGGER {} BEFORE INSERT ON {table}\nFOR EACH ROW WHEN ({heard}) EXECUTE FUNCTION {function}()",
            quote(&format!("{prefix}insert"))
        ),
        format!(
            "CREATE OR REPLACE TRIGGER {} BEFORE UPDATE ON {table}\nFOR EACH ROW WHEN ({heard} AND ({moved})) EXECUTE FUNCTION {function}()",
            quote(&format!("{prefix}update"))
        ),
    ]
}

pub(super) fn drop(rule: &Rule) -> Vec<String> {
    let (function, table, prefix) = (function(rule).sql(), rule.table.sql(), trigger_prefix(rule));
    vec![
        format!(
            "DROP TRIGGER IF EXISTS {} ON {table}",
            quote(&format!("{prefix}insert"))
        ),
        format!(
            "DROP TRIGGER IF EXISTS {} ON {table}",
            quote(&format!("{prefix}update"))
        ),
        format!("DROP FUNCTION IF EXISTS {function}()"),
    ]
}

/// The body: which side was written, then what the other one becomes.
pub(super) fn body(sides: &Sides) -> String {
    let rule = &sides.rule;
    let change = literal(&rule.change);
    let any = |side: &[Column], of: fn(&Column) -> String| {
        side.iter()
            .map(of)
            .collect::<Vec<_>>()
            .join("\n            OR ")
    };
    let both = if rule.reject_both {
        format!(
            "RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',\n                MESSAGE = {},\n                HINT = 'Write one side; the other one follows.';",
            literal(&format!(
                "one write changes both sides of {} ({})",
                rule.table, rule.change
            ))
        )
    } else {
        "aegis_old := false;".to_owned()
    };
    let mut text = format!(
        r"
#variable_conflict use_column
DECLARE
    aegis_old boolean;
    aegis_new boolean;
    aegis_agrees boolean;
{kept_apart}BEGIN
    IF TG_OP = 'INSERT' THEN
        aegis_old := {old_given};
        aegis_new := {new_given};
    ELSE
        aegis_old := {old_moved};
        aegis_new := {new_moved};
{stays}    END IF;
    IF aegis_old THEN
        PERFORM aegis_migrate.sight({change}, 'old');
    END IF;
    IF aegis_new THEN
        PERFORM aegis_migrate.sight({change}, 'new');
    END IF;
    IF aegis_new AND TG_OP = 'UPDATE' THEN
        SELECT {agrees} INTO aegis_agrees FROM (SELECT OLD.*) AS aegis_row;
        IF NOT aegis_agrees THEN
{filled}        END IF;
    END IF;
    IF aegis_old AND aegis_new THEN
        SELECT {agrees} INTO aegis_agrees FROM (SELECT NEW.*) AS aegis_row;
        IF aegis_agrees THEN
            RETURN NEW;
        END IF;
        {both}
    END IF;
    IF aegis_new THEN
",
        old_given = any(&sides.old, given),
        new_given = any(&sides.new, given),
        old_moved = any(&sides.old, |column| differs(column, "OLD", "NEW")),
        new_moved = any(&sides.new, |column| differs(column, "OLD", "NEW")),
        agrees = sides.agrees(),
        filled = filled(&sides.new),
        kept_apart = declared(sides),
        stays = asked(sides),
    );
    text.push_str(&carried(sides, &sides.old, &sides.new));
    text.push_str("    ELSE\n");
    text.push_str(&carried(sides, &sides.new, &sides.old));
    text.push_str("    END IF;\n    RETURN NEW;\nEND;\n");
    text
}

/// A row of before, written in part: what the write leaves alone of the new side comes from the old one, or it would be lost when
/// the old side is computed from it.
fn filled(side: &[Column]) -> String {
    let mut text = String::new();
    for column in side {
        let Some(from) = &column.from else { continue };
        writeln!(
            text,
            "            IF NOT ({}) THEN\n                SELECT ({from}) INTO NEW.{} FROM (SELECT NEW.*) AS aegis_row;\n            END IF;",
            differs(column, "OLD", "NEW"),
            quote(&column.name)
        ).ok();
    }
    text
}

/// The variable that says whether a column of a side that may stay is set by this write.
fn sets(column: &Column) -> String {
    quote(&format!("aegis_sets_{}", tag(&column.name)))
}

/// The variables of columns that may stay: an INSERT sets all.
fn declared(sides: &Sides) -> String {
    let mut text = String::new();
    for (column, _) in may_stay(sides) {
        writeln!(text, "    {} boolean := true;", sets(column)).ok();
    }
    if !text.is_empty() {
        text.push_str("    aegis_given record;\n");
    }
    text
}

/// Columns that a write of the other side may leave alone, with what their expressions read.
fn may_stay(sides: &Sides) -> impl Iterator<Item = (&Column, &BTreeSet<String>)> {
    let both = [(&sides.old, &sides.new), (&sides.new, &sides.old)];
    both.into_iter().flat_map(|(side, other)| {
        let kept = side.iter();
        kept.filter_map(|column| Some((column, column.may_stay(other)?)))
    })
}

/// Asks, before anything is computed, whether a write has touched what an expression reads; or the column itself, where the other side
/// wins over it.
fn asked(sides: &Sides) -> String {
    let mut text = String::new();
    for (column, reads) in may_stay(sides) {
        let is_old = sides.old.contains(column);
        let read = reads.iter().map(|name| sides.moved(name));
        let own = is_old.then(|| differs(column, "OLD", "NEW"));
        let moved: Vec<String> = read.chain(own).collect();
        writeln!(text, "        {} := {};", sets(column), moved.join(" OR ")).ok();
    }
    text
}

/// Computes a side after a write of `other`. What the write did not touch stays, where the row agrees so; else all of it is computed.
fn carried(sides: &Sides, side: &[Column], other: &[Column]) -> String {
    let stays = |column: &&Column| column.may_stay(other).is_some();
    let (may_stay, always): (Vec<&Column>, Vec<&Column>) = computed(side).partition(stays);
    if may_stay.is_empty() {
        return carry(&always, "NEW", "        ");
    }
    let mut text = "        aegis_given := NEW;\n".to_owned();
    for column in may_stay {
        let one = carry(&[column], "aegis_given", "            ");
        let sets = sets(column);
        write!(text, "        IF {sets} THEN\n{one}        END IF;\n").ok();
    }
    if !always.is_empty() {
        text.push_str(&carry(&always, "aegis_given", "        "));
    }
    let all: Vec<&Column> = computed(side).collect();
    let (all, agrees) = (
        carry(&all, "aegis_given", "                "),
        sides.agrees(),
    );
    write!(
        text,
        "        IF TG_OP = 'UPDATE' THEN\n            SELECT {agrees} INTO aegis_agrees FROM (SELECT NEW.*) AS aegis_row;\n            IF NOT aegis_agrees THEN\n{all}            END IF;\n        END IF;\n"
    )
    .ok();
    text
}

fn computed(side: &[Column]) -> impl Iterator<Item = &Column> {
    side.iter().filter(|column| column.from.is_some())
}

/// Computes columns from a row, at once.
fn carry(columns: &[&Column], row: &str, indent: &str) -> String {
    if columns.is_empty() {
        return format!("{indent}NULL;\n");
    }
    let from: Vec<String> = columns
        .iter()
        .filter_map(|column| Some(format!("({})", column.from.as_ref()?)))
        .collect();
    let names: Vec<String> = columns
        .iter()
        .map(|column| format!("NEW.{}", quote(&column.name)))
        .collect();
    format!(
        "{indent}SELECT {}\n{indent}INTO {}\n{indent}FROM (SELECT {row}.*) AS aegis_row;\n",
        from.join(", "),
        names.join(", ")
    )
}

/// Computes a side for some rows that are there, into variables of its types: a value that the trigger could not assign fails here
/// as it would there.
pub(super) fn attempt(rule: &Rule, side: &[Column], rows: u32) -> Option<String> {
    let computed: Vec<(&Column, &String)> = side
        .iter()
        .filter_map(|column| Some((column, column.from.as_ref()?)))
        .collect();
    if computed.is_empty() {
        return None;
    }
    let (mut variables, mut values, mut assigned) = (String::new(), String::new(), String::new());
    for (index, (column, from)) in computed.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        writeln!(variables, "aegis_{index} {};", column.type_sql).ok();
        write!(values, "{comma}({from}) AS aegis_value_{index}").ok();
        writeln!(
            assigned,
            "aegis_{index} := aegis_found.aegis_value_{index};"
        )
        .ok();
    }
    Some(format!(
        "DO {}",
        dollar(&format!(
            "\n#variable_conflict use_column\nDECLARE\naegis_found record;\naegis_path text := current_setting('search_path');\n{variables}BEGIN\n\
             PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);\nFOR aegis_found IN SELECT {values}\nFROM (SELECT * FROM {} LIMIT {rows}) AS aegis_row LOOP\n{assigned}END LOOP;\nPERFORM set_config('search_path', aegis_path, true);\nEND;\n",
            rule.table.sql()
        ))
    ))
}

/// Whether an INSERT gave the column a value.
fn given(column: &Column) -> String {
    let name = format!("NEW.{}", quote(&column.name));
    match &column.default {
        None => format!("{name} IS NOT NULL"),
        Some(default) => format!(
            "({name} IS NOT NULL AND NOT ({}))",
            column.same(&name, default)
        ),
    }
}

/// Whether two rows differ in the column.
fn differs(column: &Column, one: &str, other: &str) -> String {
    let name = quote(&column.name);
    let text = if column.compares { "" } else { "::text" };
    format!("{one}.{name}{text} IS DISTINCT FROM {other}.{name}{text}")
}

impl Sides {
    /// Whether a write has changed a column of the table. One of no side is compared as text: nobody has asked whether its type has an
    /// equality.
    fn moved(&self, name: &str) -> String {
        let own = self
            .old
            .iter()
            .chain(&self.new)
            .find(|column| column.name == name);
        if let Some(column) = own {
            return differs(column, "OLD", "NEW");
        }
        let name = quote(name);
        format!("OLD.{name}::text IS DISTINCT FROM NEW.{name}::text")
    }
}

pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A body between dollar quotes that it does not hold.
fn dollar(body: &str) -> String {
    let mut quotes = "$aegis$".to_owned();
    while body.contains(&quotes) {
        quotes.insert(quotes.len() - 1, 'x');
    }
    format!("{quotes}{body}{quotes}")
}

#[cfg(test)]
mod tests {
    use super::is_steady;

    #[test]
    fn a_default_is_steady_when_it_is_a_literal_or_the_time_of_the_transaction() {
        for steady in [
            "'new'::text",
            "'it''s'::character varying",
            "0",
            "(-1)",
            "'-1'::integer",
            "1.50",
            "true",
            "NULL::character varying",
            "now()",
            "CURRENT_TIMESTAMP",
            "'{}'::jsonb",
            "'a'::bpchar",
        ] {
            assert!(is_steady(steady), "{steady}");
        }
        for moving in [
            "nextval('app.users_id_seq'::regclass)",
            "gen_random_uuid()",
            "clock_timestamp()",
            "(random())::text",
            "f('a'::text)",
            "'a'::text || 'b'::text",
            "'x'::text || (random())::text",
            "1 + f(2)",
        ] {
            assert!(!is_steady(moving), "{moving}");
        }
    }
}
