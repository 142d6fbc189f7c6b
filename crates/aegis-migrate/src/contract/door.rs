//! The door: the runtime roles lose the old columns before anybody is counted, so that "nobody uses it" cannot become untrue while
//! it is being counted. Table grants become grants on the columns that stay.
//!
//! Invariants: nothing but the old columns is lost; what was taken is kept, so that it can be given back exactly; a door that some
//! other path leaves open (PUBLIC, a role's role, ownership) is an error that names the path, and nothing is committed.

use postgres_protocol::escape::escape_identifier;
use serde::{Deserialize, Serialize};
use tokio_postgres::GenericClient;

/// The old form: whose door shuts, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Door<'a> {
    /// The table's schema.
    pub schema: &'a str,
    /// The table.
    pub table: &'a str,
    /// `[sync] old`.
    pub old: &'a [String],
    /// `[contract] revoke_from`.
    pub roles: &'a [String],
}

/// A privilege that a role held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// The table's schema.
    pub schema: String,
    /// The table, or a partition of it.
    pub table: String,
    /// None: on the whole table.
    pub column: Option<String>,
    /// Who held it.
    pub role: String,
    /// `SELECT`, `INSERT`, `UPDATE` or `REFERENCES`.
    pub privilege: String,
    /// Whether they could pass it on.
    pub grantable: bool,
    /// Who had granted it.
    pub by: String,
}

/// Why a door does not shut.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// A role of the file that is not there.
    #[error(
        "[contract] revoke_from names roles that do not exist here: {0}; correct the list, or make the roles first"
    )]
    NoSuchRole(String),
    /// A path that this cannot take away.
    #[error(
        "the door stays open: {who}. This comes through PUBLIC, through a role that it is a member of, by ownership, or from a grantor that `run_as` cannot act for; revoke it there, then close again"
    )]
    StaysOpen {
        /// Roles with what they still hold.
        who: String,
    },
    /// The database.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
}

/// Shuts the door, and says what was taken. In the caller's transaction, which rolls back on an error.
pub async fn shut(client: &impl GenericClient, door: &Door<'_>) -> Result<Vec<Grant>, DoorError> {
    roles_exist(client, door.roles).await?;
    let taken = to_take(grants(client, door).await?, door.old);
    for grant in taken.iter().filter(|grant| grant.column.is_none()) {
        // Takes what the role holds on single columns with it.
        client.batch_execute(&revoke(grant)).await?;
        let staying: Vec<_> = columns(client, grant)
            .await?
            .into_iter()
            .filter(|column| !door.old.contains(column))
            .collect();
        if !staying.is_empty() {
            client.batch_execute(&give(grant, &staying)).await?;
        }
    }
    for grant in taken.iter().filter(|grant| is_on(grant, door.old)) {
        client.batch_execute(&revoke(grant)).await?;
    }
    let open = still_open(client, door).await?;
    if open.is_empty() {
        Ok(taken)
    } else {
        Err(DoorError::StaysOpen {
            who: open.join(", "),
        })
    }
}

/// Gives back exactly what was taken.
pub async fn open(client: &impl GenericClient, taken: &[Grant]) -> Result<(), DoorError> {
    for grant in taken.iter().filter(|grant| grant.column.is_none()) {
        client.batch_execute(&give_back(grant)).await?;
        // Those that shutting made instead. This leaves the table's own.
        let made = columns(client, grant).await?;
        client.batch_execute(&revoke_columns(grant, &made)).await?;
    }
    for grant in taken.iter().filter(|grant| grant.column.is_some()) {
        client.batch_execute(&give_back(grant)).await?;
    }
    Ok(())
}

/// Ends the grants that shutting made in place of the table's, once the old columns are gone: the table's own are back, so that they
/// hold for columns that come later, and the structure is what the changes say. While an old column is there, nothing is given back.
pub async fn settle(
    client: &impl GenericClient,
    taken: &[Grant],
    old: &[String],
) -> Result<(), DoorError> {
    let mut back = Vec::new();
    for grant in taken {
        let left = columns(client, grant).await?;
        if left.iter().any(|column| old.contains(column)) {
            return Ok(());
        }
        let is_there = match &grant.column {
            None => !left.is_empty(),
            Some(column) => left.contains(column),
        };
        if is_there {
            back.push(grant.clone());
        }
    }
    open(client, &back).await
}

/// Who still reaches an old column, in words; empty when the door is shut.
pub async fn still_open(
    client: &impl GenericClient,
    door: &Door<'_>,
) -> Result<Vec<String>, DoorError> {
    let rows = client
        .query(
            include_str!("../../sql/contract/open_doors.sql"),
            &[&door.schema, &door.table, &door.old, &door.roles],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let (role, table): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let (column, privilege): (String, String) = (row.try_get(2)?, row.try_get(3)?);
            let superuser: bool = row.try_get(4)?;
            let so = if superuser { " (a superuser)" } else { "" };
            Ok(format!("{role}{so} may {privilege} {table}.{column}"))
        })
        .collect()
}

async fn roles_exist(client: &impl GenericClient, roles: &[String]) -> Result<(), DoorError> {
    let lacking = lacking_roles(client, roles).await?;
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(DoorError::NoSuchRole(lacking.join(", ")))
    }
}

/// Roles of the file that are not there.
pub(super) async fn lacking_roles(
    client: &impl GenericClient,
    roles: &[String],
) -> Result<Vec<String>, tokio_postgres::Error> {
    let found: Vec<String> = client
        .query(include_str!("../../sql/contract/roles.sql"), &[&roles])
        .await?
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?;
    let lacking = roles.iter().filter(|role| !found.contains(role));
    Ok(lacking.cloned().collect())
}

async fn grants(client: &impl GenericClient, door: &Door<'_>) -> Result<Vec<Grant>, DoorError> {
    let rows = client
        .query(
            include_str!("../../sql/contract/grants.sql"),
            &[&door.schema, &door.table, &door.roles],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Grant {
                schema: row.try_get("schema")?,
                table: row.try_get("table")?,
                column: row.try_get("column")?,
                role: row.try_get("role")?,
                privilege: row.try_get("privilege")?,
                grantable: row.try_get("grantable")?,
                by: row.try_get("by")?,
            })
        })
        .collect()
}

async fn columns(client: &impl GenericClient, of: &Grant) -> Result<Vec<String>, DoorError> {
    let rows = client
        .query(
            include_str!("../../sql/contract/columns.sql"),
            &[&of.schema, &of.table],
        )
        .await?;
    Ok(rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?)
}

/// The table's grants, those on old columns, and those on other columns that go with a table's.
fn to_take(held: Vec<Grant>, old: &[String]) -> Vec<Grant> {
    let whole: Vec<Grant> = held
        .iter()
        .filter(|grant| grant.column.is_none())
        .cloned()
        .collect();
    let goes_with_one = |grant: &Grant| {
        whole.iter().any(|one| {
            (&one.schema, &one.table, &one.role, &one.privilege)
                == (&grant.schema, &grant.table, &grant.role, &grant.privilege)
        })
    };
    held.into_iter()
        .filter(|grant| grant.column.is_none() || is_on(grant, old) || goes_with_one(grant))
        .collect()
}

fn is_on(grant: &Grant, old: &[String]) -> bool {
    grant
        .column
        .as_ref()
        .is_some_and(|column| old.contains(column))
}

fn on(grant: &Grant) -> String {
    format!(
        "{}.{}",
        escape_identifier(&grant.schema),
        escape_identifier(&grant.table)
    )
}

fn listed(columns: &[String]) -> String {
    let quoted: Vec<_> = columns.iter().map(|one| escape_identifier(one)).collect();
    format!("({})", quoted.join(", "))
}

fn what(grant: &Grant) -> String {
    match &grant.column {
        None => grant.privilege.clone(),
        Some(column) => format!("{} ({})", grant.privilege, escape_identifier(column)),
    }
}

fn passing(grant: &Grant) -> &'static str {
    if grant.grantable {
        " WITH GRANT OPTION"
    } else {
        ""
    }
}

fn revoke(grant: &Grant) -> String {
    let role = escape_identifier(&grant.role);
    format!("REVOKE {} ON TABLE {} FROM {role}", what(grant), on(grant))
}

fn revoke_columns(grant: &Grant, columns: &[String]) -> String {
    let (privilege, role) = (&grant.privilege, escape_identifier(&grant.role));
    format!(
        "REVOKE {privilege} {} ON TABLE {} FROM {role}",
        listed(columns),
        on(grant)
    )
}

fn give(grant: &Grant, columns: &[String]) -> String {
    let (privilege, role) = (&grant.privilege, escape_identifier(&grant.role));
    let (columns, table) = (listed(columns), on(grant));
    format!(
        "GRANT {privilege} {columns} ON TABLE {table} TO {role}{}",
        passing(grant)
    )
}

fn give_back(grant: &Grant) -> String {
    let role = escape_identifier(&grant.role);
    format!(
        "GRANT {} ON TABLE {} TO {role}{}",
        what(grant),
        on(grant),
        passing(grant)
    )
}
