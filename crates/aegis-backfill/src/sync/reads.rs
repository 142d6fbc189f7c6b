//! Which columns an expression reads, and what follows: which columns a write leaves alone, and which columns are judged together.
//!
//! Invariants: what is not known reads everything; a column is left alone only when nothing that its expression reads was written, and
//! the row agrees without it; columns of two groups have nothing to do with each other, in either direction.

use std::collections::BTreeSet;

use super::{Column, Sides};

/// Columns of both sides that hang together: an expression of one reads another.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) old: Vec<&'a Column>,
    pub(super) new: Vec<&'a Column>,
}

impl Group<'_> {
    /// Both directions are there to be judged.
    fn is_whole(&self) -> bool {
        let computed = |side: &[&Column]| side.iter().any(|column| column.from.is_some());
        computed(&self.old) && computed(&self.new)
    }
}

impl Column {
    /// What its expression reads, when a write of `other` may leave all of that alone; none: each write of that side is one of it.
    pub(super) fn may_stay(&self, other: &[Self]) -> Option<&BTreeSet<String>> {
        let reads = self.reads.as_ref().filter(|reads| !reads.is_empty())?;
        let is_always = other.iter().all(|column| reads.contains(&column.name));
        (self.from.is_some() && !is_always).then_some(reads)
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
    /// The same, as if nobody knew what an expression reads.
    pub(super) fn unread(&self) -> Self {
        let mut sides = self.clone();
        for column in sides.old.iter_mut().chain(&mut sides.new) {
            column.reads = None;
        }
        sides
    }

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
