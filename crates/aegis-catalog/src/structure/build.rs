//! From what was read to what can be right or wrong. Each kind says which of its fields are left out, so that a new field of the
//! model is structure until somebody decides otherwise.

use serde::Serialize;
use serde_json::Value;

use super::{Key, Kind, MODEL, Shape, Structure};
use crate::catalog::Catalog;
use crate::model::{Grant, Index, Relation};
use crate::name::{Name, shown};

impl Catalog {
    /// The structure of what was read.
    pub fn structure(&self) -> Structure {
        let mut of = Structure {
            model: MODEL,
            ..Structure::empty(self.server_major())
        };
        for schema in &self.schemas {
            let name = Name::new("", &*schema.name);
            of.add(Key::new(Kind::Schema, &name), schema, &["name"]);
        }
        for relation in &self.relations {
            of.add_relation(relation);
        }
        for index in &self.indexes {
            of.add_index(index);
        }
        for c in &self.constraints {
            let key = Key::part(Kind::Constraint, &c.table, &c.name);
            of.add(key, c, &["table", "name"]);
        }
        for t in &self.triggers {
            let key = Key::part(Kind::Trigger, &t.table, &t.name);
            of.add(key, t, &["table", "name"]);
        }
        for r in &self.rules {
            let key = Key::part(Kind::Rule, &r.table, &r.name);
            of.add(key, r, &["table", "name"]);
        }
        for p in &self.policies {
            let key = Key::part(Kind::Policy, &p.table, &p.name);
            of.add(key, p, &["table", "name"]);
        }
        for f in &self.functions {
            let key = Key::part(Kind::Function, &f.name, &f.arguments);
            of.add(key, f, &["name", "arguments", "mentions"]);
        }
        for t in &self.types {
            of.add(Key::new(Kind::Type, &t.name), t, &["name", "base_name"]);
        }
        for s in &self.sequences {
            of.add(Key::new(Kind::Sequence, &s.name), s, &["name"]);
        }
        for grant in &self.grants {
            of.add(grant_key(grant), grant, &["object", "column"]);
        }
        for e in &self.extensions {
            let name = Name::new("", &*e.name);
            of.add(Key::new(Kind::Extension, &name), e, &["name"]);
        }
        for p in &self.publications {
            let name = Name::new("", &*p.name);
            of.add(Key::new(Kind::Publication, &name), p, &["name"]);
        }
        for e in &self.event_triggers {
            let name = Name::new("", &*e.name);
            of.add(Key::new(Kind::EventTrigger, &name), e, &["name"]);
        }
        for s in &self.statistics {
            of.add(Key::new(Kind::Statistics, &s.name), s, &["name"]);
        }
        for o in &self.others {
            let name = Name::new(o.schema.clone().unwrap_or_default(), &*o.identity);
            let key = Key::part(Kind::Other, &name, &o.kind);
            of.add(key, o, &["kind", "identity", "schema"]);
        }
        of
    }
}

impl Structure {
    fn add<T: Serialize>(&mut self, key: Key, value: &T, left_out: &[&str]) -> &mut Shape {
        // The model has only maps with names as keys, for which this cannot fail.
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        let mut shape = Shape::new();
        if let Value::Object(fields) = value {
            for (field, value) in fields {
                if !left_out.contains(&field.as_str()) {
                    shape.insert(field, plain(value));
                }
            }
        }
        self.elements.entry(key).insert_entry(shape).into_mut()
    }

    fn add_relation(&mut self, relation: &Relation) {
        let order = relation.columns.iter().map(|c| Value::from(&*c.name));
        let order: Vec<Value> = order.collect();
        let key = Key::new(Kind::Relation, &relation.name);
        let left_out = [
            "name",
            "columns",
            "size",
            "default_partition",
            "partition_of",
        ];
        let shape = self.add(key, relation, &left_out);
        shape.insert("column_order".to_owned(), Value::Array(order));
        if let Some(place) = &relation.partition_of {
            let parent = place.parent.to_string();
            shape.insert("partition_of".to_owned(), Value::from(parent));
            shape.insert("bound".to_owned(), Value::from(&*place.bound));
            shape.insert(
                "detach_pending".to_owned(),
                Value::from(place.detach_pending),
            );
        }
        for column in &relation.columns {
            let key = Key::part(Kind::Column, &relation.name, &column.name);
            let left_out = [
                "name",
                "position",
                "type_name",
                "element",
                "not_null_constraint",
            ];
            self.add(key, column, &left_out);
        }
    }

    fn add_index(&mut self, index: &Index) {
        let keys = index.keys.iter().map(|key| Value::from(key.to_string()));
        let keys: Vec<Value> = keys.collect();
        let key = Key::new(Kind::Index, &index.name);
        let shape = self.add(key, index, &["name", "definition", "bytes", "keys"]);
        shape.insert("keys".to_owned(), Value::Array(keys));
    }
}

/// A value without maps: names become the words people use for them, other maps a list of `field: value`.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            if let (2, Some(Value::String(schema)), Some(Value::String(name))) =
                (fields.len(), fields.get("schema"), fields.get("name"))
            {
                return Value::from(Name::new(&**schema, &**name).to_string());
            }
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            let words = fields
                .into_iter()
                .map(|(field, value)| format!("{field}: {}", super::words::value(&plain(value))));
            Value::from(words.collect::<Vec<String>>().join(", "))
        }
        Value::Array(values) => Value::Array(values.into_iter().map(plain).collect()),
        other => other,
    }
}

fn grant_key(grant: &Grant) -> Key {
    let on = match &grant.column {
        Some(column) => format!("{} {}", grant.kind, shown(column)),
        None => grant.kind.clone(),
    };
    let part = format!("{on} to {}", shown_role(&grant.grantee));
    Key::part(Kind::Grant, &grant.object, &part)
}

/// `PUBLIC` is everybody; a role of that name is in quotes.
fn shown_role(role: &str) -> String {
    if role == "PUBLIC" {
        role.to_owned()
    } else {
        shown(role)
    }
}
