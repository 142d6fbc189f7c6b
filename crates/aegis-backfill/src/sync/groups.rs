//! Which columns hang together: an expression of one reads another. Each group is kept alike by itself.
//!
//! Invariants: what is not known reads everything; columns of two groups have nothing to do with each other, in either direction, so that
//! a write of one leaves the others alone, and each agrees or not by itself.

use std::collections::BTreeSet;

use aegis_catalog::quote;

use super::{Column, Sides, holds};

/// Columns of both sides that hang together.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) old: Vec<&'a Column>,
    pub(super) new: Vec<&'a Column>,
}

impl Group<'_> {
    /// Both directions are there to be judged. With one alone nobody could tell what the other side has written from what is apart.
    fn is_whole(&self) -> bool {
        let computed = |side: &[&Column]| side.iter().any(|column| column.from.is_some());
        computed(&self.old) && computed(&self.new)
    }

    /// Whether either direction holds: SQL over a row of the table AS `aegis_row`, never NULL.
    ///
    /// A row whose new side nobody has written is the old side's, also when backward makes of nothing what stands there: a NULL where
    /// forward gives a value is what a later NOT NULL would stumble over.
    pub(super) fn agrees(&self) -> String {
        let (forward, backward) = (
            holds(self.new.iter().copied()),
            holds(self.old.iter().copied()),
        );
        format!("({forward} OR ({backward} AND NOT {}))", self.hollow())
    }

    /// Whether the new side is as nobody has written it (NULL or its default), with a NULL where forward gives a value.
    pub(super) fn hollow(&self) -> String {
        let unwritten = self.new.iter().map(|column| {
            let name = quote(&column.name);
            match &column.default {
                None => format!("{name} IS NULL"),
                Some(default) => format!("({name} IS NULL OR {})", column.same(&name, default)),
            }
        });
        let missing = self.new.iter().filter_map(|column| {
            let from = column.from.as_ref()?;
            Some(format!(
                "({} IS NULL AND ({from}) IS NOT NULL)",
                quote(&column.name)
            ))
        });
        let (unwritten, missing): (Vec<_>, Vec<_>) = (unwritten.collect(), missing.collect());
        if missing.is_empty() {
            return "false".to_owned();
        }
        format!(
            "({} AND ({}))",
            unwritten.join(" AND "),
            missing.join(" OR ")
        )
    }

    /// What an UPDATE of the table AS `aegis_row` sets to carry the old side over: `"column" = (expression), …`.
    pub(super) fn forward_set(&self) -> String {
        let sets = self.new.iter().filter_map(|column| {
            let from = column.from.as_ref()?;
            Some(format!("{} = ({from})", quote(&column.name)))
        });
        sets.collect::<Vec<_>>().join(", ")
    }
}

/// The groups, each with its columns in the order of their side. One with all where what an expression reads is not known, or where
/// one would have a single direction.
pub(super) fn groups(sides: &Sides) -> Vec<Group<'_>> {
    let all: Vec<&Column> = sides.old.iter().chain(&sides.new).collect();
    let is_known = all
        .iter()
        .all(|column| column.from.is_none() || column.reads.is_some());
    if is_known {
        let groups: Vec<Group<'_>> = connected(&all)
            .iter()
            .map(|names| sides.group(|column| names.contains(&column.name)))
            .collect();
        if groups.iter().all(Group::is_whole) {
            return groups;
        }
    }
    vec![sides.group(|_| true)]
}

impl Sides {
    fn group(&self, is_in: impl Fn(&Column) -> bool) -> Group<'_> {
        Group {
            old: self.old.iter().filter(|column| is_in(column)).collect(),
            new: self.new.iter().filter(|column| is_in(column)).collect(),
        }
    }
}

/// The names that hang together; what is of no side ties nobody.
fn connected(all: &[&Column]) -> Vec<BTreeSet<String>> {
    let mut groups: Vec<BTreeSet<String>> = Vec::new();
    for column in all {
        let reads = column.reads.iter().flatten();
        let mut one: BTreeSet<String> = reads
            .filter(|name| all.iter().any(|other| other.name == **name))
            .cloned()
            .collect();
        one.insert(column.name.clone());
        let (tied, apart) = groups
            .into_iter()
            .partition::<Vec<_>, _>(|group| !group.is_disjoint(&one));
        groups = apart;
        one.extend(tied.into_iter().flatten());
        groups.push(one);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::connected;
    use crate::sync::Column;

    fn column(name: &str, reads: &[&str]) -> Column {
        Column {
            name: name.to_owned(),
            type_sql: "text".to_owned(),
            compares: true,
            not_null: false,
            default: None,
            from: Some(reads.concat()),
            reads: Some(reads.iter().map(|name| (*name).to_owned()).collect()),
        }
    }

    #[test]
    fn columns_hang_together_over_any_number_of_expressions_and_not_over_what_is_of_no_side() {
        let columns = [
            column("a", &["x", "note"]),
            column("b", &["y", "note"]),
            column("c", &["z"]),
            column("x", &["a"]),
            column("y", &["b"]),
            column("z", &["c", "b"]),
        ];
        let mut groups = connected(&columns.iter().collect::<Vec<_>>());
        groups.sort();
        let names: Vec<String> = groups
            .iter()
            .map(|group| group.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(names, ["ax", "bcyz"]);
    }
}
