//! The items of a statement beside its function: the static, its batch sizes, its row.

use super::super::describe::Described;
use super::super::header::Returns;
use super::super::names::{identifier, pascal_case};
use super::text::{raw_string, struct_lint};

/// The name of the statement's static.
pub(super) fn constant(one: &Described<'_>) -> String {
    one.statement.verb.to_uppercase()
}

/// The static, and the sizes it has texts for.
pub(super) fn statement(one: &Described<'_>) -> String {
    let statement = one.statement;
    let name = format!("{}/{}", statement.aggregate, statement.verb);
    // The name stands in the text for whoever reads pg_stat_activity or a log.
    let texts: Vec<String> = statement
        .texts
        .iter()
        .map(|text| raw_string(&format!("/* {name} */\n{}", text.text)) + ",\n")
        .collect();
    let types: Vec<String> = one
        .params
        .iter()
        .map(|param| format!("Type::{},\n", param.constant))
        .collect();
    let upper = constant(one);
    let sizes = &statement.header.batch;
    let batches = match sizes.len() {
        0 => String::new(),
        count => format!(
            "/// The sizes that [`{upper}`] has a text for, ascending.\n\
             pub const {upper}_BATCHES: [usize; {count}] = {sizes:?};\n\n",
        ),
    };
    format!(
        "/// `{}`.\npub static {upper}: Statement = Statement {{ name: \"{name}\", texts: &[{}], types: &[{}], }};\n\n{batches}",
        statement.file,
        texts.concat(),
        types.concat(),
    )
}

/// The struct of a row; nothing for a statement that gives none.
pub(super) fn row(one: &Described<'_>) -> String {
    if matches!(one.statement.header.returns, Returns::Count | Returns::Copy) {
        return String::new();
    }
    let verb = &one.statement.verb;
    let name = pascal_case(verb);
    let fields: Vec<String> = one
        .columns
        .iter()
        .map(|column| {
            let (field, rust) = (identifier(&column.name), &column.rust);
            format!(
                "/// Column `{}` ({}).\npub {field}: {rust},\n",
                column.name, column.sql
            )
        })
        .collect();
    let reads: Vec<String> = (0..)
        .zip(&one.columns)
        .map(|(at, column)| format!("{}: row.try_get({at})?,\n", identifier(&column.name)))
        .collect();
    let lint = struct_lint(one.columns.iter().map(|column| column.rust.as_str()));
    format!(
        "/// A row of [`{verb}`].\n{lint}#[derive(Debug, Clone, PartialEq)]\npub struct {name}Row {{ {} }}\n\n\
         impl {name}Row {{ fn read(row: &Row) -> Result<Self, Error> {{ Ok(Self {{ {} }}) }} }}\n\n",
        fields.concat(),
        reads.concat(),
    )
}
