//! CREATE TABLE and ALTER TABLE.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{check, sequence, tree};
use crate::form::{
    Action, Column, Constraint, ConstraintKind, CreateTable, Form, Generated, IdentityChange,
    Reference,
};

/// CREATE TABLE, also foreign.
pub(super) fn create(node: &SyntaxNode) -> CreateTable {
    let arguments = tree::child(node, K::TABLE_ARG_LIST);
    let mut columns = Vec::new();
    let mut references = Vec::new();
    let mut has_primary_key = false;
    let mut unique_keys = Vec::new();
    let mut checked = false;
    for argument in arguments.iter().flat_map(SyntaxNode::children) {
        match argument.kind() {
            K::COLUMN => {
                let read = column(&argument);
                has_primary_key |= read.primary;
                references.extend(read.references.clone());
                if read.primary || read.unique {
                    unique_keys.push(vec![read.name.clone()]);
                }
                columns.push(read);
            }
            K::PRIMARY_KEY_CONSTRAINT | K::UNIQUE_CONSTRAINT => {
                has_primary_key |= argument.kind() == K::PRIMARY_KEY_CONSTRAINT;
                unique_keys.push(constraint(&argument).columns);
            }
            K::CHECK_CONSTRAINT | K::EXCLUDE_CONSTRAINT => checked = true,
            K::FOREIGN_KEY_CONSTRAINT => references.push(referenced(&argument)),
            _ => {}
        }
    }
    CreateTable {
        table: tree::child(node, K::TABLE_NAME)
            .map_or_else(|| tree::name(node), |at| tree::name(&at)),
        if_not_exists: tree::has(node, K::IF_NOT_EXISTS),
        temporary: tree::has(node, K::TEMP),
        partition_of: tree::child(node, K::PARTITION_OF).map(|parent| tree::name(&parent)),
        inherits: tree::child(node, K::INHERITS)
            .map(|parents| {
                parents
                    .descendants()
                    .filter(|child| child.kind() == K::TABLE_NAME_REF)
                    .map(|child| tree::name(&child))
                    .collect()
            })
            .unwrap_or_default(),
        references,
        columns,
        has_primary_key,
        unique_keys,
        checked,
        constraint_names: constraint_names(arguments.as_ref()),
        partitioned: tree::has(node, K::PARTITION_BY),
        takes_over: tree::has(node, K::PARTITION_OF)
            || tree::has(node, K::INHERITS)
            || tree::has(node, K::OF_TYPE)
            || arguments
                .as_ref()
                .is_some_and(|list| tree::has(list, K::LIKE_CLAUSE)),
        partition_by: tree::child(node, K::PARTITION_BY).map_or_else(Vec::new, |by| {
            let items: Vec<SyntaxNode> = by
                .descendants()
                .filter(|child| child.kind() == K::PARTITION_ITEM)
                .collect();
            let columns: Vec<String> = items
                .iter()
                .filter_map(|item| tree::child(item, K::NAME_REF))
                .map(|at| crate::name::identifier(&tree::text(&at)))
                .collect();
            if columns.len() == items.len() {
                columns
            } else {
                Vec::new()
            }
        }),
    }
}

/// Names of CHECK, UNIQUE, PRIMARY KEY, EXCLUDE and foreign keys: servers before 18 forget those of other clauses.
fn constraint_names(arguments: Option<&SyntaxNode>) -> Vec<String> {
    let clauses = arguments.into_iter().flat_map(SyntaxNode::descendants);
    clauses
        .filter(|clause| {
            matches!(
                clause.kind(),
                K::CHECK_CONSTRAINT
                    | K::UNIQUE_CONSTRAINT
                    | K::PRIMARY_KEY_CONSTRAINT
                    | K::EXCLUDE_CONSTRAINT
                    | K::FOREIGN_KEY_CONSTRAINT
                    | K::REFERENCES_CONSTRAINT
            )
        })
        .filter_map(|clause| tree::child(&clause, K::CONSTRAINT_NAME_CLAUSE))
        .map(|clause| tree::one(&clause, K::CONSTRAINT_NAME))
        .collect()
}

/// ALTER TABLE.
pub(super) fn alter(node: &SyntaxNode) -> Form {
    let table = tree::child(node, K::TABLE_RELATION_NAME)
        .or_else(|| tree::child(node, K::TABLE_NAME_REF))
        .map_or_else(|| tree::name(node), |at| tree::name(&at));
    let actions = node
        .children()
        .filter(|child| {
            !matches!(
                child.kind(),
                K::TABLE_RELATION_NAME | K::TABLE_NAME_REF | K::IF_EXISTS
            )
        })
        .map(|child| action(&child))
        .collect();
    Form::AlterTable { table, actions }
}

fn action(node: &SyntaxNode) -> Action {
    let constraint = || tree::one(node, K::CONSTRAINT_NAME_REF);
    match node.kind() {
        K::ADD_COLUMN => Action::AddColumn {
            column: Box::new(column(node)),
            if_not_exists: tree::has(node, K::IF_NOT_EXISTS),
        },
        K::DROP_COLUMN => Action::DropColumn {
            column: tree::one(node, K::COLUMN_NAME_REF),
            cascade: tree::has(node, K::CASCADE),
        },
        K::RENAME_COLUMN => Action::RenameColumn {
            column: tree::one(node, K::COLUMN_NAME_REF),
            to: tree::one(node, K::COLUMN_NAME),
        },
        K::ALTER_COLUMN => alter_column(node),
        K::ADD_CONSTRAINT => match node.children().next() {
            Some(of) => Action::AddConstraint {
                constraint: self::constraint(&of),
            },
            None => other(node),
        },
        K::DROP_CONSTRAINT => Action::DropConstraint {
            if_exists: tree::has(node, K::IF_EXISTS),
            constraint: constraint(),
            cascade: tree::has(node, K::CASCADE),
        },
        K::VALIDATE_CONSTRAINT => Action::ValidateConstraint {
            constraint: constraint(),
        },
        K::ALTER_CONSTRAINT => Action::AlterConstraint {
            constraint: constraint(),
            enforced: {
                let text = tree::text_after(node, K::CONSTRAINT_NAME_REF).to_ascii_lowercase();
                text.contains("enforced") && !text.contains("not enforced")
            },
        },
        K::RENAME_CONSTRAINT => Action::RenameConstraint {
            constraint: constraint(),
        },
        K::TABLE_RENAME_TO => Action::RenameTable {
            to: tree::name(node).name,
        },
        K::SET_SCHEMA => Action::SetSchema,
        K::ATTACH_PARTITION => Action::AttachPartition {
            partition: tree::name(node),
            bound: check::bound(node),
        },
        K::DETACH_PARTITION => Action::DetachPartition {
            partition: tree::name(node),
            concurrently: tree::has(node, K::DETACH_CONCURRENTLY)
                || tree::has_token(node, K::CONCURRENTLY_KW),
            finalize: tree::has(node, K::DETACH_FINALIZE),
        },
        K::INHERIT_TABLE => Action::Inherit {
            parent: tree::name(node),
        },
        K::NO_INHERIT_TABLE => Action::NoInherit {
            parent: tree::name(node),
        },
        K::ENABLE_TRIGGER | K::ENABLE_ALWAYS_TRIGGER | K::ENABLE_REPLICA_TRIGGER => {
            Action::EnableTrigger {
                name: last_word(node),
            }
        }
        K::DISABLE_TRIGGER => Action::DisableTrigger {
            name: last_word(node),
        },
        K::ENABLE_RLS => Action::EnableRowSecurity,
        K::FORCE_RLS => Action::ForceRowSecurity,
        K::DISABLE_RLS | K::NO_FORCE_RLS => Action::DisableRowSecurity,
        K::REPLICA_IDENTITY => Action::ReplicaIdentity {
            // Behind USING INDEX it is an index.
            nothing: tree::words(node, 4) == "REPLICA IDENTITY NOTHING",
        },
        K::SET_LOGGED => Action::SetLogged { logged: true },
        K::SET_UNLOGGED => Action::SetLogged { logged: false },
        K::SET_ACCESS_METHOD => Action::SetAccessMethod,
        K::SET_TABLESPACE => Action::SetTablespace,
        K::CLUSTER_ON | K::SET_WITHOUT_CLUSTER => Action::ClusterOn,
        K::OWNER_TO => Action::Owner,
        K::SET_OPTIONS | K::RESET_OPTIONS => Action::Options {
            only_tuning: only_tuning(&tree::text(node)),
        },
        // The server takes it and does nothing.
        K::SET_WITHOUT_OIDS => Action::Options { only_tuning: false },
        K::ALTER_OPTION_LIST if is_foreign_tuning(node) => Action::Options { only_tuning: false },
        _ => other(node),
    }
}

fn other(node: &SyntaxNode) -> Action {
    Action::Other {
        what: tree::words(node, 3),
    }
}

/// Options of a foreign table or column that change how it is read and not what (postgresql.org/docs/18/postgres-fdw.html); any other may
/// lead its readers to another table.
fn is_foreign_tuning(list: &SyntaxNode) -> bool {
    let text = tree::text(list).to_ascii_lowercase();
    let Some((_, inside)) = text.split_once('(') else {
        return false;
    };
    inside.split(',').all(|part| {
        let words = part.split_whitespace();
        let name = words
            .filter(|word| !["set", "add", "drop"].contains(word))
            .map(|word| word.trim_end_matches(')'))
            .next();
        name.is_some_and(|name| FOREIGN_TUNING.contains(&name))
    })
}

const FOREIGN_TUNING: &[&str] = &[
    "analyze_sampling",
    "async_capable",
    "batch_size",
    "fdw_startup_cost",
    "fdw_tuple_cost",
    "fetch_size",
    "keep_connections",
    "parallel_abort",
    "parallel_commit",
    "use_remote_estimate",
];

/// Storage parameters for which SHARE UPDATE EXCLUSIVE is enough (postgresql.org/docs/18/sql-createtable.html).
fn only_tuning(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((_, inside)) = text.split_once('(') else {
        return false;
    };
    inside.split(',').all(|part| {
        let key = part.split('=').next().unwrap_or_default();
        let key = key
            .trim()
            .trim_end_matches(')')
            .trim()
            .trim_start_matches("toast.");
        key == "fillfactor"
            || key == "toast_tuple_target"
            || key == "parallel_workers"
            || key.starts_with("autovacuum_")
            || key.starts_with("vacuum_")
            || key == "log_autovacuum_min_duration"
    })
}

fn last_word(node: &SyntaxNode) -> String {
    tree::text(node)
        .split_whitespace()
        .next_back()
        .map(crate::name::identifier)
        .unwrap_or_default()
}

fn alter_column(node: &SyntaxNode) -> Action {
    let column = tree::one(node, K::COLUMN_NAME_REF);
    let Some(change) = node
        .children()
        .find(|child| child.kind() != K::COLUMN_NAME_REF)
    else {
        return other(node);
    };
    match change.kind() {
        K::SET_TYPE => Action::SetType {
            column,
            to: of_type(&change),
            using: tree::child(&change, K::USING_EXPR)
                .is_some_and(|using| !is_own_cast(&using, &change)),
            collated: tree::has(&change, K::COLLATE),
        },
        K::SET_DEFAULT => Action::SetDefault {
            column,
            expression: change.children().next().map_or_else(
                || tree::expression(&change),
                |inside| tree::expression(&inside),
            ),
        },
        K::DROP_DEFAULT => Action::DropDefault { column },
        K::SET_NOT_NULL => Action::SetNotNull { column },
        K::DROP_NOT_NULL => Action::DropNotNull { column },
        K::ADD_GENERATED => Action::AddIdentity {
            column,
            always: tree::below(&change, K::GENERATED_ALWAYS).is_some(),
        },
        K::DROP_IDENTITY | K::SET_GENERATED_OPTIONS | K::SET_GENERATED | K::RESTART => {
            Action::ChangeIdentity {
                column,
                change: identity_change(node),
            }
        }
        K::DROP_EXPRESSION => Action::DropExpression { column },
        K::SET_EXPRESSION => Action::SetExpression { column },
        K::SET_STATISTICS => Action::SetStatistics,
        K::SET_STORAGE => Action::SetStorage,
        K::SET_COMPRESSION => Action::SetCompression,
        K::SET_OPTIONS | K::RESET_OPTIONS => Action::Options { only_tuning: true },
        K::SET_OPTIONS_LIST | K::ALTER_OPTION_LIST if is_foreign_tuning(&change) => {
            Action::Options { only_tuning: false }
        }
        _ => other(node),
    }
}

/// SET GENERATED and RESTART stand beside one another in one clause.
fn identity_change(node: &SyntaxNode) -> IdentityChange {
    let has = |kind| tree::below(node, kind).is_some();
    if has(K::DROP_IDENTITY) {
        return IdentityChange::Dropped;
    }
    if has(K::GENERATED_ALWAYS) {
        return IdentityChange::Always;
    }
    if sequence::starts_again(node) {
        IdentityChange::FromTheStart
    } else {
        IdentityChange::Other
    }
}

/// `USING column::type`, the type that it is set to: what the server does without USING too.
fn is_own_cast(using: &SyntaxNode, change: &SyntaxNode) -> bool {
    let Some(cast) = using
        .children()
        .next()
        .filter(|inside| inside.kind() == K::CAST_EXPR)
    else {
        return false;
    };
    let mut parts = cast.children().filter(|part| part.kind() != K::COLON_COLON);
    let (Some(operand), Some(to)) = (parts.next(), parts.next()) else {
        return false;
    };
    operand.kind() == K::NAME_REF && tree::type_name(&to) == of_type(change)
}

/// The type below a column or a SET TYPE.
fn of_type(node: &SyntaxNode) -> crate::form::TypeName {
    node.children()
        .find(|child| tree::is_type(child.kind()))
        .map_or_else(|| tree::type_name(node), |found| tree::type_name(&found))
}

fn column(node: &SyntaxNode) -> Column {
    let mut column = Column {
        name: tree::one(node, K::COLUMN_NAME),
        data_type: of_type(node),
        not_null: false,
        default: None,
        generated: None,
        identity: false,
        always: false,
        checked: false,
        unique: false,
        primary: false,
        references: None,
        collated: tree::has(node, K::COLLATE),
    };
    for clause in node.children() {
        match clause.kind() {
            K::NOT_NULL_CONSTRAINT => column.not_null = true,
            K::DEFAULT_CONSTRAINT => {
                column.default = clause
                    .children()
                    .find(|child| child.kind() != K::CONSTRAINT_NAME_CLAUSE)
                    .map(|inside| tree::expression(&inside));
            }
            K::GENERATED_CONSTRAINT => {
                if let Some(identity) = tree::child(&clause, K::GENERATED_IDENTITY) {
                    column.identity = true;
                    column.always = tree::has(&identity, K::GENERATED_ALWAYS);
                } else if tree::text(&clause).to_ascii_lowercase().ends_with("stored") {
                    column.generated = Some(Generated::Stored);
                } else {
                    column.generated = Some(Generated::Virtual);
                }
            }
            K::CHECK_CONSTRAINT => column.checked = true,
            K::UNIQUE_CONSTRAINT => column.unique = true,
            K::PRIMARY_KEY_CONSTRAINT => column.primary = true,
            K::REFERENCES_CONSTRAINT => column.references = Some(referenced(&clause)),
            _ => {}
        }
    }
    column
}

/// Of REFERENCES: its columns stand behind the table, in a list where the foreign key is one of the table.
fn referenced(node: &SyntaxNode) -> Reference {
    let columns = node
        .children()
        .skip_while(|one| one.kind() != K::TABLE_NAME_REF)
        .skip(1)
        .take_while(|one| matches!(one.kind(), K::COLUMN_NAME_REF | K::FOREIGN_KEY_COLUMN_LIST))
        .flat_map(|one| one.descendants().collect::<Vec<_>>())
        .filter(|inside| inside.kind() == K::COLUMN_NAME_REF)
        .map(|inside| crate::name::identifier(&tree::text(&inside)));
    Reference {
        table: tree::child(node, K::TABLE_NAME_REF)
            .map_or_else(|| tree::name(node), |at| tree::name(&at)),
        columns: columns.collect(),
        period: tree::below(node, K::PERIOD_COLUMN).is_some(),
    }
}

fn constraint(node: &SyntaxNode) -> Constraint {
    let using_index = tree::child(node, K::USING_INDEX_NAME).map(|index| tree::name(&index).name);
    let mut columns: Vec<String> = node
        .descendants()
        .filter(|child| {
            matches!(
                child.kind(),
                K::FOREIGN_KEY_COLUMN_LIST | K::COLUMN_LIST | K::CONSTRAINT_COLUMN_REF_LIST
            )
        })
        .take(1)
        .flat_map(|list| {
            list.children()
                .map(|one| tree::text(&one))
                .collect::<Vec<_>>()
        })
        .map(|text| crate::name::identifier(&text))
        .collect();
    let kind = match node.kind() {
        K::CHECK_CONSTRAINT => ConstraintKind::Check {
            not_null_of: not_null_of(node),
        },
        K::FOREIGN_KEY_CONSTRAINT | K::REFERENCES_CONSTRAINT => ConstraintKind::ForeignKey {
            references: referenced(node),
        },
        K::UNIQUE_CONSTRAINT => ConstraintKind::Unique { using_index },
        K::PRIMARY_KEY_CONSTRAINT => ConstraintKind::PrimaryKey { using_index },
        K::EXCLUDE_CONSTRAINT => ConstraintKind::Exclude,
        K::NOT_NULL_CONSTRAINT => {
            let column = tree::below(node, K::COLUMN_NAME_REF)
                .or_else(|| tree::below(node, K::NAME_REF))
                .map_or_else(String::new, |at| crate::name::identifier(&tree::text(&at)));
            columns = vec![column.clone()];
            ConstraintKind::NotNull { column }
        }
        _ => ConstraintKind::Other,
    };
    Constraint {
        name: tree::child(node, K::CONSTRAINT_NAME_CLAUSE)
            .map(|clause| tree::one(&clause, K::CONSTRAINT_NAME)),
        kind,
        columns,
        not_valid: tree::below(node, K::NOT_VALID).is_some(),
        not_enforced: tree::text(node)
            .to_ascii_lowercase()
            .ends_with("not enforced"),
        nulls_not_distinct: tree::below(node, K::NULLS_NOT_DISTINCT).is_some(),
        terms: if node.kind() == K::CHECK_CONSTRAINT {
            check::terms(node)
        } else {
            Vec::new()
        },
    }
}

/// The column of `CHECK (column IS NOT NULL)`, and of nothing more.
fn not_null_of(node: &SyntaxNode) -> Option<String> {
    let text = tree::text(node);
    let (_, inside) = text.split_once('(')?;
    let (inside, _) = inside.rsplit_once(')')?;
    let inside = inside.trim().trim_matches(['(', ')']).trim();
    let head = inside.len().checked_sub("is not null".len())?;
    if !inside.is_char_boundary(head) || !inside[head..].eq_ignore_ascii_case("is not null") {
        return None;
    }
    let column = inside[..head].trim();
    let plain = column.starts_with('"') && column.ends_with('"')
        || column
            .chars()
            .all(|one| one.is_alphanumeric() || one == '_' || one == '$');
    (plain && !column.is_empty()).then(|| crate::name::identifier(column))
}
