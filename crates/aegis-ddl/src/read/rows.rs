//! How many rows an INSERT, UPDATE or DELETE is about, as far as its text says.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{statement, tree};
use crate::form::{RowScope, Source};
use crate::name::QualifiedName;
use crate::statement::Statement;

/// INSERT, UPDATE, DELETE and MERGE in a WITH.
pub(super) fn with(node: &SyntaxNode, sql: &str) -> Vec<Statement> {
    ctes(node)
        .flat_map(|table| table.children().collect::<Vec<_>>())
        .filter(|inside| changes_rows(inside.kind()))
        .filter_map(|inside| statement(&inside, sql))
        .collect()
}

pub(super) const fn changes_rows(kind: K) -> bool {
    matches!(kind, K::INSERT | K::UPDATE | K::DELETE | K::MERGE)
}

fn ctes(node: &SyntaxNode) -> impl Iterator<Item = SyntaxNode> {
    tree::child(node, K::WITH_CLAUSE)
        .into_iter()
        .flat_map(|clause| clause.children().collect::<Vec<_>>())
        .filter(|child| child.kind() == K::WITH_TABLE)
}

/// Relations that the query of CREATE TABLE AS or CREATE MATERIALIZED VIEW reads, and those of a SELECT that says of no row that it does
/// not want it. EXISTS wants one row, and min and max may find theirs at an end of an index.
pub(super) fn scanned(node: &SyntaxNode) -> Vec<QualifiedName> {
    let copies = matches!(
        node.kind(),
        K::CREATE_TABLE_AS | K::SELECT_INTO | K::CREATE_MATERIALIZED_VIEW
    );
    let says_which = || {
        [K::WHERE_CLAUSE, K::LIMIT_CLAUSE, K::FETCH_CLAUSE]
            .iter()
            .any(|kind| tree::below(node, *kind).is_some())
    };
    let reads_all = matches!(node.kind(), K::SELECT | K::TABLE) && !says_which();
    if !copies && !reads_all || tree::below(node, K::WITH_NO_DATA).is_some() {
        return Vec::new();
    }
    let named: Vec<String> = node
        .descendants()
        .filter(|inside| inside.kind() == K::CTE_NAME)
        .map(|inside| crate::name::identifier(&tree::text(&inside)))
        .collect();
    node.descendants()
        .filter(|inside| matches!(inside.kind(), K::RELATION_FROM_ITEM | K::TABLE))
        .filter(|inside| !wants_few(inside, node))
        .map(|inside| tree::name(&inside))
        .filter(|name| name.schema.is_some() || !named.contains(&name.name))
        .filter(|name| {
            let of_server = ["pg_catalog", "information_schema"];
            !name.name.starts_with("pg_")
                && !name
                    .schema
                    .as_deref()
                    .is_some_and(|schema| of_server.contains(&schema))
        })
        .collect()
}

/// Whether a relation stands below EXISTS, or its query asks for nothing but its smallest or largest value.
fn wants_few(item: &SyntaxNode, statement: &SyntaxNode) -> bool {
    let is_below_exists = item
        .ancestors()
        .take_while(|above| above != statement)
        .any(|above| above.kind() == K::EXISTS_FN);
    let query = || item.ancestors().find(|above| above.kind() == K::SELECT);
    is_below_exists || query().is_some_and(|select| asks_for_an_end(&select))
}

/// `SELECT max(id) FROM t`, also inside of functions of one value; no other aggregate, one relation, no GROUP BY.
fn asks_for_an_end(select: &SyntaxNode) -> bool {
    let has_one = tree::child(select, K::FROM_CLAUSE).is_some_and(|from| {
        let mut items = from.children();
        items
            .next()
            .is_some_and(|one| one.kind() == K::RELATION_FROM_ITEM)
            && items.next().is_none()
    });
    let Some(list) = tree::child(select, K::SELECT_CLAUSE) else {
        return false;
    };
    if !has_one || tree::has(select, K::GROUP_BY_CLAUSE) {
        return false;
    }
    let mut ends = 0;
    for call in list.descendants().filter(|one| one.kind() == K::CALL_EXPR) {
        match callee(&call).as_str() {
            "min" | "max" if of_a_column(&call) && !tree::has(&call, K::OVER_CLAUSE) => ends += 1,
            "coalesce"
            | "greatest"
            | "least"
            | "nullif"
            | "nextval"
            | "setval"
            | "pg_get_serial_sequence" => {}
            _ => return false,
        }
    }
    ends > 0
}

fn callee(call: &SyntaxNode) -> String {
    let text = call
        .children()
        .next()
        .map_or_else(String::new, |of| tree::text(&of));
    let name = text.split('(').next().unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

/// Whether a call's only argument is a column.
fn of_a_column(call: &SyntaxNode) -> bool {
    let arguments: Vec<SyntaxNode> =
        tree::child(call, K::ARG_LIST).map_or_else(Vec::new, |list| list.children().collect());
    let [argument] = arguments.as_slice() else {
        return false;
    };
    argument
        .children()
        .next()
        .is_some_and(|one| is_column(&one))
}

/// The columns of CREATE VIEW; none when one of them does not stand there (`*`, an expression without a name, UNION).
pub(super) fn columns(view: &SyntaxNode) -> Option<Vec<String>> {
    let list = |node: &SyntaxNode| {
        node.children()
            .map(|one| crate::name::identifier(&tree::text(&one)))
            .collect()
    };
    if let Some(columns) = tree::child(view, K::COLUMN_LIST) {
        return Some(list(&columns));
    }
    let select = tree::child(&tree::child(view, K::SELECT)?, K::SELECT_CLAUSE)?;
    let targets = tree::child(&select, K::TARGET_LIST)?;
    targets
        .children()
        .map(|target| {
            if let Some(name) = tree::child(&target, K::AS_NAME) {
                return Some(tree::one(&name, K::COLUMN_NAME));
            }
            let of = target.children().next()?;
            let text = tree::text(&of);
            let named = matches!(of.kind(), K::NAME_REF | K::FIELD_EXPR) && !text.ends_with('*');
            named.then(|| QualifiedName::read(&text).name)
        })
        .collect()
}

/// What INSERT, UPDATE or DELETE writes, whatever its WITH names.
pub(super) fn target(node: &SyntaxNode) -> QualifiedName {
    tree::child(node, K::RELATION_NAME)
        .or_else(|| tree::child(node, K::RELATION_NAME_REF))
        .map_or_else(|| tree::name(node), |at| tree::name(&at))
}

/// Columns that an INSERT gives another value than DEFAULT: those that it names, and those of DO UPDATE.
pub(super) fn gives(insert: &SyntaxNode) -> Vec<String> {
    let mut given = sets(insert);
    let Some(list) = tree::child(insert, K::COLUMN_TARGET_LIST) else {
        return given;
    };
    let rows: Vec<SyntaxNode> = tree::child(insert, K::VALUES)
        .and_then(|values| tree::child(&values, K::ROW_LIST))
        .map_or_else(Vec::new, |rows| rows.children().collect());
    let is_given = |at: usize| {
        rows.is_empty()
            || rows
                .iter()
                .any(|row| row.children().nth(at).is_some_and(|one| !is_default(&one)))
    };
    let named = list.children().enumerate();
    given.extend(
        named
            .filter(|(at, _)| is_given(*at))
            .map(|(_, target)| tree::one(&target, K::COLUMN_NAME_REF)),
    );
    given
}

/// Columns that SET gives another value than DEFAULT.
pub(super) fn sets(node: &SyntaxNode) -> Vec<String> {
    let mut given = Vec::new();
    // What a WITH sets is of its own tables.
    let is_own = |set: &SyntaxNode| {
        let mut above = set.ancestors().take_while(|above| above != node);
        !above.any(|above| above.kind() == K::WITH_CLAUSE)
    };
    let clauses = node
        .descendants()
        .filter(|set| matches!(set.kind(), K::SET_SINGLE_COLUMN | K::SET_MULTIPLE_COLUMNS));
    for set in clauses.filter(is_own) {
        match set.kind() {
            K::SET_SINGLE_COLUMN if !set.last_child().is_some_and(|value| is_default(&value)) => {
                let target = tree::child(&set, K::COLUMN_TARGET);
                given.extend(target.map(|target| tree::one(&target, K::COLUMN_NAME_REF)));
            }
            K::SET_MULTIPLE_COLUMNS => {
                let values: Vec<SyntaxNode> = tree::child(&set, K::SET_EXPR_LIST)
                    .map_or_else(Vec::new, |list| list.children().collect());
                let targets = tree::child(&set, K::COLUMN_TARGET_LIST);
                let targets = targets.iter().flat_map(SyntaxNode::children).enumerate();
                given.extend(
                    targets
                        .filter(|(at, _)| !values.get(*at).is_some_and(is_default))
                        .map(|(_, target)| tree::one(&target, K::COLUMN_NAME_REF)),
                );
            }
            _ => {}
        }
    }
    given
}

fn is_default(value: &SyntaxNode) -> bool {
    tree::text(value).eq_ignore_ascii_case("default")
}

/// Of an INSERT.
pub(super) fn source(node: &SyntaxNode) -> Source {
    if tree::has(node, K::DEFAULT_VALUES) {
        return Source::Defaults;
    }
    if let Some(values) = tree::child(node, K::VALUES) {
        if gives_sets(&values) {
            return Source::Query;
        }
        // A subquery in a value gives one value: the rows are those that stand there.
        return Source::Rows(rows_of(&values));
    }
    let query = node.children().find(is_query);
    match query.and_then(|query| bounded_query(&query, node)) {
        Some((rows, keys)) if keys.is_empty() => Source::Rows(rows),
        Some((rows, keys)) => Source::Selected { rows, keys },
        None => Source::Query,
    }
}

/// Whether a function in VALUES makes many rows of one.
fn gives_sets(values: &SyntaxNode) -> bool {
    values
        .descendants()
        .filter(|inside| inside.kind() == K::CALL_EXPR)
        .filter_map(|call| call.children().next())
        .any(|name| SETS.contains(&tree::text(&name).to_ascii_lowercase().as_str()))
}

const SETS: &[&str] = &[
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_each",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "unnest",
];

fn rows_of(values: &SyntaxNode) -> usize {
    tree::child(values, K::ROW_LIST).map_or(0, |list| {
        list.children().filter(|row| row.kind() == K::ROW).count()
    })
}

type Keys = Vec<(QualifiedName, Vec<String>)>;

pub(super) fn is_query(node: &SyntaxNode) -> bool {
    matches!(
        node.kind(),
        K::SELECT | K::COMPOUND_SELECT | K::PAREN_SELECT | K::VALUES | K::TABLE
    )
}

/// The same of what UNION, INTERSECT and EXCEPT are made of: no more rows than all of them give together.
fn bounded_query(query: &SyntaxNode, outer: &SyntaxNode) -> Option<(usize, Keys)> {
    match query.kind() {
        K::SELECT => bounded(query, outer),
        K::VALUES if !gives_sets(query) => Some((rows_of(query), Keys::new())),
        K::COMPOUND_SELECT | K::PAREN_SELECT => {
            if let Some(limit) = limit(query) {
                return Some((limit, Keys::new()));
            }
            let mut all = 0_usize;
            let mut keys = Keys::new();
            for one in query.children().filter(is_query) {
                let (rows, more) = bounded_query(&one, outer)?;
                all = all.saturating_add(rows);
                keys.extend(more);
            }
            Some((all, keys))
        }
        _ => None,
    }
}

/// Most relations of one query whose conditions are read.
const JOINED_MAX: usize = 32;

/// How many rows a query gives at most, when the columns that it names are keys. `outer` is where its WITH stands.
fn bounded(select: &SyntaxNode, outer: &SyntaxNode) -> Option<(usize, Keys)> {
    if let Some(limit) = limit(select) {
        return Some((limit, Keys::new()));
    }
    let mut rows = elements(select)?;
    let mut keys = Keys::new();
    let items = joined(select)?;
    // Each is looked for in the conditions of all.
    if items.len() > JOINED_MAX {
        return None;
    }
    let conditions = conditions(select);
    let is_only = items.len() == 1;
    for item in items {
        let of = match item.kind() {
            K::PAREN_FROM_ITEM => {
                let inside = tree::child(&item, K::PAREN_SELECT)?;
                match (
                    tree::child(&inside, K::VALUES),
                    tree::child(&inside, K::SELECT),
                ) {
                    (Some(values), _) => rows_of(&values),
                    (None, Some(inner)) => {
                        let (rows, more) = bounded(&inner, outer)?;
                        keys.extend(more);
                        rows
                    }
                    (None, None) => return None,
                }
            }
            K::FUNCTION_FROM_ITEM => many_of(&tree::child(&item, K::CALL_EXPR)?)?,
            K::RELATION_FROM_ITEM => {
                let conditions = conditions.as_slice();
                relation(&item, conditions, is_only, outer, &mut keys)?
            }
            _ => return None,
        };
        rows = rows.saturating_mul(of);
    }
    Some((rows, keys))
}

/// What stands in FROM, that of inner and cross joins one by one. None: an outer join, which keeps rows that its condition does not mean.
fn joined(select: &SyntaxNode) -> Option<Vec<SyntaxNode>> {
    let mut open: Vec<SyntaxNode> = tree::child(select, K::FROM_CLAUSE)
        .iter()
        .flat_map(SyntaxNode::children)
        .collect();
    let mut items = Vec::new();
    while let Some(item) = open.pop() {
        match item.kind() {
            K::JOIN_EXPR => open.extend(item.children()),
            K::JOIN => {
                let inner = |one: &SyntaxNode| matches!(one.kind(), K::JOIN_INNER | K::JOIN_CROSS);
                if !item.children().any(|one| inner(&one)) {
                    return None;
                }
                open.extend(item.children());
            }
            K::JOIN_INNER | K::JOIN_CROSS | K::ON_CLAUSE => {}
            _ => items.push(item),
        }
    }
    Some(items)
}

/// The conditions of a query: of WHERE, and of its inner joins.
fn conditions(select: &SyntaxNode) -> Vec<SyntaxNode> {
    let from = tree::child(select, K::FROM_CLAUSE);
    let on = from
        .iter()
        .flat_map(SyntaxNode::descendants)
        .filter(|one| one.kind() == K::ON_CLAUSE);
    tree::child(select, K::WHERE_CLAUSE)
        .into_iter()
        .chain(on)
        .filter_map(|clause| clause.children().next())
        .collect()
}

fn relation(
    item: &SyntaxNode,
    conditions: &[SyntaxNode],
    is_only: bool,
    outer: &SyntaxNode,
    keys: &mut Keys,
) -> Option<usize> {
    let name = tree::name(item);
    let alias = alias_of(item);
    let cte = ctes(outer).find(|table| {
        name.schema.is_none()
            && tree::child(table, K::CTE_NAME)
                .is_some_and(|at| crate::name::identifier(&tree::text(&at)) == name.name)
    });
    if let Some(cte) = cte {
        let inside = cte.children().find(|one| one.kind() != K::CTE_NAME)?;
        return match inside.kind() {
            K::INSERT => match source(&inside) {
                Source::Rows(rows) => Some(rows),
                Source::Defaults => Some(1),
                Source::Selected { rows, keys: more } => {
                    keys.extend(more);
                    Some(rows)
                }
                Source::Query => None,
            },
            K::VALUES => Some(rows_of(&inside)),
            K::SELECT => {
                let (rows, more) = bounded(&inside, &inside)?;
                keys.extend(more);
                Some(rows)
            }
            _ => None,
        };
    }
    let mut compared = Vec::new();
    for condition in conditions {
        of_alias(
            condition,
            (!is_only).then_some(alias.as_str()),
            &mut compared,
        );
    }
    let rows = compared
        .iter()
        .map(|(rows, _)| *rows)
        .fold(1, usize::saturating_mul);
    let columns: Vec<String> = compared
        .into_iter()
        .flat_map(|(_, columns)| columns)
        .collect();
    if columns.is_empty() {
        return None;
    }
    keys.push((name, columns));
    Some(rows)
}

/// How the conditions of a query call what stands in its FROM.
fn alias_of(item: &SyntaxNode) -> String {
    tree::below(item, K::TABLE_ALIAS).map_or_else(
        || tree::name(item).name,
        |at| crate::name::identifier(&tree::text(&at)),
    )
}

/// The comparisons of a condition's conjuncts that are about one relation of the query.
fn of_alias(node: &SyntaxNode, alias: Option<&str>, compared: &mut Vec<(usize, Vec<String>)>) {
    if node.kind() == K::PAREN_EXPR {
        if let Some(inside) = node.children().next() {
            of_alias(&inside, alias, compared);
        }
        return;
    }
    if let Some((left, middle, right)) = tree::sides(node)
        && middle == "and"
    {
        of_alias(&left, alias, compared);
        of_alias(&right, alias, compared);
        return;
    }
    let is_its = alias.is_none_or(|alias| {
        let mut of = qualifiers(node).peekable();
        of.peek().is_some() && of.all(|one| one == alias)
    });
    if is_its && let Some(found) = keyed(node) {
        compared.push(found);
    }
}

/// What stands before the points of the columns in it.
fn qualifiers(node: &SyntaxNode) -> impl Iterator<Item = String> {
    node.descendants()
        .filter(|one| one.kind() == K::FIELD_EXPR)
        .filter_map(|field| field.children().next())
        .map(|of| crate::name::identifier(&tree::text(&of)))
}

/// LIMIT with a number; of what is computed nobody knows.
fn limit(select: &SyntaxNode) -> Option<usize> {
    let text = tree::text(&tree::child(select, K::LIMIT_CLAUSE)?);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [_, number] => number.parse().ok(),
        _ => None,
    }
}

/// How many rows the functions of a query's list make of one. None: nobody knows.
fn elements(select: &SyntaxNode) -> Option<usize> {
    let has_from = tree::has(select, K::FROM_CLAUSE);
    let list = tree::child(select, K::SELECT_CLAUSE)?;
    let mut rows = 1_usize;
    for call in list
        .descendants()
        .filter(|inside| inside.kind() == K::CALL_EXPR)
    {
        let Some(name) = call.children().next() else {
            continue;
        };
        let name = tree::text(&name).to_ascii_lowercase();
        let of = match name.as_str() {
            "unnest" | "generate_series" => many_of(&call)?,
            // Functions that give sets are few, and each of somebody's own may be one.
            _ if has_from || ONE_VALUE.contains(&name.as_str()) => 1,
            _ => return None,
        };
        rows = rows.saturating_mul(of);
    }
    Some(rows)
}

const ONE_VALUE: &[&str] = &[
    "now",
    "lower",
    "upper",
    "concat",
    "gen_random_uuid",
    "uuid_generate_v4",
    "uuidv7",
    "nextval",
    "setval",
    "md5",
    "max",
    "min",
    "count",
    "current_setting",
    "jsonb_build_object",
    "json_build_object",
    "to_jsonb",
];

/// Rows of `unnest(array['a', 'b'])` and `generate_series(1, 10)`.
fn many_of(call: &SyntaxNode) -> Option<usize> {
    let name = tree::text(&call.children().next()?).to_ascii_lowercase();
    let arguments: Vec<SyntaxNode> = tree::child(call, K::ARG_LIST)?
        .children()
        .filter_map(|argument| argument.children().next())
        .collect();
    match name.as_str() {
        "unnest" => array(arguments.first()?),
        "generate_series" => {
            let number = |at: usize| tree::text(arguments.get(at)?).parse::<i64>().ok();
            let (from, to) = (number(0)?, number(1)?);
            usize::try_from(to.saturating_sub(from).saturating_add(1).max(0)).ok()
        }
        _ => None,
    }
}

/// Elements of `array[1, 2]` or `'{1,2}'`, with or without a cast.
fn array(node: &SyntaxNode) -> Option<usize> {
    match node.kind() {
        K::ARRAY_EXPR => node
            .children()
            .all(|one| is_literal(&one))
            .then(|| node.children().count()),
        K::CAST_EXPR | K::PAREN_EXPR => array(&node.children().next()?),
        K::LITERAL => {
            let text = tree::text(node);
            let inside = text.strip_prefix("'{")?.strip_suffix("}'")?;
            Some(inside.split(',').count())
        }
        _ => None,
    }
}

/// Of an UPDATE or DELETE: keyed means that columns are compared with literals.
pub(super) fn scope(node: &SyntaxNode) -> RowScope {
    let Some(condition) = tree::child(node, K::WHERE_CLAUSE) else {
        return RowScope::All;
    };
    if tree::has(node, K::FROM_CLAUSE) || tree::has(node, K::USING_CLAUSE) {
        return RowScope::Condition;
    }
    condition
        .children()
        .next()
        .and_then(|expression| keyed(&expression))
        .map_or(RowScope::Condition, |(rows, columns)| RowScope::Keyed {
            rows,
            columns,
        })
}

/// `column = literal`, `column IN (literals)`, and these with AND and OR: how many combinations, of which columns.
fn keyed(node: &SyntaxNode) -> Option<(usize, Vec<String>)> {
    if node.kind() == K::PAREN_EXPR {
        return keyed(&node.children().next()?);
    }
    if node.kind() == K::BETWEEN_EXPR {
        let parts: Vec<SyntaxNode> = node.children().collect();
        let [of, from, to] = parts.as_slice() else {
            return None;
        };
        let number = |at: &SyntaxNode| tree::text(at).parse::<i64>().ok();
        let rows = number(to)?.saturating_sub(number(from)?).saturating_add(1);
        return is_column(of).then(|| {
            (
                usize::try_from(rows.max(0)).unwrap_or(usize::MAX),
                vec![column(of)],
            )
        });
    }
    let (left, middle, right) = tree::sides(node)?;
    match middle.as_str() {
        // What is empty is so in many rows, whatever the column is called.
        "=" if is_column(&left) && is_literal(&right) => {
            (tree::text(&right) != "''").then(|| (1, vec![column(&left)]))
        }
        "=" if is_column(&left) && is_one_value(&right) => Some((1, vec![column(&left)])),
        "=" if is_column(&left) => {
            let any = tree::below(&right, K::ANY_FN)?;
            let rows = array(&any.children().next()?)?;
            Some((rows, vec![column(&left)]))
        }
        "in" if is_column(&left) && right.children().all(|one| is_literal(&one)) => {
            Some((right.children().count(), vec![column(&left)]))
        }
        "in" if is_column(&left) => {
            let select = right.children().find(|one| one.kind() == K::SELECT)?;
            Some((limit(&select)?, vec![column(&left)]))
        }
        "and" => match (keyed(&left), keyed(&right)) {
            (Some((one, mut columns)), Some((other, more))) => {
                columns.extend(more);
                Some((one.saturating_mul(other), columns))
            }
            (one, other) => one.or(other),
        },
        "or" => {
            let ((one, columns), (other, more)) = (keyed(&left)?, keyed(&right)?);
            let both = columns.into_iter().filter(|name| more.contains(name));
            Some((one + other, both.collect()))
        }
        _ => None,
    }
}

/// A subquery in parentheses that gives the same value for every row around it: it reads one relation, its conditions compare with
/// literals only, it gives a column or a function of one, and whatever is qualified is its own.
fn is_one_value(node: &SyntaxNode) -> bool {
    let Some(select) = (node.kind() == K::PAREN_EXPR)
        .then(|| tree::child(node, K::SELECT))
        .flatten()
    else {
        return false;
    };
    let items = joined(&select).unwrap_or_default();
    let [item] = items.as_slice() else {
        return false;
    };
    let own = alias_of(item);
    item.kind() == K::RELATION_FROM_ITEM
        && conditions(&select).iter().all(is_closed)
        && qualifiers(&select).all(|of| of == own)
        && is_plain_list(&select)
}

/// One column, one literal, or one function of such.
fn is_plain_list(select: &SyntaxNode) -> bool {
    let Some(list) = tree::child(select, K::SELECT_CLAUSE) else {
        return false;
    };
    let plain = |one: &SyntaxNode| is_column(one) || is_literal(one);
    let targets: Vec<SyntaxNode> = list
        .descendants()
        .filter(|one| one.kind() == K::TARGET)
        .filter_map(|target| target.children().next())
        .collect();
    let [one] = targets.as_slice() else {
        return false;
    };
    if one.kind() != K::CALL_EXPR {
        return plain(one);
    }
    let arguments = tree::child(one, K::ARG_LIST);
    arguments.is_some_and(|list| {
        let inside = list
            .children()
            .filter_map(|argument| argument.children().next());
        inside.into_iter().all(|argument| plain(&argument))
    })
}

/// Whether a condition compares columns with literals only.
fn is_closed(node: &SyntaxNode) -> bool {
    if node.kind() == K::PAREN_EXPR {
        return node.children().all(|inside| is_closed(&inside));
    }
    tree::sides(node).is_some_and(|(left, middle, right)| match middle.as_str() {
        "and" | "or" => is_closed(&left) && is_closed(&right),
        "in" => is_column(&left) && right.children().all(|one| is_literal(&one)),
        _ => is_column(&left) && is_literal(&right),
    })
}

/// `t.id` and `(id)` are `id`.
fn column(node: &SyntaxNode) -> String {
    match node.children().next() {
        Some(inside) if node.kind() == K::PAREN_EXPR => column(&inside),
        _ => crate::name::identifier(&tree::text(node)),
    }
}

fn is_column(node: &SyntaxNode) -> bool {
    match node.kind() {
        K::NAME_REF | K::FIELD_EXPR => true,
        K::PAREN_EXPR => node.children().all(|inside| is_column(&inside)),
        _ => false,
    }
}

pub(super) fn is_literal(node: &SyntaxNode) -> bool {
    match node.kind() {
        K::LITERAL => true,
        K::PREFIX_EXPR | K::CAST_EXPR | K::PAREN_EXPR => node
            .children()
            .filter(|child| !tree::is_type(child.kind()) && child.kind() != K::COLON_COLON)
            .all(|child| is_literal(&child)),
        _ => false,
    }
}
