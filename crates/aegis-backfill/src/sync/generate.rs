//! The text of the trigger.
//!
//! An INSERT has no row of before, so a side counts as written when one of its columns is neither NULL nor its default. The names
//! of both triggers begin with `zz_`: PostgreSQL fires them in name order, and what another one has changed has to be seen.

use std::fmt::Write as _;

use aegis_catalog::{Name, quote};

use super::groups::{Group, groups};
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

/// The body: for each group of columns, which side was written, then what the other one becomes.
pub(super) fn body(sides: &Sides) -> String {
    let groups = groups(sides);
    let mut text = format!(
        "
#variable_conflict use_column
{}
DECLARE
    aegis_old boolean;
    aegis_new boolean;
    aegis_agrees boolean;
    aegis_by_new boolean;
BEGIN
",
        made_of(&sides.rule)
    );
    let all = |of: fn(&Sides) -> &[Column]| of(sides).iter().collect::<Vec<_>>();
    text.push_str(&written(&all(|sides| &sides.old), &all(|sides| &sides.new)));
    text.push_str(&sighted(sides));
    text.push_str("    aegis_by_new := TG_OP = 'INSERT' AND aegis_new AND NOT aegis_old;\n");
    for group in &groups {
        // Of one group it has just been asked.
        if groups.len() > 1 {
            text.push_str(&written(&group.old, &group.new));
        }
        text.push_str(&kept(sides, group));
    }
    text.push_str("    RETURN NEW;\nEND;\n");
    text
}

/// The line of a body that says of what it was made: what the server prints of an expression, and a column's default, may become another
/// text while nobody changes `[sync]`.
pub(super) fn made_of(rule: &Rule) -> String {
    format!("-- [sync] {}", rule.sha256())
}

/// Which sides of these columns were written.
fn written(old: &[&Column], new: &[&Column]) -> String {
    let any = |side: &[&Column], of: fn(&Column) -> String| {
        side.iter()
            .map(|column| of(column))
            .collect::<Vec<_>>()
            .join("\n            OR ")
    };
    let moved = |column: &Column| differs(column, "OLD", "NEW");
    format!(
        "    IF TG_OP = 'INSERT' THEN
        aegis_old := {};
        aegis_new := {};
    ELSE
        aegis_old := {};
        aegis_new := {};
    END IF;
",
        any(old, given),
        any(new, given),
        any(old, moved),
        any(new, moved),
    )
}

/// Tells who wrote which side.
fn sighted(sides: &Sides) -> String {
    let change = literal(&sides.rule.change);
    format!(
        "    IF aegis_old THEN
        PERFORM aegis_migrate.sight({change}, 'old');
    END IF;
    IF aegis_new THEN
        PERFORM aegis_migrate.sight({change}, 'new');
    END IF;
"
    )
}

/// What a write of both sides gets that do not agree.
fn both(sides: &Sides) -> String {
    let rule = &sides.rule;
    if !rule.reject_both {
        return "aegis_old := false;".to_owned();
    }
    format!(
        "RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',\n                MESSAGE = {},\n                HINT = 'Write one side; the other one follows.';",
        literal(&format!(
            "one write changes both sides of {} ({})",
            rule.table, rule.change
        ))
    )
}

/// Keeps one group. A write that touches nothing of it leaves it alone, but for a row of before whose new side nobody has written; an
/// INSERT that gives nothing of it is one of the side that it gives something of. A write of the new side after which the row agrees takes
/// nothing from the old one: what is there may be what backward cannot give.
fn kept(sides: &Sides, group: &Group<'_>) -> String {
    format!(
        "    IF aegis_old OR aegis_new THEN
        IF aegis_new AND TG_OP = 'UPDATE' THEN
            SELECT {agrees} INTO aegis_agrees FROM (SELECT OLD.*) AS aegis_row;
            IF NOT aegis_agrees THEN
{filled}            END IF;
        END IF;
        IF aegis_old AND aegis_new THEN
            SELECT {agrees} INTO aegis_agrees FROM (SELECT NEW.*) AS aegis_row;
            IF NOT aegis_agrees THEN
                {both}
            END IF;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        aegis_new := aegis_by_new;
        aegis_old := NOT aegis_by_new;
    ELSE
        SELECT {hollow} INTO aegis_old FROM (SELECT NEW.*) AS aegis_row;
    END IF;
    IF aegis_new AND NOT aegis_old THEN
        SELECT TG_OP = 'UPDATE' AND {agrees} INTO aegis_agrees FROM (SELECT NEW.*) AS aegis_row;
        IF NOT aegis_agrees THEN
    {to_old}        END IF;
    ELSIF aegis_old AND NOT aegis_new THEN
{to_new}    END IF;
",
        agrees = group.agrees(),
        hollow = group.hollow(),
        filled = filled(&group.new),
        both = both(sides),
        to_old = carry(&group.old),
        to_new = carry(&group.new),
    )
}

/// A row of before, written in part: what the write leaves alone of the new side comes from the old one, or it would be lost when
/// the old side is computed from it.
fn filled(side: &[&Column]) -> String {
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

/// Computes a side from the other one, at once.
fn carry(side: &[&Column]) -> String {
    let computed: Vec<(&&Column, &String)> = side
        .iter()
        .filter_map(|column| Some((column, column.from.as_ref()?)))
        .collect();
    if computed.is_empty() {
        return "        NULL;\n".to_owned();
    }
    let from: Vec<String> = computed
        .iter()
        .map(|(_, from)| format!("({from})"))
        .collect();
    let names: Vec<String> = computed
        .iter()
        .map(|(column, _)| format!("NEW.{}", quote(&column.name)))
        .collect();
    format!(
        "        SELECT {}\n        INTO {}\n        FROM (SELECT NEW.*) AS aegis_row;\n",
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

/// Asks whether an expression is NULL for a row of nothing; an expression that fails for it is not. Beside the caller's transaction: a
/// failure is caught where it happens.
pub(super) fn of_nothing(rule: &Rule, from: &str) -> String {
    let asked = literal(&format!(
        "SELECT ({from}) IS NULL FROM (SELECT (NULL::{}).*) AS aegis_row",
        rule.table.sql()
    ));
    let ask = dollar(&format!(
        "\nDECLARE\naegis_found boolean;\nBEGIN\nBEGIN\nEXECUTE {asked} INTO aegis_found;\nEXCEPTION WHEN OTHERS THEN\naegis_found := false;\nEND;\n\
         PERFORM pg_catalog.set_config('aegis_migrate.of_nothing', aegis_found::text, true);\nEND;\n"
    ));
    format!("DO {ask}; SELECT current_setting('aegis_migrate.of_nothing')::boolean AS is_null")
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
