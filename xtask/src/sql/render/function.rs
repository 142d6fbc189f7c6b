//! The function of a statement, and the struct of its parameters when they are many.

use super::super::describe::Described;
use super::super::header::{Fence, Returns};
use super::super::names::{identifier, pascal_case};
use super::item::constant;
use super::text::{markdown, struct_lint};

/// clippy's limit of seven arguments, less the session.
const MAX_ARGUMENTS: usize = 6;

/// And its limit of booleans, which nobody can tell apart in a call.
const MAX_BOOLS: usize = 3;

/// The documented function.
pub(super) fn function(one: &Described<'_>) -> String {
    let header = &one.statement.header;
    if header.returns == Returns::Copy {
        return String::new();
    }
    let name = pascal_case(&one.statement.verb);
    let upper = constant(one);
    let batched = !header.batch.is_empty();
    let bools = one
        .params
        .iter()
        .filter(|param| param.rust == "bool")
        .count();
    let in_struct = one.params.len() + usize::from(batched) > MAX_ARGUMENTS || bools > MAX_BOOLS;

    let (before, mut arguments, values) = if in_struct {
        let lifetime = if borrows(one) { "<'_>" } else { "" };
        (
            params_struct(one, &name),
            format!("params: &{name}Params{lifetime}"),
            values(one, "params."),
        )
    } else {
        (String::new(), arguments(one), values(one, ""))
    };
    let mut text = "0".to_owned();
    if batched {
        arguments = format!("batch: usize, {arguments}");
        text = format!("batch_text(&{upper}_BATCHES, batch)");
    }
    let sent = |call| format!("session.{call}(&{upper}, {text}, &[{values}]).await");
    let (given, body) = match header.returns {
        Returns::Many => (
            format!("Vec<{name}Row>"),
            format!(
                "let rows = {}?; rows.iter().map({name}Row::read).collect()",
                sent("query")
            ),
        ),
        Returns::Optional => (
            format!("Option<{name}Row>"),
            format!(
                "let row = {}?; row.as_ref().map({name}Row::read).transpose()",
                sent("query_opt")
            ),
        ),
        Returns::One => (
            format!("{name}Row"),
            format!("let row = {}?; {name}Row::read(&row)", sent("query_one")),
        ),
        Returns::Count | Returns::Copy => ("u64".to_owned(), sent("execute")),
    };
    format!(
        "{before}{}pub async fn {}<S: Session + ?Sized>(session: &S, {arguments}) -> Result<{given}, Error> {{ {body} }}\n\n",
        docs(one),
        identifier(&one.statement.verb),
    )
}

fn borrows(one: &Described<'_>) -> bool {
    one.params.iter().any(|param| param.rust.contains("'a"))
}

fn arguments(one: &Described<'_>) -> String {
    let pairs = one.statement.texts[0].params.iter().zip(&one.params);
    let arguments: Vec<String> = pairs
        .map(|(param, kind)| {
            format!(
                "{}: {}",
                identifier(&param.name),
                kind.rust.replace("'a ", "")
            )
        })
        .collect();
    arguments.join(", ")
}

fn values(one: &Described<'_>, owner: &str) -> String {
    let params = one.statement.texts[0].params.iter();
    let values: Vec<String> = params
        .map(|param| format!("&{owner}{}", identifier(&param.name)))
        .collect();
    values.join(", ")
}

fn params_struct(one: &Described<'_>, name: &str) -> String {
    let lifetime = if borrows(one) { "<'a>" } else { "" };
    let fields: Vec<String> = one.statement.texts[0]
        .params
        .iter()
        .zip(&one.params)
        .map(|(param, kind)| {
            let (field, sql) = (identifier(&param.name), kind.constant.to_lowercase());
            format!(
                "/// Parameter `:{}` ({sql}).\npub {field}: {},\n",
                param.name, kind.rust
            )
        })
        .collect();
    let lint = struct_lint(one.params.iter().map(|param| param.rust.as_str()));
    format!(
        "/// What [`{}`] takes.\n{lint}#[derive(Debug, Clone, Copy)]\npub struct {name}Params{lifetime} {{ {} }}\n\n",
        one.statement.verb,
        fields.concat(),
    )
}

fn docs(one: &Described<'_>) -> String {
    let header = &one.statement.header;
    let fence = match &header.fence {
        Fence::Includes(names) => names.join(", "),
        Fence::None(reason) => format!("none: {reason}"),
    };
    let mut lines: Vec<String> = header.prose.iter().map(|line| markdown(line)).collect();
    lines.push(String::new());
    lines.push(format!("- Lock: {}", markdown(&header.lock)));
    lines.push(format!("- Index: {}", markdown(&header.index)));
    lines.push(format!("- Fence: {}", markdown(&fence)));
    if !header.batch.is_empty() {
        lines.push(
            "- Batch: the smallest size that holds `batch` rows, else the largest.".to_owned(),
        );
    }
    lines
        .iter()
        .map(|line| format!("/// {line}").trim_end().to_owned() + "\n")
        .collect()
}
