//! `schema.<major>.json`, and the fingerprint. Both are written from one canonical form: entries in the order of their keys,
//! fields in the order of their names, whatever features of serde_json some other crate turns on.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Key, Kind, MODEL, Shape, Structure, TOLD_FIELDS};
use crate::error::Error;
use crate::name::Name;

/// The format of the file; another one is refused.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    model: u32,
    server_major: u32,
    fingerprint: String,
    elements: Vec<Element>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Element {
    kind: Kind,
    schema: String,
    name: String,
    part: String,
    shape: Shape,
}

impl Structure {
    /// SHA-256 in hexadecimal over everything that is judged, with the model's version and the server's major version. Two
    /// databases with one fingerprint have one structure; the order of columns is not in it.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{}\n{}\n", self.model, self.server_major));
        for (key, shape) in &self.elements {
            let judged: Shape = shape
                .iter()
                .filter(|(field, _)| !TOLD_FIELDS.contains(&field.as_str()))
                .map(|(field, value)| (field.clone(), value.clone()))
                .collect();
            // Strings, numbers and lists of them: there is nothing that could fail.
            let line =
                serde_json::to_string(&(key.kind, &key.schema, &key.name, &key.part, judged));
            hash.update(line.unwrap_or_default());
            hash.update("\n");
        }
        let mut text = String::new();
        for byte in hash.finalize() {
            // Writing to a String cannot fail.
            write!(text, "{byte:02x}").ok();
        }
        text
    }

    /// The file that `seal` writes.
    ///
    /// # Errors
    /// When a value has no JSON form, which no shape has.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let elements = self.elements.iter().map(|(key, shape)| Element {
            kind: key.kind,
            schema: key.schema.clone(),
            name: key.name.clone(),
            part: key.part.clone(),
            shape: shape.clone(),
        });
        let mut text = serde_json::to_string_pretty(&File {
            format: FORMAT,
            model: self.model,
            server_major: self.server_major,
            fingerprint: self.fingerprint(),
            elements: elements.collect(),
        })?;
        text.push('\n');
        Ok(text)
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// [`Error::Sealed`] when it is none or its fingerprint is another (somebody edited it), [`Error::SealedFormat`] when this
    /// program does not know its format.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let broken = |source: serde_json::Error| Error::Sealed {
            why: source.to_string(),
        };
        let head: Head = serde_json::from_str(text).map_err(broken)?;
        if head.format != FORMAT {
            return Err(Error::SealedFormat {
                found: head.format,
                format: FORMAT,
            });
        }
        let file: File = serde_json::from_str(text).map_err(broken)?;
        let elements = file.elements.into_iter().map(|e| {
            let name = Name::new(e.schema, e.name);
            (Key::part(e.kind, &name, &e.part), e.shape)
        });
        let structure = Self {
            model: file.model,
            server_major: file.server_major,
            elements: elements.collect(),
            gone: std::collections::BTreeSet::new(),
        };
        // A file of another model cannot be hashed again here; comparing it is refused anyway.
        if structure.model == MODEL && structure.fingerprint() != file.fingerprint {
            return Err(Error::Sealed {
                why: "its fingerprint is not that of its contents: it was edited by hand or cut"
                    .to_owned(),
            });
        }
        Ok(structure)
    }
}
