//! Why no trigger can be made for two sides of a table.

/// What does not fit; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// There is no such table.
    #[error("[sync] {table}: there is no such table; name one of the change's schema")]
    NoTable {
        /// As it was asked for.
        table: String,
    },
    /// A column that is not there.
    #[error(
        "[sync] {table}: there is no column {column}; the expand step makes the new ones, and one that was renamed by hand gets its name back: ALTER TABLE {table} RENAME COLUMN … TO {column}"
    )]
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column that a trigger cannot write, or not judge.
    #[error("[sync] {table}.{column}: {why}; {way_out}")]
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What is in the way.
        why: &'static str,
        /// What to do.
        way_out: &'static str,
    },
    /// An expression that the server refuses for rows that are there.
    #[error(
        "[sync] {table}: {direction} cannot be computed for the rows that are there: {said}; {way_out}"
    )]
    Expression {
        /// The table.
        table: String,
        /// `forward` or `backward`.
        direction: &'static str,
        /// The server's words.
        said: String,
        /// What to do.
        way_out: &'static str,
    },
    /// An expression that the server does not understand.
    #[error("[sync] {table}: the server does not take an expression: {said}; mend it")]
    Unresolved {
        /// The table.
        table: String,
        /// The server's words.
        said: String,
    },
    /// Somebody else could change what the trigger does with its owner's rights.
    #[error(
        "[sync] {table}: {why}, so somebody else could have something of theirs run with the rights of the trigger's owner; {way_out}"
    )]
    Untrusted {
        /// The table.
        table: String,
        /// Who, and what.
        why: String,
        /// What to do.
        way_out: String,
    },
    /// Rows of other tables are seen in it, and its trigger does not fire for them.
    #[error(
        "[sync] {table}: the trigger does not fire for rows of {heirs}, which inherit from it, so a write there would have one side only; ALTER TABLE … NO INHERIT {table}, or make them partitions of it"
    )]
    Heirs {
        /// The table.
        table: String,
        /// Who inherits.
        heirs: String,
    },
    /// The server, for another reason.
    #[error(transparent)]
    Sql(#[from] tokio_postgres::Error),
}
