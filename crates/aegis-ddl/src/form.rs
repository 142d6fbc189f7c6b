//! What a statement does, in our own words: as much as its class depends on, and no more. The parser's types never leave `read/`.

use serde::Serialize;

use crate::lock::LockMode;
use crate::name::QualifiedName;

/// The kind of object that a DROP, a RENAME or the like is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are PostgreSQL's")]
pub enum ObjectKind {
    Table,
    Index,
    View,
    MaterializedView,
    Sequence,
    Type,
    Domain,
    Function,
    Trigger,
    Policy,
    Schema,
    Extension,
    Rule,
    Constraint,
    Column,
    Publication,
    Database,
    Role,
    Statistics,
    Other,
}

impl ObjectKind {
    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Index => "index",
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::Sequence => "sequence",
            Self::Type => "type",
            Self::Domain => "domain",
            Self::Function => "function",
            Self::Trigger => "trigger",
            Self::Policy => "policy",
            Self::Schema => "schema",
            Self::Extension => "extension",
            Self::Rule => "rule",
            Self::Constraint => "constraint",
            Self::Column => "column",
            Self::Publication => "publication",
            Self::Database => "database",
            Self::Role => "role",
            Self::Statistics => "statistics object",
            Self::Other => "object",
        }
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "form", rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the fields are the parts of the statement that the variant names"
)]
pub enum Form {
    CreateTable(CreateTable),
    AlterTable {
        table: QualifiedName,
        actions: Vec<Action>,
    },
    CreateIndex(CreateIndex),
    DropIndex {
        indexes: Vec<QualifiedName>,
        concurrently: bool,
    },
    Reindex {
        target: Option<QualifiedName>,
        of: ReindexOf,
        concurrently: bool,
    },
    Drop {
        kind: ObjectKind,
        names: Vec<QualifiedName>,
        on: Option<QualifiedName>,
        cascade: bool,
        if_exists: bool,
    },
    Rename {
        kind: ObjectKind,
        name: QualifiedName,
        on: Option<QualifiedName>,
    },
    SetSchema {
        kind: ObjectKind,
        name: QualifiedName,
    },
    CreateView {
        view: QualifiedName,
        replace: bool,
        /// Its columns in order; none: they do not all stand there.
        columns: Option<Vec<String>>,
    },
    CreateMaterializedView {
        view: QualifiedName,
        with_data: bool,
    },
    RefreshMaterializedView {
        view: QualifiedName,
        concurrently: bool,
    },
    CreateType {
        name: QualifiedName,
        is_enum: bool,
    },
    AlterType {
        name: QualifiedName,
        change: TypeChange,
    },
    CreateDomain {
        name: QualifiedName,
        base: TypeName,
        constrained: bool,
        default: Option<Expression>,
    },
    AlterDomain {
        name: QualifiedName,
        change: DomainChange,
    },
    CreateFunction {
        name: QualifiedName,
        replace: bool,
        /// IMMUTABLE or STABLE.
        steady: bool,
        body: Body,
    },
    CreateTrigger {
        name: String,
        table: QualifiedName,
        replace: bool,
    },
    CreateRule {
        name: String,
        table: QualifiedName,
    },
    CreatePolicy {
        name: String,
        table: QualifiedName,
    },
    AlterPolicy {
        table: QualifiedName,
    },
    CreateSchema {
        name: String,
    },
    CreateSequence {
        name: QualifiedName,
    },
    AlterSequence {
        name: QualifiedName,
    },
    CreateStatistics,
    CreateExtension {
        name: String,
    },
    CommentOn,
    Grant,
    Revoke,
    AlterDefaultPrivileges,
    /// Owner, options, storage of something that no program names.
    AlterOther {
        kind: ObjectKind,
        what: String,
    },
    CreateOther {
        what: String,
    },
    Do {
        body: Body,
    },
    Insert {
        into: QualifiedName,
        source: Source,
        /// Columns that it gives another value than DEFAULT, as far as it names them.
        gives: Vec<String>,
        /// OVERRIDING: the value of an identity is as the statement says.
        overrides: bool,
    },
    Update {
        table: QualifiedName,
        scope: RowScope,
        /// Columns that it gives another value than DEFAULT.
        gives: Vec<String>,
    },
    Delete {
        table: QualifiedName,
        scope: RowScope,
    },
    Merge,
    Truncate {
        tables: Vec<QualifiedName>,
        cascade: bool,
    },
    /// COPY … FROM; what it gives out is a SELECT.
    Copy {
        into: QualifiedName,
    },
    CreateTableAs {
        table: QualifiedName,
    },
    Select {
        locks_rows: bool,
        /// Functions that it calls.
        calls: Vec<QualifiedName>,
    },
    Call {
        procedure: QualifiedName,
    },
    Set {
        name: String,
        local: bool,
        /// The first name that it is set to.
        value: Option<String>,
    },
    LockTable {
        tables: Vec<QualifiedName>,
        mode: LockMode,
    },
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT, PREPARE TRANSACTION.
    TransactionControl {
        what: String,
    },
    Vacuum {
        full: bool,
    },
    Analyze,
    Cluster {
        table: Option<QualifiedName>,
    },
    /// CREATE DATABASE, ALTER SYSTEM, tablespaces, roles: more than this database.
    ClusterWide {
        what: String,
        transactional: bool,
    },
    /// Known to the parser, not to us.
    Other {
        what: String,
    },
}

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the statement"
)]
#[expect(missing_docs, reason = "the parts of the statement")]
pub struct CreateTable {
    pub table: QualifiedName,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub partition_of: Option<QualifiedName>,
    pub inherits: Vec<QualifiedName>,
    pub references: Vec<Reference>,
    pub columns: Vec<Column>,
    pub has_primary_key: bool,
    /// Columns of PRIMARY KEY and UNIQUE.
    pub unique_keys: Vec<Vec<String>>,
    /// Whether a CHECK stands beside the columns.
    pub checked: bool,
    /// Names of the constraints that stand in it.
    pub constraint_names: Vec<String>,
    /// Whether it is partitioned.
    pub partitioned: bool,
    /// Columns of PARTITION BY; empty: it has none, or a key that is an expression.
    pub partition_by: Vec<String>,
    /// LIKE, INHERITS, OF, PARTITION OF: it has more than what stands there.
    pub takes_over: bool,
}

/// CREATE INDEX.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the statement"
)]
#[expect(missing_docs, reason = "the parts of the statement")]
pub struct CreateIndex {
    pub index: Option<QualifiedName>,
    pub table: QualifiedName,
    pub only: bool,
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub method: Option<String>,
    pub keys: usize,
    /// The keys that are columns.
    pub columns: Vec<String>,
    pub partial: bool,
}

/// A column that is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the statement"
)]
#[expect(missing_docs, reason = "the parts of the clause")]
pub struct Column {
    pub name: String,
    pub data_type: TypeName,
    pub not_null: bool,
    pub default: Option<Expression>,
    pub generated: Option<Generated>,
    pub identity: bool,
    /// GENERATED ALWAYS AS IDENTITY.
    pub always: bool,
    pub checked: bool,
    pub unique: bool,
    pub primary: bool,
    pub references: Option<Reference>,
    pub collated: bool,
}

/// What a foreign key points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// The table.
    pub table: QualifiedName,
    /// Its columns; empty: its primary key.
    pub columns: Vec<String>,
    /// PERIOD (18): its key is one WITHOUT OVERLAPS.
    pub period: bool,
}

/// GENERATED ALWAYS AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "PostgreSQL's words")]
pub enum Generated {
    Stored,
    Virtual,
}

/// A type as it stands, with what could be read of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeName {
    /// Its text, in one case, whitespace in one form.
    pub text: String,
    /// Its name without modifiers and array marks, aliases resolved (`int` is `integer`).
    pub base: QualifiedName,
    /// `(20)`, `(10,2)`.
    pub modifiers: Vec<u32>,
    /// Whether it is an array.
    pub array: bool,
}

/// What an expression calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Expression {
    /// Its text.
    pub text: String,
    /// Functions that it calls, by name.
    pub calls: Vec<QualifiedName>,
    /// Just NULL.
    pub is_null: bool,
}

/// A constraint that is added to a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the parts of the clause")]
pub struct Constraint {
    pub name: Option<String>,
    pub kind: ConstraintKind,
    pub columns: Vec<String>,
    pub not_valid: bool,
    /// NOT ENFORCED (18).
    pub not_enforced: bool,
    /// NULLS NOT DISTINCT (15).
    pub nulls_not_distinct: bool,
    /// Of a CHECK: its conditions that all hold, as far as each compares a column with a literal.
    pub terms: Vec<Term>,
}

/// `column >= '2026-01-01'`, a part of a CHECK that is true for every row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Term {
    /// The column.
    pub column: String,
    /// `>=`, `<`, `=`, `in`, `is not null`; `outside` of two literals, the second one excluded.
    pub operator: String,
    /// The literals without quotes and casts.
    pub values: Vec<String>,
}

/// FOR VALUES of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "PostgreSQL's words")]
pub enum Bound {
    Range { from: Vec<String>, to: Vec<String> },
    List { values: Vec<String> },
    Hash,
    Default,
}

/// What a constraint says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "PostgreSQL's words")]
pub enum ConstraintKind {
    Check { not_null_of: Option<String> },
    ForeignKey { references: Reference },
    Unique { using_index: Option<String> },
    PrimaryKey { using_index: Option<String> },
    Exclude,
    NotNull { column: String },
    Other,
}

/// One action of ALTER TABLE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the parts of the clause")]
pub enum Action {
    AddColumn {
        column: Box<Column>,
        if_not_exists: bool,
    },
    DropColumn {
        column: String,
        cascade: bool,
    },
    RenameColumn {
        column: String,
        to: String,
    },
    SetType {
        column: String,
        to: TypeName,
        using: bool,
        collated: bool,
    },
    SetDefault {
        column: String,
        expression: Expression,
    },
    DropDefault {
        column: String,
    },
    SetNotNull {
        column: String,
    },
    DropNotNull {
        column: String,
    },
    AddIdentity {
        column: String,
        always: bool,
    },
    ChangeIdentity {
        column: String,
        change: IdentityChange,
    },
    DropExpression {
        column: String,
    },
    SetExpression {
        column: String,
    },
    SetStatistics,
    SetStorage,
    SetCompression,
    AddConstraint {
        constraint: Constraint,
    },
    DropConstraint {
        constraint: String,
        cascade: bool,
        if_exists: bool,
    },
    ValidateConstraint {
        constraint: String,
    },
    AlterConstraint {
        constraint: String,
        enforced: bool,
    },
    RenameConstraint {
        constraint: String,
    },
    RenameTable {
        to: String,
    },
    SetSchema,
    AttachPartition {
        partition: QualifiedName,
        bound: Option<Bound>,
    },
    DetachPartition {
        partition: QualifiedName,
        concurrently: bool,
        finalize: bool,
    },
    Inherit {
        parent: QualifiedName,
    },
    NoInherit {
        parent: QualifiedName,
    },
    EnableTrigger {
        name: String,
    },
    DisableTrigger {
        name: String,
    },
    EnableRowSecurity,
    ForceRowSecurity,
    DisableRowSecurity,
    /// `nothing`: UPDATE and DELETE of a published table fail.
    ReplicaIdentity {
        nothing: bool,
    },
    SetLogged {
        logged: bool,
    },
    SetAccessMethod,
    SetTablespace,
    ClusterOn,
    Owner,
    Options {
        only_tuning: bool,
    },
    Other {
        what: String,
    },
}

/// What becomes of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "PostgreSQL's words")]
pub enum IdentityChange {
    Dropped,
    /// SET GENERATED ALWAYS: a value that an INSERT gives is refused.
    Always,
    /// RESTART, or RESTART WITH its first number.
    FromTheStart,
    Other,
}

/// ALTER TYPE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the parts of the clause")]
pub enum TypeChange {
    AddValue { value: String, placed: bool },
    RenameValue,
    AddAttribute,
    DropAttribute,
    AlterAttribute,
    Other,
}

/// ALTER DOMAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the parts of the clause")]
pub enum DomainChange {
    AddConstraint { not_valid: bool },
    ValidateConstraint,
    SetNotNull,
    Loosen,
    SetDefault,
    Other,
}

/// What REINDEX is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "PostgreSQL's words")]
pub enum ReindexOf {
    Index,
    Table,
    Schema,
    Database,
}

/// A body in SQL or PL/pgSQL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Body {
    /// `sql`, `plpgsql`, or another that is not read.
    pub language: String,
    /// Its static statements.
    pub statements: Vec<crate::Statement>,
    /// Statements with a name in them that is only known at run time: their form counts, their objects do not.
    pub guessed: Vec<crate::Statement>,
    /// Parts that could not be read: dynamic EXECUTE, another language, an error.
    pub unread: Vec<String>,
    /// Which of its statements a loop of unknown length repeats.
    pub repeated: Vec<usize>,
    /// Whether it commits: then it cannot run inside a transaction.
    pub commits: bool,
    /// Functions that its PERFORM runs.
    pub calls: Vec<QualifiedName>,
}

/// Where inserted rows come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// So many literal rows.
    Rows(usize),
    /// DEFAULT VALUES.
    Defaults,
    /// A query of so many rows, when these columns of these tables are keys.
    Selected {
        /// At most.
        rows: usize,
        /// What has to be unique.
        keys: Vec<(QualifiedName, Vec<String>)>,
    },
    /// A query.
    Query,
}

/// Which rows an UPDATE or DELETE means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowScope {
    /// No WHERE.
    All,
    /// `column = literal`, or `column IN (n literals)`: so many, when the columns are a key.
    Keyed {
        /// How many combinations of values.
        rows: usize,
        /// The columns that are compared.
        columns: Vec<String>,
    },
    /// Some other condition.
    Condition,
}
