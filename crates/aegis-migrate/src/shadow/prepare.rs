//! What a replay finds: roles, schemas, and what `shadow.sql` gives.

use aegis_catalog::quote;
use tokio_postgres::Client;

use super::{SHADOW_FILE, ShadowError};
use crate::change::{Change, normalised};
use crate::set::Set;

/// Makes a database ready: nothing in the schemas, the session's settings, then `shadow.sql`, then the roles of the changes.
pub(super) async fn prepare(client: &Client, set: &Set) -> Result<(), ShadowError> {
    let schemas = super::schemas(set);
    let used = client
        .query_opt(include_str!("../../sql/shadow/used.sql"), &[&schemas])
        .await
        .map_err(ShadowError::Sql)?;
    if let Some(row) = used {
        return Err(ShadowError::NotEmpty { schema: row.get(0) });
    }
    session(client).await?;
    if let Some(bytes) = set.files().get(SHADOW_FILE) {
        let text = normalised(&String::from_utf8_lossy(bytes));
        let file = set.files().name_of(SHADOW_FILE);
        super::replay::run_file(client, &file, SHADOW_FILE, &text, false).await?;
        session(client).await?;
    }
    roles(client, set).await
}

/// As at the start, whatever a file has set.
pub(super) async fn session(client: &Client) -> Result<(), ShadowError> {
    client
        .batch_execute("RESET ALL; RESET ROLE")
        .await
        .map_err(ShadowError::Sql)?;
    client
        .batch_execute(include_str!("../../sql/shadow/session.sql"))
        .await
        .map_err(ShadowError::Sql)
}

/// The roles that changes name: without login, and the owners may make schemas.
pub(super) async fn roles(client: &Client, set: &Set) -> Result<(), ShadowError> {
    let owners = set
        .changes
        .values()
        .filter_map(|change| change.run_as.clone());
    let revoked = set
        .changes
        .values()
        .filter_map(|change| change.contract.as_ref())
        .flat_map(|contract| contract.revoke_from.clone());
    let wanted: Vec<String> = owners.clone().chain(revoked).collect();
    let missing = client
        .query(include_str!("../../sql/shadow/roles.sql"), &[&wanted])
        .await
        .map_err(ShadowError::Sql)?;
    let mut made: Vec<String> = missing.iter().map(|row| row.get(0)).collect();
    made.dedup();
    for role in made {
        let statement = format!("CREATE ROLE {} NOLOGIN", quote(&role));
        client
            .batch_execute(&statement)
            .await
            .map_err(ShadowError::Sql)?;
    }
    let row = client
        .query_one("SELECT current_database()::text", &[])
        .await
        .map_err(ShadowError::Sql)?;
    let database: String = row.get(0);
    for role in owners {
        let statement = format!(
            "GRANT CREATE ON DATABASE {} TO {}",
            quote(&database),
            quote(&role)
        );
        client
            .batch_execute(&statement)
            .await
            .map_err(ShadowError::Sql)?;
    }
    Ok(())
}

/// The schema of a change, which in production the platform gives, unless the change makes it.
pub(super) async fn schema(client: &Client, change: &Change) -> Result<(), ShadowError> {
    let row = client
        .query_one(
            include_str!("../../sql/shadow/schema_exists.sql"),
            &[&change.schema],
        )
        .await
        .map_err(ShadowError::Sql)?;
    if row.get(0) {
        return Ok(());
    }
    let owner = change.run_as.as_deref().map_or_else(String::new, |role| {
        format!(" AUTHORIZATION {}", quote(role))
    });
    let statement = format!("CREATE SCHEMA {}{owner}", quote(&change.schema));
    client
        .batch_execute(&statement)
        .await
        .map_err(ShadowError::Sql)
}
