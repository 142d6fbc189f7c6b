//! The list of forms, and the cases that come of it: each form by itself and with each thing that may hang on its column.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// The committed list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forms {
    setup: String,
    hang: BTreeMap<String, String>,
    #[serde(rename = "form")]
    pub(super) list: Vec<Form>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub(super) id: String,
    statement: String,
    #[serde(default, rename = "type")]
    data_type: Option<String>,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    setup: String,
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    since: u32,
    #[serde(default)]
    concurrent: bool,
    #[serde(default)]
    table: Option<String>,
}

/// One thing to run.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) form: String,
    pub(super) with: Option<String>,
    pub(super) setup: String,
    pub(super) statement: String,
    pub(super) concurrent: bool,
    /// The table on which a second session tries to read and write, where the form is concurrent.
    pub(super) table: String,
}

pub(super) fn load(path: &Path) -> anyhow::Result<Forms> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let forms: Forms = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let mut seen = std::collections::BTreeSet::new();
    for form in &forms.list {
        if !seen.insert(&form.id) {
            bail!("{}: the id {} stands there twice", path.display(), form.id);
        }
        for with in &form.with {
            if !forms.hang.contains_key(with) {
                bail!("{}: {}: nothing is called {with}", path.display(), form.id);
            }
        }
    }
    Ok(forms)
}

impl Forms {
    /// Everything that a server of this major is asked, in the order of the list.
    pub(super) fn cases(&self, major: u32) -> Vec<Case> {
        let mut cases = Vec::new();
        for form in self.list.iter().filter(|form| form.since <= major) {
            let data_type = form.data_type.as_deref().unwrap_or("text");
            let value = form.value.as_deref().unwrap_or("'a'");
            let fill = |text: &str| text.replace("{type}", data_type).replace("{value}", value);
            for with in std::iter::once(None).chain(form.with.iter().map(Some)) {
                let hung = with.and_then(|with| self.hang.get(with));
                cases.push(Case {
                    form: form.id.clone(),
                    with: with.cloned(),
                    setup: fill(&format!(
                        "{};\n{};\n{}",
                        self.setup,
                        form.setup,
                        hung.map_or("", String::as_str)
                    )),
                    statement: form.statement.clone(),
                    concurrent: form.concurrent,
                    table: form.table.clone().unwrap_or_else(|| "t".to_owned()),
                });
            }
        }
        cases
    }
}
