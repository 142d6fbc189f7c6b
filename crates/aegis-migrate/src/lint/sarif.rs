//! SARIF 2.1.0 (docs.oasis-open.org/sarif/sarif/v2.1.0), for code scanning.

use aegis_ddl::{Level, rules};
use serde_json::{Value, json};

use super::Judged;

/// What stands for a statement that may not run where it stands though no rule speaks.
const PLACE: &str = "class";

/// The whole log.
pub fn sarif(judged: &[Judged]) -> Value {
    let mut rules: Vec<&str> = judged
        .iter()
        .flat_map(|one| one.rules.iter().copied())
        .collect();
    rules.push(PLACE);
    rules.sort_unstable();
    rules.dedup();
    let results: Vec<Value> = judged.iter().flat_map(|one| results(one, &rules)).collect();
    let described: Vec<Value> = rules.iter().map(|name| describe(name)).collect();
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "aegis migrate lint",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": described,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn describe(name: &str) -> Value {
    let (about, safe) = rules::find(name).map_or(
        (
            "the statement may not run where it stands",
            "move it to the phase of its class",
        ),
        |rule| (rule.about, rule.safe),
    );
    json!({
        "id": name,
        "shortDescription": { "text": about },
        "help": { "text": safe },
    })
}

fn results(one: &Judged, rules: &[&str]) -> Vec<Value> {
    let result = |rule: &str, level: &str, text: String| {
        json!({
            "ruleId": rule,
            "ruleIndex": rules.iter().position(|known| *known == rule),
            "level": level,
            "message": { "text": text },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": uri(&one.file) },
                "region": region(one),
            } }],
            "properties": { "class": one.class, "passes": one.passes, "lock": one.lock },
        })
    };
    let mut all = Vec::new();
    for finding in &one.findings {
        // What passes is not an error of the build.
        let level = match finding.level {
            Level::Error if !one.passes => "error",
            Level::Error | Level::Warning => "warning",
            Level::Notice => "note",
        };
        let mut value = result(
            finding.rule,
            level,
            format!(
                "Class {}: {}. Safe form: {}.",
                finding.class, finding.message, finding.safe
            ),
        );
        if let Some(reason) = &finding.overridden {
            value["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
        }
        all.push(value);
    }
    if !one.passes
        && one
            .findings
            .iter()
            .all(|finding| finding.overridden.is_some())
    {
        let text = format!(
            "Class {} ({}) may not stand here.",
            one.class,
            one.class.meaning()
        );
        all.push(result(PLACE, "error", text));
    }
    all
}

fn region(one: &Judged) -> Value {
    one.column.map_or_else(
        || json!({ "startLine": one.line }),
        |column| json!({ "startLine": one.line, "startColumn": column }),
    )
}

/// A path as a relative reference: with slashes, and percent signs for what a URI may not hold.
fn uri(path: &str) -> String {
    use std::fmt::Write as _;
    let mut uri = String::with_capacity(path.len());
    for byte in path.strip_prefix("./").unwrap_or(path).bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                uri.push(char::from(byte));
            }
            // Into a string: cannot fail.
            other => write!(uri, "%{other:02X}").unwrap_or_default(),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_path_becomes_a_reference() {
        assert_eq!(uri("./a b/ä:1.sql"), "a%20b/%C3%A4%3A1.sql");
    }
}
