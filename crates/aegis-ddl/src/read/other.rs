//! Every other statement, and which room reads which.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{body, rows, table, tree};
use crate::form::{CreateIndex, DomainChange, Form, ObjectKind, ReindexOf, TypeChange};
use crate::lock::LockMode;
use crate::name::QualifiedName;

/// What a statement does.
pub(super) fn form(node: &SyntaxNode) -> Form {
    match node.kind() {
        K::CREATE_TABLE | K::CREATE_FOREIGN_TABLE => Form::CreateTable(table::create(node)),
        K::ALTER_TABLE | K::ALTER_FOREIGN_TABLE => table::alter(node),
        K::CREATE_INDEX => create_index(node),
        K::DROP_INDEX => Form::DropIndex {
            indexes: tree::names(node, &[K::INDEX_REF]),
            concurrently: tree::has_token(node, K::CONCURRENTLY_KW),
        },
        K::REINDEX => reindex(node),
        K::CREATE_VIEW => Form::CreateView {
            view: tree::name(node),
            replace: tree::has(node, K::OR_REPLACE),
            columns: rows::columns(node),
        },
        K::CREATE_MATERIALIZED_VIEW => Form::CreateMaterializedView {
            view: tree::name(node),
            with_data: !tree::has(node, K::WITH_NO_DATA),
        },
        K::REFRESH => Form::RefreshMaterializedView {
            view: tree::name(node),
            concurrently: tree::has_token(node, K::CONCURRENTLY_KW),
        },
        K::CREATE_TYPE => Form::CreateType {
            name: tree::name(node),
            is_enum: tree::has(node, K::ENUM_TYPE),
        },
        K::ALTER_TYPE => alter_type(node),
        K::CREATE_DOMAIN => create_domain(node),
        K::ALTER_DOMAIN => alter_domain(node),
        K::CREATE_FUNCTION | K::CREATE_PROCEDURE => Form::CreateFunction {
            name: tree::name(node),
            replace: tree::has(node, K::OR_REPLACE),
            steady: tree::below(node, K::IMMUTABLE).is_some()
                || tree::below(node, K::STABLE).is_some(),
            body: body::of_function(node),
        },
        K::CREATE_TRIGGER => Form::CreateTrigger {
            name: tree::one(node, K::TRIGGER),
            table: on(node),
            replace: tree::has(node, K::OR_REPLACE),
        },
        K::CREATE_RULE => Form::CreateRule {
            name: tree::one(node, K::RULE),
            table: tree::child(node, K::RULE_ON)
                .map_or_else(|| tree::name(node), |at| tree::name(&at)),
        },
        K::CREATE_POLICY => Form::CreatePolicy {
            name: tree::one(node, K::POLICY),
            table: on(node),
        },
        K::ALTER_POLICY => Form::AlterPolicy { table: on(node) },
        K::CREATE_SCHEMA => Form::CreateSchema {
            name: tree::below(node, K::SCHEMA)
                .map_or_else(String::new, |at| crate::name::identifier(&tree::text(&at))),
        },
        K::CREATE_SEQUENCE => Form::CreateSequence {
            name: tree::name(node),
        },
        K::CREATE_STATISTICS => Form::CreateStatistics,
        K::CREATE_EXTENSION => Form::CreateExtension {
            name: tree::one(node, K::EXTENSION),
        },
        K::COMMENT_ON | K::SECURITY_LABEL => Form::CommentOn,
        K::GRANT => Form::Grant,
        K::REVOKE => Form::Revoke,
        K::ALTER_DEFAULT_PRIVILEGES => Form::AlterDefaultPrivileges,
        K::DO => Form::Do {
            body: body::of_do(node),
        },
        K::INSERT => Form::Insert {
            into: rows::target(node),
            source: rows::source(node),
            gives: rows::gives(node),
            overrides: tree::has(node, K::OVERRIDING_SYSTEM_VALUE)
                || tree::has(node, K::OVERRIDING_USER_VALUE),
        },
        K::UPDATE => Form::Update {
            table: rows::target(node),
            scope: rows::scope(node),
            gives: rows::sets(node),
        },
        K::DELETE => Form::Delete {
            table: rows::target(node),
            scope: rows::scope(node),
        },
        K::MERGE => Form::Merge,
        K::TRUNCATE => Form::Truncate {
            tables: tree::child(node, K::TABLE_LIST)
                .map(|list| tree::names(&list, &[K::TABLE_RELATION_NAME]))
                .unwrap_or_default(),
            cascade: tree::has(node, K::CASCADE),
        },
        K::COPY if tree::has(node, K::COPY_FROM) => Form::Copy {
            into: tree::name(node),
        },
        K::CREATE_TABLE_AS | K::SELECT_INTO => Form::CreateTableAs {
            table: tree::name(node),
        },
        K::SELECT | K::VALUES | K::TABLE | K::COMPOUND_SELECT | K::PAREN_SELECT | K::SHOW => {
            Form::Select {
                locks_rows: tree::below(node, K::LOCKING_CLAUSE).is_some(),
                calls: tree::expression(node).calls,
            }
        }
        K::CALL => Form::Call {
            procedure: tree::name(node),
        },
        K::COPY if to_program(node) => unknown(node),
        K::EXPLAIN | K::PREPARE | K::COPY | K::DECLARE if acting(node) != *node => {
            form(&acting(node))
        }
        K::DECLARE => unknown(node),
        // What EXECUTE runs was judged where it was prepared, and what FETCH runs where its cursor was declared.
        K::COPY
        | K::EXPLAIN
        | K::EXECUTE
        | K::DEALLOCATE
        | K::FETCH
        | K::MOVE
        | K::CLOSE
        | K::LOAD
        | K::CHECKPOINT => Form::Select {
            locks_rows: false,
            calls: Vec::new(),
        },
        K::SET
        | K::RESET
        | K::SET_ROLE
        | K::SET_SESSION_AUTH
        | K::RESET_ROLE
        | K::RESET_SESSION_AUTH => Form::Set {
            name: tree::below(node, K::CONFIG_PARAMETER_REF).map_or_else(
                || tree::words(node, 2).to_lowercase(),
                |at| tree::text(&at).to_lowercase(),
            ),
            local: tree::has(node, K::LOCAL_SCOPE),
            value: tree::below(node, K::CONFIG_VALUE_NAME)
                .map(|at| crate::name::identifier(&tree::text(&at))),
        },
        K::LOCK => Form::LockTable {
            tables: tree::child(node, K::RELATION_LIST)
                .map(|list| tree::names(&list, &[K::RELATION_NAME]))
                .unwrap_or_default(),
            mode: lock_mode(node),
        },
        K::VACUUM => Form::Vacuum {
            full: is_full(node),
        },
        K::ANALYZE => Form::Analyze,
        K::CLUSTER => Form::Cluster {
            table: tree::child(node, K::TABLE_NAME_REF).map(|at| tree::name(&at)),
        },
        _ => by_name(node),
    }
}

/// What a statement really runs: of EXPLAIN ANALYZE and PREPARE the statement, of COPY and of a cursor the query, which may write; else
/// itself.
pub(super) fn acting(node: &SyntaxNode) -> SyntaxNode {
    let inside = match node.kind() {
        K::EXPLAIN | K::PREPARE if runs(node) => node.children().last(),
        K::COPY | K::DECLARE => node
            .descendants()
            .skip(1)
            .find(|one| rows::is_query(one) || rows::changes_rows(one.kind())),
        _ => None,
    };
    inside.unwrap_or_else(|| node.clone())
}

/// COPY … TO PROGRAM: what it runs is no SQL.
fn to_program(node: &SyntaxNode) -> bool {
    let text = tree::text(node).to_ascii_uppercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|two| two == ["TO", "PROGRAM"])
}

/// Whether the statement inside is run: PREPARE only announces it, but what it announces is there to be run.
fn runs(node: &SyntaxNode) -> bool {
    node.kind() == K::PREPARE
        || tree::has(node, K::EXPLAIN_ANALYZE)
        || option_is_on(node, K::EXPLAIN_OPTION, &["analyze", "analyse"])
}

/// VACUUM FULL, or VACUUM (FULL); a table may be called `full_orders`.
fn is_full(node: &SyntaxNode) -> bool {
    option_is_on(node, K::VACUUM_OPTION, &["full"])
        || node
            .children_with_tokens()
            .any(|one| one.kind() == K::FULL_KW)
}

/// Whether an option in parentheses stands there without `false`.
fn option_is_on(node: &SyntaxNode, kind: K, names: &[&str]) -> bool {
    let options = node.descendants().filter(|one| one.kind() == kind);
    let mut said = options.map(|one| tree::text(&one).to_ascii_lowercase());
    said.any(|text| {
        let unquoted = |word: &'_ str| word.trim_matches(['"', '\'']).to_owned();
        let mut words = text.split_whitespace().map(unquoted);
        let is_it = words
            .next()
            .is_some_and(|one| names.contains(&one.as_str()));
        let is_off = words
            .next()
            .is_some_and(|said| ["false", "off", "0"].contains(&said.as_str()));
        is_it && !is_off
    })
}

fn unknown(node: &SyntaxNode) -> Form {
    Form::Other {
        what: tree::words(node, 2),
    }
}

/// Without a mode it is the strongest.
fn lock_mode(node: &SyntaxNode) -> LockMode {
    let said = tree::child(node, K::LOCK_MODE_CLAUSE)
        .map_or_else(String::new, |at| tree::text(&at).to_ascii_uppercase());
    let mode = said
        .strip_prefix("IN ")
        .and_then(|rest| rest.strip_suffix(" MODE"))
        .map(str::trim);
    [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
    ]
    .into_iter()
    .find(|one| Some(one.sql()) == mode)
    .unwrap_or(LockMode::AccessExclusive)
}

/// Families of statements that the parser tells apart by name only.
fn by_name(node: &SyntaxNode) -> Form {
    let kind = format!("{:?}", node.kind());
    if let Some(of) = kind.strip_prefix("DROP_") {
        return drop(node, of);
    }
    if let Some(of) = kind.strip_prefix("ALTER_") {
        return alter(node, of);
    }
    if [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
        "PREPARE_TRANSACTION",
        "SET_TRANSACTION",
        "SET_CONSTRAINTS",
    ]
    .iter()
    .any(|word| kind.starts_with(word))
    {
        if kind.starts_with("SET_CONSTRAINTS") {
            return Form::Set {
                name: "constraints".to_owned(),
                local: true,
                value: None,
            };
        }
        return Form::TransactionControl {
            what: tree::words(node, 2),
        };
    }
    match kind.as_str() {
        "CREATE_DATABASE" | "CREATE_TABLESPACE" | "CREATE_SUBSCRIPTION" => Form::ClusterWide {
            what: tree::words(node, 2),
            transactional: false,
        },
        "CREATE_ROLE" | "CREATE_USER" | "CREATE_GROUP" => Form::ClusterWide {
            what: tree::words(node, 2),
            transactional: true,
        },
        "CREATE_PUBLICATION"
        | "CREATE_EVENT_TRIGGER"
        | "IMPORT_FOREIGN_SCHEMA"
        | "NOTIFY"
        | "LISTEN"
        | "UNLISTEN"
        | "DISCARD"
        | "CREATE_AGGREGATE"
        | "CREATE_CAST"
        | "CREATE_COLLATION"
        | "CREATE_CONVERSION"
        | "CREATE_OPERATOR"
        | "CREATE_OPERATOR_CLASS"
        | "CREATE_OPERATOR_FAMILY"
        | "CREATE_LANGUAGE"
        | "CREATE_SERVER"
        | "CREATE_FOREIGN_DATA_WRAPPER"
        | "CREATE_USER_MAPPING"
        | "CREATE_TRANSFORM"
        | "CREATE_ACCESS_METHOD"
        | "CREATE_TEXT_SEARCH_CONFIGURATION"
        | "CREATE_TEXT_SEARCH_DICTIONARY"
        | "CREATE_TEXT_SEARCH_PARSER"
        | "CREATE_TEXT_SEARCH_TEMPLATE" => Form::CreateOther {
            what: tree::words(node, 2),
        },
        _ => unknown(node),
    }
}

fn object_kind(of: &str) -> ObjectKind {
    match of {
        "TABLE" | "FOREIGN_TABLE" => ObjectKind::Table,
        "INDEX" => ObjectKind::Index,
        "VIEW" => ObjectKind::View,
        "MATERIALIZED_VIEW" => ObjectKind::MaterializedView,
        "SEQUENCE" => ObjectKind::Sequence,
        "TYPE" => ObjectKind::Type,
        "DOMAIN" => ObjectKind::Domain,
        "FUNCTION" | "PROCEDURE" | "ROUTINE" | "AGGREGATE" => ObjectKind::Function,
        "TRIGGER" | "EVENT_TRIGGER" => ObjectKind::Trigger,
        "POLICY" => ObjectKind::Policy,
        "SCHEMA" => ObjectKind::Schema,
        "EXTENSION" => ObjectKind::Extension,
        "RULE" => ObjectKind::Rule,
        "PUBLICATION" => ObjectKind::Publication,
        "DATABASE" | "TABLESPACE" | "SUBSCRIPTION" | "SYSTEM" => ObjectKind::Database,
        "ROLE" | "USER" | "GROUP" => ObjectKind::Role,
        "STATISTICS" => ObjectKind::Statistics,
        _ => ObjectKind::Other,
    }
}

fn drop(node: &SyntaxNode, of: &str) -> Form {
    let kind = object_kind(of);
    if matches!(kind, ObjectKind::Database | ObjectKind::Role) {
        return Form::ClusterWide {
            what: tree::words(node, 2),
            transactional: kind == ObjectKind::Role,
        };
    }
    let on = tree::child(node, K::ON_TABLE)
        .or_else(|| tree::child(node, K::ON_RELATION))
        .map(|at| tree::name(&at));
    // References stand below the node, in lists for some kinds.
    let mut names = Vec::new();
    for child in node.descendants() {
        let word = format!("{:?}", child.kind());
        let inside_on = child
            .ancestors()
            .any(|above| matches!(above.kind(), K::ON_TABLE | K::ON_RELATION | K::PARAM_LIST));
        let is_reference = word.ends_with("_REF")
            && !matches!(
                child.kind(),
                K::PATH_REF | K::PATH_SEGMENT_REF | K::NAME_REF
            );
        if is_reference && !inside_on {
            names.push(QualifiedName::read(&tree::text(&child)));
        }
    }
    Form::Drop {
        kind,
        names,
        on,
        cascade: tree::has(node, K::CASCADE),
        if_exists: tree::has(node, K::IF_EXISTS),
    }
}

fn alter(node: &SyntaxNode, of: &str) -> Form {
    let kind = object_kind(of);
    let name = tree::name(node);
    if matches!(kind, ObjectKind::Database | ObjectKind::Role) {
        return Form::ClusterWide {
            what: tree::words(node, 2),
            transactional: !matches!(of, "SYSTEM" | "TABLESPACE" | "SUBSCRIPTION"),
        };
    }
    let text = tree::text(node).to_ascii_lowercase();
    let renames = node
        .children()
        .any(|child| format!("{:?}", child.kind()).ends_with("RENAME_TO"))
        || text.contains(" rename to ")
        // RENAME COLUMN a TO b, or without the word COLUMN.
        || matches!(kind, ObjectKind::View | ObjectKind::MaterializedView)
            && node
                .children()
                .any(|child| format!("{:?}", child.kind()).starts_with("RENAME_"));
    if renames {
        let on = tree::child(node, K::ON_TABLE)
            .or_else(|| tree::child(node, K::ON_RELATION))
            .map(|at| tree::name(&at));
        return Form::Rename { kind, name, on };
    }
    if tree::has(node, K::SET_SCHEMA) {
        return Form::SetSchema { kind, name };
    }
    if kind == ObjectKind::Sequence {
        if tree::has(node, K::OWNER_TO) {
            return Form::AlterOther {
                kind,
                what: "OWNER".to_owned(),
            };
        }
        return Form::AlterSequence { name };
    }
    let what = node
        .children()
        .last()
        .map_or_else(|| tree::words(node, 3), |last| tree::words(&last, 2));
    Form::AlterOther { kind, what }
}

fn create_index(node: &SyntaxNode) -> Form {
    let on = tree::child(node, K::TABLE_RELATION_NAME);
    Form::CreateIndex(CreateIndex {
        index: tree::child(node, K::INDEX).map(|at| tree::name(&at)),
        table: on.as_ref().map_or_else(|| tree::name(node), tree::name),
        only: on
            .as_ref()
            .is_some_and(|at| tree::has_token(at, K::ONLY_KW)),
        unique: tree::has_token(node, K::UNIQUE_KW),
        concurrently: tree::has_token(node, K::CONCURRENTLY_KW),
        if_not_exists: tree::has(node, K::IF_NOT_EXISTS),
        method: tree::child(node, K::USING_METHOD).map(|at| tree::one(&at, K::ACCESS_METHOD_REF)),
        keys: tree::child(node, K::PARTITION_ITEM_LIST).map_or(0, |list| list.children().count()),
        columns: tree::child(node, K::PARTITION_ITEM_LIST)
            .into_iter()
            .flat_map(|list| list.children().collect::<Vec<_>>())
            .filter_map(|item| tree::child(&item, K::NAME_REF))
            .map(|at| crate::name::identifier(&tree::text(&at)))
            .collect(),
        partial: tree::has(node, K::WHERE_CLAUSE) || tree::has(node, K::WHERE_CONDITION_CLAUSE),
    })
}

fn reindex(node: &SyntaxNode) -> Form {
    let target = node
        .children()
        .find(|child| format!("{:?}", child.kind()).starts_with("REINDEX_TARGET"));
    let of = match target.as_ref().map(|target| format!("{:?}", target.kind())) {
        Some(kind) if kind.ends_with("_INDEX") => ReindexOf::Index,
        Some(kind) if kind.ends_with("_TABLE") => ReindexOf::Table,
        Some(kind) if kind.ends_with("_SCHEMA") => ReindexOf::Schema,
        _ => ReindexOf::Database,
    };
    let text = tree::text(node).to_ascii_lowercase();
    Form::Reindex {
        target: match of {
            ReindexOf::Index | ReindexOf::Table => target.as_ref().map(tree::name),
            ReindexOf::Schema | ReindexOf::Database => None,
        },
        of,
        concurrently: text
            .split([' ', '(', ')', ','])
            .any(|word| word == "concurrently"),
    }
}

fn alter_type(node: &SyntaxNode) -> Form {
    let name = tree::name(node);
    let last = node.children().last();
    let change = match last.as_ref().map(SyntaxNode::kind) {
        Some(K::ADD_VALUE) => {
            let last = last.as_ref();
            TypeChange::AddValue {
                value: last
                    .and_then(|at| tree::child(at, K::LITERAL))
                    .map(|literal| tree::text(&literal).trim_matches('\'').to_owned())
                    .unwrap_or_default(),
                placed: last.is_some_and(|at| {
                    tree::has(at, K::BEFORE_VALUE) || tree::has(at, K::AFTER_VALUE)
                }),
            }
        }
        Some(K::RENAME_VALUE) => TypeChange::RenameValue,
        Some(K::RENAME_ATTRIBUTE) => TypeChange::AlterAttribute,
        Some(K::TYPE_RENAME_TO) => {
            return Form::Rename {
                kind: ObjectKind::Type,
                name,
                on: None,
            };
        }
        Some(K::SET_SCHEMA) => {
            return Form::SetSchema {
                kind: ObjectKind::Type,
                name,
            };
        }
        Some(K::ALTER_TYPE_ATTRIBUTE_ACTION_LIST) => {
            let list = last.as_ref();
            let only_adds =
                list.is_some_and(|at| at.children().all(|one| one.kind() == K::ADD_ATTRIBUTE));
            let drops =
                list.is_some_and(|at| at.children().any(|one| one.kind() == K::DROP_ATTRIBUTE));
            match (only_adds, drops) {
                (true, _) => TypeChange::AddAttribute,
                (_, true) => TypeChange::DropAttribute,
                _ => TypeChange::AlterAttribute,
            }
        }
        _ => TypeChange::Other,
    };
    Form::AlterType { name, change }
}

fn create_domain(node: &SyntaxNode) -> Form {
    let base = node
        .children()
        .find(|child| tree::is_type(child.kind()))
        .map_or_else(|| tree::type_name(node), |at| tree::type_name(&at));
    Form::CreateDomain {
        name: tree::name(node),
        base,
        constrained: tree::has(node, K::CHECK_CONSTRAINT)
            || tree::has(node, K::NOT_NULL_CONSTRAINT),
        default: tree::child(node, K::DEFAULT_CONSTRAINT).and_then(|clause| {
            clause
                .children()
                .find(|child| child.kind() != K::CONSTRAINT_NAME_CLAUSE)
                .map(|inside| tree::expression(&inside))
        }),
    }
}

fn alter_domain(node: &SyntaxNode) -> Form {
    let name = tree::name(node);
    let last = node.children().last();
    let change = match last.as_ref().map(SyntaxNode::kind) {
        Some(K::ADD_CONSTRAINT) => DomainChange::AddConstraint {
            not_valid: last
                .as_ref()
                .is_some_and(|at| tree::below(at, K::NOT_VALID).is_some()),
        },
        Some(K::VALIDATE_CONSTRAINT) => DomainChange::ValidateConstraint,
        Some(K::SET_NOT_NULL) => DomainChange::SetNotNull,
        Some(K::DROP_NOT_NULL | K::DROP_CONSTRAINT) => DomainChange::Loosen,
        Some(K::SET_DEFAULT | K::DROP_DEFAULT) => DomainChange::SetDefault,
        _ => {
            if tree::text(node)
                .to_ascii_lowercase()
                .contains(" rename to ")
            {
                return Form::Rename {
                    kind: ObjectKind::Domain,
                    name,
                    on: None,
                };
            }
            DomainChange::Other
        }
    };
    Form::AlterDomain { name, change }
}

fn on(node: &SyntaxNode) -> QualifiedName {
    tree::child(node, K::ON_TABLE)
        .or_else(|| tree::child(node, K::ON_RELATION))
        .map_or_else(|| tree::name(node), |at| tree::name(&at))
}
