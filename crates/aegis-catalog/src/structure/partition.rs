//! Partitions that no change names (a job makes one a day) are compared with their parent: same columns, every constraint, index
//! and trigger of the parent there, valid and enabled. What such a partition has beyond that is told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Difference, Key, Kind, Severity, Shape, Structure, What};

/// The fields of a column that a partition shares with its parent.
const SHARED: &[&str] = &[
    "data_type",
    "collation",
    "generated",
    "not_null",
    "not_null_valid",
];

/// Partitions of expected tables that the expected structure does not name, as `app.events_1` → its parent's key.
pub(crate) struct Unnamed {
    of: BTreeMap<String, (Key, Key)>,
}

/// Finds them, with partitions of partitions.
pub(crate) fn unnamed(expected: &Structure, found: &Structure) -> Unnamed {
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<(Key, String)> = Vec::new();
    for (key, shape) in &found.elements {
        if key.kind != Kind::Relation {
            continue;
        }
        if expected.elements.contains_key(key) {
            known.insert(key.holder().to_string());
        } else if let Some(Value::String(parent)) = shape.get("partition_of") {
            open.push((key.clone(), parent.clone()));
        }
    }
    let keys: BTreeMap<String, Key> = found
        .elements
        .keys()
        .filter(|key| key.kind == Kind::Relation)
        .map(|key| (key.holder().to_string(), key.clone()))
        .collect();
    let mut of = BTreeMap::new();
    // Each round finds a level; a tree has no more levels than tables.
    loop {
        let before = of.len();
        open.retain(|(key, parent)| {
            let Some(parent_key) = keys.get(parent).filter(|_| known.contains(parent)) else {
                return true;
            };
            let name = key.holder().to_string();
            known.insert(name.clone());
            of.insert(name, (key.clone(), parent_key.clone()));
            false
        });
        if of.len() == before {
            return Unnamed { of };
        }
    }
}

impl Unnamed {
    /// Whether the element belongs to such a partition and is judged with it.
    pub(crate) fn covers(&self, key: &Key, shape: &Shape) -> bool {
        match key.kind {
            Kind::Relation | Kind::Column | Kind::Constraint | Kind::Trigger => {
                self.of.contains_key(&key.holder().to_string())
            }
            Kind::Index => shape
                .get("table")
                .and_then(Value::as_str)
                .is_some_and(|table| self.of.contains_key(table)),
            _ => false,
        }
    }

    /// What each lacks.
    pub(crate) fn compare(&self, found: &Structure) -> Vec<Difference> {
        let parts = Parts::of(found);
        let mut differences = Vec::new();
        for (key, parent) in self.of.values() {
            let mut told = Vec::new();
            let own = |field: &str| found.elements.get(key).and_then(|shape| shape.get(field));
            if own("detach_pending") == Some(&Value::Bool(true)) {
                told.push("its DETACH CONCURRENTLY was cut short; ALTER TABLE … DETACH PARTITION … FINALIZE ends it".to_owned());
            }
            parts.columns(key, parent, &mut told);
            parts.constraints(key, parent, &mut told);
            parts.indexes(key, parent, &mut told);
            parts.triggers(key, parent, &mut told);
            let wrong = told.into_iter().map(|told| What::Partition {
                parent: parent.holder().to_string(),
                told,
            });
            differences.extend(wrong.map(|what| Difference::new(key, Severity::Wrong, what)));
        }
        differences
    }
}

/// What belongs to each table, by the table's name.
struct Parts<'a> {
    by_table: BTreeMap<String, Vec<(&'a Key, &'a Shape)>>,
}

impl<'a> Parts<'a> {
    fn of(structure: &'a Structure) -> Self {
        let mut by_table: BTreeMap<String, Vec<(&Key, &Shape)>> = BTreeMap::new();
        for (key, shape) in &structure.elements {
            let table = match key.kind {
                Kind::Column | Kind::Constraint | Kind::Trigger => key.holder().to_string(),
                Kind::Index => match shape.get("table").and_then(Value::as_str) {
                    Some(table) => table.to_owned(),
                    None => continue,
                },
                _ => continue,
            };
            by_table.entry(table).or_default().push((key, shape));
        }
        Self { by_table }
    }

    fn all(&self, table: &Key, kind: Kind) -> impl Iterator<Item = (&'a Key, &'a Shape)> {
        let parts = self.by_table.get(&table.holder().to_string());
        let parts = parts.into_iter().flatten().copied();
        parts.filter(move |(key, _)| key.kind == kind)
    }

    fn columns(&self, key: &Key, parent: &Key, told: &mut Vec<String>) {
        for (column, should) in self.all(parent, Kind::Column) {
            let own = self
                .all(key, Kind::Column)
                .find(|(k, _)| k.part == column.part);
            let Some((_, is)) = own else {
                told.push(format!("column {} is missing", column.part));
                continue;
            };
            for field in SHARED
                .iter()
                .filter(|field| should.get(**field) != is.get(**field))
            {
                // A partition may be stricter than its parent.
                if *field == "not_null" && is.get(*field) == Some(&Value::Bool(true)) {
                    continue;
                }
                let word =
                    |shape: &Shape| super::words::value(shape.get(*field).unwrap_or(&Value::Null));
                told.push(format!(
                    "column {}: {} is {}, its parent has {}",
                    column.part,
                    super::words::field(field),
                    word(is),
                    word(should)
                ));
            }
        }
    }

    fn constraints(&self, key: &Key, parent: &Key, told: &mut Vec<String>) {
        let yes = |shape: &Shape, field: &str| shape.get(field) == Some(&Value::Bool(true));
        for (constraint, should) in self.all(parent, Kind::Constraint) {
            if yes(should, "no_inherit") || should.get("kind") == Some(&Value::from("trigger")) {
                continue;
            }
            // A check keeps its name; a key's and a foreign key's is the partition's own.
            let same = self.all(key, Kind::Constraint).find(|(own, is)| {
                is.get("kind") == should.get("kind")
                    && is.get("definition") == should.get("definition")
                    && (is.get("kind") != Some(&Value::from("check"))
                        || own.part == constraint.part)
            });
            match same {
                None => told.push(format!("constraint {} is missing", constraint.part)),
                Some((_, is)) if yes(should, "validated") && !yes(is, "validated") => {
                    told.push(format!("constraint {} is not validated", constraint.part));
                }
                Some(_) => {}
            }
        }
    }

    fn indexes(&self, key: &Key, parent: &Key, told: &mut Vec<String>) {
        for (index, _) in self.all(parent, Kind::Index) {
            let name = index.holder().to_string();
            let attached = self
                .all(key, Kind::Index)
                .find(|(_, is)| is.get("parent").and_then(Value::as_str) == Some(&name));
            match attached {
                None => told.push(format!("no index of it is attached to {name}")),
                Some((own, is)) if is.get("valid") != Some(&Value::Bool(true)) => {
                    told.push(format!("index {} is not valid", own.holder()));
                }
                Some(_) => {}
            }
        }
    }

    fn triggers(&self, key: &Key, parent: &Key, told: &mut Vec<String>) {
        let rows = |shape: &Shape| {
            let definition = shape.get("definition").and_then(Value::as_str);
            definition.is_some_and(|text| text.contains(" FOR EACH ROW "))
        };
        for (trigger, should) in self.all(parent, Kind::Trigger).filter(|(_, s)| rows(s)) {
            let own = self
                .all(key, Kind::Trigger)
                .find(|(k, _)| k.part == trigger.part);
            match own {
                None => told.push(format!("trigger {} is missing", trigger.part)),
                Some((_, is)) if is.get("enabled") != should.get("enabled") => told.push(format!(
                    "trigger {} is {}, its parent's is {}",
                    trigger.part,
                    super::words::value(is.get("enabled").unwrap_or(&Value::Null)),
                    super::words::value(should.get("enabled").unwrap_or(&Value::Null))
                )),
                Some(_) => {}
            }
        }
    }
}
