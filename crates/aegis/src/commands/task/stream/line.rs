//! One line of a file of tasks: what it may say, and what is wrong with it.
//!
//! Invariant: the input is taken byte for byte, so that no number of it changes on the way.

use std::collections::BTreeMap;

use aegis_store::{NewTask, StoreError};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    kind: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    queue: Option<String>,
    tenant: Option<String>,
    protocol: Option<i32>,
    key: Option<String>,
    run_at: Option<Timestamp>,
    priority: Option<i16>,
    deadline_at: Option<Timestamp>,
    labels: Option<BTreeMap<String, String>>,
    max_failures: Option<i32>,
    max_crashes: Option<i32>,
    backoff_initial_ms: Option<i64>,
    backoff_cap_ms: Option<i64>,
    schedule_to_start_ms: Option<i64>,
    start_to_close_ms: Option<i64>,
    kill_after_ms: Option<i64>,
}

/// The task of a line; what it leaves out comes from `template`.
///
/// # Errors
/// What is wrong, for a person.
pub(super) fn task(line: &[u8], template: &NewTask) -> Result<NewTask, String> {
    // An array would be read as an object without names.
    if line.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(r#"it is no JSON object; write {"kind": …, "input": …}"#.to_owned());
    }
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let what = text.split(" at line 1 column ").next().unwrap_or(&text);
        format!("{what}, at column {}", error.column())
    })?;
    let mut policy = template.policy;
    let set = |target: &mut i32, value: Option<i32>| *target = value.unwrap_or(*target);
    set(&mut policy.max_failures, line.max_failures);
    set(&mut policy.max_crashes, line.max_crashes);
    let set = |target: &mut i64, value: Option<i64>| *target = value.unwrap_or(*target);
    set(&mut policy.backoff_initial_ms, line.backoff_initial_ms);
    set(&mut policy.backoff_cap_ms, line.backoff_cap_ms);
    set(&mut policy.kill_after_ms, line.kill_after_ms);
    policy.schedule_to_start_ms = line.schedule_to_start_ms.or(policy.schedule_to_start_ms);
    policy.start_to_close_ms = line.start_to_close_ms.or(policy.start_to_close_ms);
    let task = NewTask {
        kind: line.kind.unwrap_or_else(|| template.kind.clone()),
        queue: line.queue.unwrap_or_else(|| template.queue.clone()),
        tenant: line.tenant.unwrap_or_else(|| template.tenant.clone()),
        input: line.input.map_or_else(
            || template.input.clone(),
            |input| input.get().as_bytes().to_vec(),
        ),
        protocol: line.protocol.unwrap_or(template.protocol),
        key: line.key,
        run_at: line.run_at.or(template.run_at),
        priority: line.priority.unwrap_or(template.priority),
        deadline_at: line.deadline_at.or(template.deadline_at),
        labels: line
            .labels
            .map(|labels| json!(labels))
            .or_else(|| template.labels.clone()),
        policy,
        trace: template.trace,
    };
    if task.kind.is_empty() {
        return Err("it has no kind, and the command line names none".to_owned());
    }
    task.check(0).map_err(|error| problem(&error))?;
    Ok(task)
}

/// What the store says of a task, without its place in a batch.
pub(super) fn problem(error: &StoreError) -> String {
    match error {
        StoreError::BadTask { field, problem, .. } => format!("{field} {problem}"),
        StoreError::TooLarge { bytes, limit, .. } => format!(
            "the input has {bytes} bytes; the limit is {limit}; store large data elsewhere and pass a reference"
        ),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<NewTask, String> {
        let template = NewTask {
            queue: "q".to_owned(),
            ..NewTask::new("k", "{}")
        };
        task(line.as_bytes(), &template)
    }

    /// The corpus of lines.
    const LINES: [&str; 5] = [
        "{}",
        r#"{"kind":"k","input":{"n":[1,2.5e300]},"tenant":"t","labels":{"a":"b"},"key":"x"}"#,
        r#"{"run_at":"2026-11-30T00:00:00Z","deadline_at":"9999-12-31T23:59:59Z","priority":9}"#,
        r#"{"max_failures":2147483648,"backoff_initial_ms":-1,"start_to_close_ms":1e3}"#,
        r#"{"kind":"\u0000","input":"\ud800"}"#,
    ];

    #[test]
    fn any_line_is_a_task_or_refused() {
        let template = NewTask::new("k", "{}");
        crate::changed_tests::each(&LINES, |bytes| match task(bytes, &template) {
            Ok(task) => {
                // What is told of a refusal by the store is told of a task that was read, too.
                if let Err(error) = task.check(0) {
                    assert!(!problem(&error).is_empty());
                }
            }
            Err(error) => assert!(!error.is_empty()),
        });
    }

    #[test]
    fn what_a_line_leaves_out_comes_from_the_command_line() {
        let task =
            parse(r#"{"input": {"n": 12345678901234567890123}, "tenant": "t", "max_failures": 3}"#)
                .unwrap();
        assert_eq!(
            (
                task.kind.as_str(),
                task.queue.as_str(),
                task.tenant.as_str()
            ),
            ("k", "q", "t")
        );
        // Not a digit of it is lost.
        assert_eq!(task.input, br#"{"n": 12345678901234567890123}"#);
        assert_eq!((task.policy.max_failures, task.policy.max_crashes), (3, 3));
        assert_eq!(parse("{}").unwrap().input, b"{}");
    }

    #[test]
    fn each_mistake_is_named() {
        for (line, told) in [
            ("", "no JSON object"),
            ("[1]", "no JSON object"),
            (
                "{\"kind\": \"a\"",
                "EOF while parsing an object, at column 12",
            ),
            ("{\"knid\": \"a\"}", "unknown field `knid`"),
            (
                "{\"kind\": 5}",
                "invalid type: integer `5`, expected a string",
            ),
            (
                "{\"kind\": \"a\", \"kind\": \"b\"}",
                "duplicate field `kind`",
            ),
            ("{\"kind\": \"\"}", "it has no kind"),
            (
                "{\"priority\": 11}",
                "priority is 11; use 0 (first) to 9 (last)",
            ),
            ("{\"run_at\": \"tomorrow\"}", "column"),
            (
                "{\"labels\": {\"a\": 1}}",
                "invalid type: integer `1`, expected a string",
            ),
            ("{} {}", "trailing characters"),
            ("{\"input\": \"\\u0000\"}", "input has the character"),
        ] {
            let said = parse(line).unwrap_err();
            assert!(said.contains(told), "{line}: {said}");
        }
        let large = format!("{{\"input\": \"{}\"}}", "x".repeat(262_145));
        assert!(parse(&large).unwrap_err().contains("the limit is 262144"));
    }
}
