//! `verify --shadow`: what a second database on a server that is in use must not be given.
//!
//! A replay there is another database, but roles, tablespaces and settings belong to the whole server.

use aegis_ddl::Form;
use tokio_postgres::Client;

use super::StructureError;
use crate::set::Set;
use crate::shadow::SHADOW_FILE;

/// Statements of the set, and of its `shadow.sql`, that act on more than their database, as `file:line: what`. Any one of them,
/// and the replay does not begin.
pub fn refused_on_a_shared_server(set: &Set) -> Vec<String> {
    let mut refused = Vec::new();
    for (line, change) in set.lines() {
        for part in change.parts(line.at.phase) {
            if let crate::change::Part::Sql { file, .. } = part {
                refused.extend(cluster_wide(&file.path, &file.text));
            }
        }
    }
    if let Some(bytes) = set.files().get(SHADOW_FILE) {
        let text = String::from_utf8_lossy(bytes);
        refused.extend(cluster_wide(&set.files().name_of(SHADOW_FILE), &text));
    }
    refused
}

/// Roles that the changes name and the server has not: a replay would make them, for the whole server.
///
/// # Errors
/// When the server cannot be asked.
pub async fn missing_roles(client: &Client, set: &Set) -> Result<Vec<String>, StructureError> {
    let owners = set
        .changes
        .values()
        .filter_map(|change| change.run_as.clone());
    let contracts = set
        .changes
        .values()
        .filter_map(|change| change.contract.as_ref());
    let revoked = contracts.flat_map(|contract| contract.revoke_from.clone());
    let wanted: Vec<String> = owners.chain(revoked).collect();
    let missing = client
        .query(include_str!("../../sql/shadow/roles.sql"), &[&wanted])
        .await
        .map_err(StructureError::sql("asking for roles"))?;
    let mut missing: Vec<String> = missing.iter().map(|row| row.get(0)).collect();
    missing.dedup();
    Ok(missing)
}

fn cluster_wide(file: &str, text: &str) -> Vec<String> {
    let script = match aegis_ddl::read(text) {
        Ok(script) => script,
        Err(error) => return vec![format!("{file}: {error}")],
    };
    let what = |form: &Form| match form {
        Form::ClusterWide { what, .. } => Some(what.clone()),
        // A subscription connects to another server, and makes a slot there.
        Form::CreateOther { what } | Form::Other { what }
            if what.to_lowercase().contains("subscription") =>
        {
            Some(what.clone())
        }
        _ => None,
    };
    let statements = script.statements.iter();
    statements
        .filter_map(|statement| {
            Some(format!(
                "{file}:{}: {}",
                statement.line,
                what(&statement.form)?
            ))
        })
        .collect()
}
