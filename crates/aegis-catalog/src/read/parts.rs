//! The parts of a catalog, each by its statement. They are sent one after the other without waiting for an answer between.

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

use super::{Found, Part, rows};
use crate::catalog::Catalog;
use crate::error::Error;
use crate::model::Function;
use crate::scope::Scope;

/// A function with its body, which stays here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithBody {
    function: Function,
    body: Option<String>,
}

type Parameters<'a> = Vec<(&'a (dyn ToSql + Sync), Type)>;

/// Everything that is structure, and what hangs on what.
pub(super) async fn read<C: GenericClient + Sync>(
    client: &C,
    scope: &Scope,
    found: &Found,
    catalog: &mut Catalog,
) -> Result<(), Error> {
    let relations = || -> Parameters<'_> { vec![(&found.relations, Type::OID_ARRAY)] };
    let measured = || -> Parameters<'_> {
        vec![
            (&found.relations, Type::OID_ARRAY),
            (&scope.measured, Type::BOOL),
        ]
    };
    let mut with_grants = found.relations.clone();
    with_grants.extend(&found.sequences);
    let publication = if found.server_version_num < 150_000 {
        include_str!("../../sql/publication_14.sql")
    } else {
        include_str!("../../sql/publication.sql")
    };
    let mut functions: Vec<WithBody> = Vec::new();
    let parts: Vec<Part<'_>> = vec![
        into(
            client,
            &mut catalog.schemas,
            "schemas",
            include_str!("../../sql/schema.sql"),
            vec![(&found.spaces, Type::OID_ARRAY)],
        ),
        into(
            client,
            &mut catalog.relations,
            "relations",
            include_str!("../../sql/relation.sql"),
            measured(),
        ),
        into(
            client,
            &mut catalog.indexes,
            "indexes",
            include_str!("../../sql/index.sql"),
            measured(),
        ),
        into(
            client,
            &mut catalog.constraints,
            "constraints",
            include_str!("../../sql/constraint.sql"),
            relations(),
        ),
        into(
            client,
            &mut catalog.triggers,
            "triggers",
            include_str!("../../sql/trigger.sql"),
            relations(),
        ),
        into(
            client,
            &mut catalog.rules,
            "rules",
            include_str!("../../sql/rule.sql"),
            relations(),
        ),
        into(
            client,
            &mut catalog.policies,
            "policies",
            include_str!("../../sql/policy.sql"),
            relations(),
        ),
        into(
            client,
            &mut catalog.statistics,
            "statistics",
            include_str!("../../sql/statistics.sql"),
            relations(),
        ),
        into(
            client,
            &mut catalog.dependences,
            "dependences",
            include_str!("../../sql/depend.sql"),
            relations(),
        ),
        into(
            client,
            &mut functions,
            "functions",
            include_str!("../../sql/function.sql"),
            vec![(&found.functions, Type::OID_ARRAY)],
        ),
        into(
            client,
            &mut catalog.types,
            "types",
            include_str!("../../sql/type.sql"),
            vec![(&found.types, Type::OID_ARRAY)],
        ),
        into(
            client,
            &mut catalog.sequences,
            "sequences",
            include_str!("../../sql/sequence.sql"),
            vec![(&found.sequences, Type::OID_ARRAY)],
        ),
        into(
            client,
            &mut catalog.grants,
            "grants",
            include_str!("../../sql/grant.sql"),
            vec![
                (&with_grants, Type::OID_ARRAY),
                (&found.functions, Type::OID_ARRAY),
                (&found.types, Type::OID_ARRAY),
                (&found.spaces, Type::OID_ARRAY),
            ],
        ),
        into(
            client,
            &mut catalog.extensions,
            "extensions",
            include_str!("../../sql/extension.sql"),
            vec![],
        ),
        into(
            client,
            &mut catalog.publications,
            "publications",
            publication,
            vec![],
        ),
        into(
            client,
            &mut catalog.event_triggers,
            "event triggers",
            include_str!("../../sql/event_trigger.sql"),
            vec![],
        ),
        into(
            client,
            &mut catalog.others,
            "other objects",
            include_str!("../../sql/other.sql"),
            vec![(&found.spaces, Type::OID_ARRAY)],
        ),
    ];
    try_join_all(parts).await?;
    mention(functions, catalog);
    Ok(())
}

/// How much tables are used.
pub(super) async fn measure<C: GenericClient + Sync>(
    client: &C,
    found: &Found,
    catalog: &mut Catalog,
) -> Result<(), Error> {
    let mut windows = Vec::new();
    let parts: Vec<Part<'_>> = vec![
        into(
            client,
            &mut catalog.rates,
            "rates",
            include_str!("../../sql/rates.sql"),
            vec![(&found.relations, Type::OID_ARRAY)],
        ),
        into(
            client,
            &mut windows,
            "rates",
            include_str!("../../sql/rates_window.sql"),
            vec![],
        ),
    ];
    try_join_all(parts).await?;
    catalog.rates_window = windows.pop();
    Ok(())
}

fn into<'a, T: DeserializeOwned + Send, C: GenericClient + Sync>(
    client: &'a C,
    place: &'a mut Vec<T>,
    what: &'static str,
    sql: &'a str,
    parameters: Parameters<'a>,
) -> Part<'a> {
    Box::pin(async move {
        *place = rows(client, what, sql, &parameters).await?;
        Ok(())
    })
}

/// Names of relations and columns in a body, as words: weak, and never more than a hint.
fn mention(functions: Vec<WithBody>, catalog: &mut Catalog) {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for relation in &catalog.relations {
        known.insert(relation.name.name.to_lowercase());
        known.extend(relation.columns.iter().map(|c| c.name.to_lowercase()));
    }
    for WithBody { mut function, body } in functions {
        let mentions: BTreeSet<String> = words(body.as_deref().unwrap_or_default())
            .filter(|word| known.contains(word))
            .collect();
        function.mentions = mentions.into_iter().collect();
        catalog.functions.push(function);
    }
}

/// The words of a text, in lower case. A quoted name with other characters in it is not found as one.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
