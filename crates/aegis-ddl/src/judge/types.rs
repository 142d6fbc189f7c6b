//! What a change of a column's type does: nothing, a rebuild of indexes, or a rewrite. The list is the reference's, measured on 14 to
//! 18, for a column that nothing else names; what hangs on the column is judged in [`super::alter`].

use crate::form::{Action, Expression, Form, TypeName};

/// What the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Only the catalog changes.
    Free,
    /// The table stays, indexes on the column are rebuilt.
    Indexes,
    /// Every row is written.
    Rewrite,
}

/// From what the server prints (`character varying(20)`) to what the file says.
pub(super) fn change(from: &str, to: &TypeName) -> Effect {
    let from = Shape::printed(from);
    let to = Shape::of(to);
    if from.array || to.array {
        return if from == to {
            Effect::Free
        } else {
            Effect::Rewrite
        };
    }
    match (from.base.as_str(), to.base.as_str()) {
        (a, b) if a == b => same(&from, &to),
        ("character varying", "text") | ("cidr", "inet") => Effect::Free,
        ("text", "character varying") if to.modifiers.is_empty() => Effect::Free,
        ("timestamp without time zone", "timestamp with time zone")
        | ("timestamp with time zone", "timestamp without time zone")
            if from.modifiers == to.modifiers =>
        {
            // In a session whose time zone is UTC, which is what the runner sets; elsewhere it is a rewrite.
            Effect::Indexes
        }
        ("integer", "oid") => Effect::Indexes,
        _ => Effect::Rewrite,
    }
}

/// Whether a value of the old type may not fit the new one.
pub(super) fn narrower(from: &str, to: &TypeName) -> bool {
    let from = Shape::printed(from);
    let to = Shape::of(to);
    let width = |base: &str| match base {
        "smallint" => 1,
        "integer" => 2,
        "bigint" => 3,
        "numeric" => 4,
        _ => 0,
    };
    match (from.base.as_str(), to.base.as_str()) {
        (a, b) if a == b => match (from.modifiers.as_slice(), to.modifiers.as_slice()) {
            (_, []) => false,
            ([], _) => true,
            (old, new) => new.iter().zip(old).any(|(new, old)| new < old),
        },
        ("character varying" | "character", "text") | ("cidr", "inet") | ("json", "jsonb") => false,
        ("text", "character varying") => !to.modifiers.is_empty(),
        (a, b) if width(a) > 0 && width(b) > 0 => width(b) < width(a),
        _ => true,
    }
}

fn same(from: &Shape, to: &Shape) -> Effect {
    let (old, new) = (from.modifiers.as_slice(), to.modifiers.as_slice());
    if old == new || new.is_empty() && from.base != "character" && from.base != "bit" {
        return Effect::Free;
    }
    let wider = match from.base.as_str() {
        "character varying" | "bit varying" => matches!((old, new), ([old], [new]) if new >= old),
        "numeric" => {
            let scale = |modifiers: &[u32]| modifiers.get(1).copied().unwrap_or(0);
            matches!((old.first(), new.first()), (Some(old), Some(new)) if new >= old)
                && scale(old) == scale(new)
        }
        "timestamp without time zone"
        | "timestamp with time zone"
        | "time without time zone"
        | "time with time zone"
        | "interval" => {
            matches!((old, new), ([old], [new]) if new >= old) || matches!((old, new), ([], [6]))
        }
        _ => false,
    };
    if wider { Effect::Free } else { Effect::Rewrite }
}

/// What a column is that is said to be serial.
fn of_serial(name: &str) -> Option<&'static str> {
    match name {
        "smallserial" | "serial2" => Some("smallint"),
        "serial" | "serial4" => Some("integer"),
        "bigserial" | "serial8" => Some("bigint"),
        _ => None,
    }
}

/// A type of a file as the server would print it, near enough for [`change`].
pub(super) fn printed(name: &TypeName) -> String {
    let mut text = name.base.to_string();
    if name.base.schema.is_none() {
        let base = of_serial(&name.base.name).unwrap_or(&name.base.name);
        base.clone_into(&mut text);
    }
    if !name.modifiers.is_empty() {
        let modifiers: Vec<String> = name.modifiers.iter().map(u32::to_string).collect();
        text.push('(');
        text.push_str(&modifiers.join(","));
        text.push(')');
    }
    if name.array {
        text.push_str("[]");
    }
    text
}

/// Types of the server's own that are no domain, and those of the usual extensions; ranges and arrays are told by their ends.
const KNOWN: &[&str] = &[
    "bigint",
    "bigserial",
    "bit",
    "bit varying",
    "boolean",
    "box",
    "box2d",
    "box3d",
    "bytea",
    "character",
    "character varying",
    "cid",
    "cidr",
    "circle",
    "citext",
    "cube",
    "date",
    "double precision",
    "geography",
    "geometry",
    "halfvec",
    "hstore",
    "inet",
    "int1",
    "integer",
    "interval",
    "json",
    "jsonb",
    "jsonpath",
    "line",
    "lquery",
    "lseg",
    "ltree",
    "ltxtquery",
    "macaddr",
    "macaddr8",
    "money",
    "name",
    "numeric",
    "oid",
    "path",
    "pg_lsn",
    "pg_snapshot",
    "point",
    "polygon",
    "raster",
    "real",
    "regclass",
    "regproc",
    "regtype",
    "serial",
    "serial2",
    "serial4",
    "serial8",
    "smallint",
    "smallserial",
    "sparsevec",
    "text",
    "tid",
    "time with time zone",
    "time without time zone",
    "timestamp with time zone",
    "timestamp without time zone",
    "tsquery",
    "tsvector",
    "txid_snapshot",
    "uuid",
    "vector",
    "xid",
    "xid8",
    "xml",
];

/// Whether a type is surely no domain.
pub(super) fn is_known(of: &crate::name::QualifiedName) -> bool {
    let name = of.name.as_str();
    KNOWN.contains(&name)
        || ["interval", "timestamp", "time"]
            .iter()
            .any(|word| name.starts_with(word))
        || name.ends_with("range")
}

/// A type from its text, as the server prints it.
pub(super) fn read(text: &str) -> Option<TypeName> {
    match action(&format!("ALTER TABLE t ALTER c TYPE {text}"))? {
        Action::SetType { to, .. } => Some(to),
        _ => None,
    }
}

/// A default from its text.
pub(super) fn read_default(text: &str) -> Option<Expression> {
    match action(&format!("ALTER TABLE t ALTER c SET DEFAULT {text}"))? {
        Action::SetDefault { expression, .. } => Some(expression),
        _ => None,
    }
}

fn action(sql: &str) -> Option<Action> {
    match crate::read(sql).ok()?.statements.pop()?.form {
        Form::AlterTable { mut actions, .. } => actions.pop(),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Shape {
    base: String,
    modifiers: Vec<u32>,
    array: bool,
}

impl Shape {
    fn of(name: &TypeName) -> Self {
        Self {
            base: name.base.name.clone(),
            modifiers: name.modifiers.clone(),
            array: name.array,
        }
        .plain()
    }

    /// Of times 6 is what they have without a number, and of numeric 0 is the scale. An array is written anew even then.
    fn plain(mut self) -> Self {
        let timed = ["time", "interval"]
            .iter()
            .any(|word| self.base.starts_with(word));
        if !self.array && timed && self.modifiers == [6] {
            self.modifiers.clear();
        }
        if !self.array && self.base == "numeric" && self.modifiers.len() == 1 {
            self.modifiers.push(0);
        }
        self
    }

    /// `timestamp(3) without time zone`, `numeric(10,2)`, `text[]`.
    fn printed(text: &str) -> Self {
        let array = text.ends_with("[]");
        let text = text.trim_end_matches("[]");
        let (mut base, mut modifiers) = (text.to_owned(), Vec::new());
        if let Some((head, rest)) = text.split_once('(')
            && let Some((inside, tail)) = rest.split_once(')')
        {
            base = format!("{head}{tail}");
            modifiers = inside
                .split(',')
                .filter_map(|part| part.trim().parse().ok())
                .collect();
        }
        Self {
            base,
            modifiers,
            array,
        }
        .plain()
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, change, narrower};
    use crate::form::{Action, Form, TypeName};

    fn to(text: &str) -> TypeName {
        let sql = format!("ALTER TABLE t ALTER c TYPE {text}");
        match crate::read(&sql).unwrap().statements.remove(0).form {
            Form::AlterTable { actions, .. } => match &actions[0] {
                Action::SetType { to, .. } => to.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_list_of_the_reference() {
        let free = [
            ("character varying(10)", "varchar(20)"),
            ("character varying(10)", "varchar"),
            ("character varying(10)", "text"),
            ("text", "varchar"),
            ("numeric(10,2)", "numeric(12,2)"),
            ("numeric(10,2)", "numeric"),
            ("timestamp(3) without time zone", "timestamp(6)"),
            ("timestamp without time zone", "timestamp(6)"),
            ("timestamp(6) without time zone", "timestamp"),
            ("timestamp with time zone", "timestamptz(6)"),
            ("time without time zone", "time(6)"),
            ("time with time zone", "timetz(6)"),
            ("interval", "interval(6)"),
            ("numeric(10,0)", "numeric(10)"),
            ("numeric(10)", "numeric(12,0)"),
            ("interval(3)", "interval"),
            ("cidr", "inet"),
            ("bit varying(3)", "varbit(5)"),
        ];
        for (from, text) in free {
            assert_eq!(change(from, &to(text)), Effect::Free, "{from} to {text}");
            assert!(!narrower(from, &to(text)), "{from} to {text}");
        }
        let indexes = [
            ("timestamp without time zone", "timestamptz"),
            ("timestamp with time zone", "timestamp"),
            ("timestamp(6) with time zone", "timestamp"),
            ("integer", "oid"),
        ];
        for (from, text) in indexes {
            assert_eq!(change(from, &to(text)), Effect::Indexes, "{from} to {text}");
        }
        let rewrite = [
            ("integer", "bigint"),
            ("smallint", "int"),
            ("character varying(20)", "varchar(10)"),
            ("text", "varchar(10)"),
            ("numeric(10,2)", "numeric(10,3)"),
            ("character(3)", "char(5)"),
            ("json", "jsonb"),
            ("integer[]", "bigint[]"),
            ("timestamp without time zone[]", "timestamp(6)[]"),
            ("timestamp without time zone", "timestamp(3)"),
        ];
        for (from, text) in rewrite {
            assert_eq!(change(from, &to(text)), Effect::Rewrite, "{from} to {text}");
        }
    }
}
