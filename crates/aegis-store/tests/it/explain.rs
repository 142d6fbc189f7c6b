//! The plan of a generated statement as the server makes it, run and taken back.

use aegis_store::session::Statement;
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

/// How the plan is made: as the engine's role does, or with the parameters in sight (through a pooler).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planning {
    Generic,
    Custom,
}

/// An executed plan: all its nodes, flat.
#[derive(Debug)]
pub(crate) struct Plan {
    whole: Value,
    nodes: Vec<Value>,
}

/// The indexes of `aegis.task`.
const INDEXES: [&str; 8] = [
    "task_pkey",
    "task_ready",
    "task_suspect",
    "task_owner",
    "task_scheduled",
    "task_reconciling",
    "task_deadline",
    "task_resting",
];

/// SQL literals for parameters.
pub(crate) fn uuids(ids: &[Uuid]) -> String {
    let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    format!("'{{{}}}'", texts.join(","))
}

pub(crate) fn array<T: ToString>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("'{{{}}}'", texts.join(","))
}

/// Executes a statement's text under EXPLAIN and rolls it back.
pub(crate) async fn explain(
    client: &Client,
    statement: &Statement,
    text: usize,
    arguments: &[String],
    planning: Planning,
) -> Plan {
    let types: Vec<&str> = statement
        .types
        .iter()
        .map(tokio_postgres::types::Type::name)
        .collect();
    explain_text(client, statement.texts[text], &types, arguments, planning).await
}

/// The same for any text.
pub(crate) async fn explain_text(
    client: &Client,
    text: &str,
    types: &[&str],
    arguments: &[String],
    planning: Planning,
) -> Plan {
    let mode = match planning {
        Planning::Generic => "force_generic_plan",
        Planning::Custom => "force_custom_plan",
    };
    let prepare = format!(
        "begin; set local plan_cache_mode = {mode}; prepare shown ({}) as {text}",
        types.join(", ")
    );
    client
        .batch_execute(&prepare)
        .await
        .unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let explain = format!(
        "explain (analyze, buffers, verbose, format json) execute shown ({})",
        arguments.join(", ")
    );
    let row = client
        .query_one(&explain, &[])
        .await
        .unwrap_or_else(|error| panic!("{text}: {error:?}"));
    client
        .batch_execute("rollback; deallocate shown")
        .await
        .unwrap();
    let whole: Value = row.get(0);
    let mut nodes = Vec::new();
    flatten(&whole[0]["Plan"], &mut nodes);
    Plan { whole, nodes }
}

fn flatten(node: &Value, into: &mut Vec<Value>) {
    let mut own = node.clone();
    if let Some(own) = own.as_object_mut() {
        own.remove("Plans");
    }
    into.push(own);
    for child in node["Plans"].as_array().into_iter().flatten() {
        flatten(child, into);
    }
}

impl Plan {
    /// How `aegis.task` was read: `Seq Scan`, or the names of the indexes, sorted, each once. What never ran does not count.
    pub(crate) fn reads_of_task(&self) -> Vec<String> {
        let mut found: Vec<String> = self
            .nodes
            .iter()
            .filter(|node| node["Actual Loops"].as_f64() != Some(0.0))
            .filter_map(|node| {
                if node["Node Type"] == "Seq Scan" && node["Relation Name"] == "task" {
                    return Some("Seq Scan".to_owned());
                }
                let index = node["Index Name"].as_str()?;
                INDEXES.contains(&index).then(|| index.to_owned())
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Rows that all nodes together gave or threw away: what a quadratic plan blows up.
    pub(crate) fn rows_handled(&self) -> f64 {
        self.nodes.iter().map(rows_of).sum()
    }

    /// The same for the scans of `aegis.task`.
    pub(crate) fn rows_of_task(&self) -> f64 {
        let scans = self
            .nodes
            .iter()
            .filter(|node| node["Relation Name"] == "task" && node["Node Type"] != "ModifyTable");
        scans.map(rows_of).sum()
    }

    /// How often a function in FROM was called.
    pub(crate) fn calls_of(&self, function: &str) -> f64 {
        let calls = self
            .nodes
            .iter()
            .filter(|node| node["Function Name"] == function);
        calls.filter_map(|node| node["Actual Loops"].as_f64()).sum()
    }

    /// Blocks looked at.
    pub(crate) fn blocks(&self) -> i64 {
        self.nodes[0]["Shared Hit Blocks"]
            .as_i64()
            .unwrap_or_default()
            + self.nodes[0]["Shared Read Blocks"]
                .as_i64()
                .unwrap_or_default()
    }

    /// Was any of it compiled?
    pub(crate) fn is_compiled(&self) -> bool {
        !self.whole[0]["JIT"].is_null()
    }
}

fn rows_of(node: &Value) -> f64 {
    let per_loop: f64 = [
        "Actual Rows",
        "Rows Removed by Filter",
        "Rows Removed by Join Filter",
        "Rows Removed by Index Recheck",
    ]
    .iter()
    .filter_map(|key| node[*key].as_f64())
    .sum();
    per_loop * node["Actual Loops"].as_f64().unwrap_or_default()
}
