//! What a request is recognised by: SHA-256 over name, class and the request as canonical JSON.
//!
//! Invariant: the order of an object's fields does not matter. (A `serde_json::Map` is sorted or not, depending on a feature
//! that any crate of a build may switch on, so the order is made here.)

use aegis_model::Class;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The fingerprint of a request.
pub(crate) fn fingerprint(name: &str, class: Class, request: &Value) -> Vec<u8> {
    let mut text = String::new();
    write(&Value::String(name.to_owned()), &mut text);
    write(&Value::String(class.word().to_owned()), &mut text);
    write(request, &mut text);
    Sha256::digest(text.as_bytes()).to_vec()
}

/// A fingerprint for people.
pub(crate) fn shown(fingerprint: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four: u8| char::from(DIGITS[usize::from(four)]);
    fingerprint
        .iter()
        .take(8)
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            text.push('{');
            for name in names {
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                write(&fields[name], text);
                text.push(',');
            }
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_does_not_matter_and_everything_else_does() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":[1,2]}"#).unwrap();
        let same: Value = serde_json::from_str(r#"{"b":[1,2],"a":1}"#).unwrap();
        let of = |name, class, value: &Value| fingerprint(name, class, value);
        let base = of("charge", Class::Idempotent, &one);
        assert_eq!(base, of("charge", Class::Idempotent, &same));
        assert_ne!(base, of("refund", Class::Idempotent, &one));
        assert_ne!(base, of("charge", Class::Blind, &one));
        for other in [
            json!({"a": 1, "b": [2, 1]}),
            json!({"a": "1", "b": [1, 2]}),
            json!({"a": 1}),
        ] {
            assert_ne!(base, of("charge", Class::Idempotent, &other));
        }
        assert_eq!(shown(&base).len(), 16);
    }
}
