//! What is looked at before the first statement of a phase, so that what is refused anyway leaves nothing half done.

use aegis_backfill::job::{JobError, key_fault, tree};
use aegis_catalog::{Scope, quote, read_within};
use aegis_ddl::{Context, Form, judge};
use tokio_postgres::Client;

use super::RunError;
use super::step::refused_class;
use crate::change::{CHANGE_FILE, Change, Kind, Part, Phase, PhaseOf, Problem, Problems};
use crate::ledger::LedgerName;
use crate::lint::MovedRows;
use crate::lock::LOCK_FILE;
use crate::mutex::Held;
use crate::plan::source;
use crate::set::Set;
use crate::shadow::makes_its_schema;
use crate::standing::recorded;

/// A phase that nobody has sealed would be passed over as if it were not there. A contract is sealed weeks after its change.
pub(super) fn all_sealed(set: &Set) -> Result<(), RunError> {
    if set.files().get(LOCK_FILE).is_none() {
        let what = format!("there is no {LOCK_FILE} in {}", set.root());
        let help = "name the folder of the changes (--dir), or `aegis migrate seal`";
        return Err(RunError::Folder(
            Problem::of_file(set.files().name_of(LOCK_FILE), what, help).into(),
        ));
    }
    let open = set.unsealed().into_iter();
    let problems = open
        .filter(|at| at.phase != Phase::Contract)
        .map(|at| {
            let what = format!("{at} is not sealed, so nothing runs it");
            let help = "`aegis migrate seal`, and commit migrations.lock";
            Problem::of_file(set.files().name_of(LOCK_FILE), what, help).kind(Kind::Checksum)
        })
        .collect();
    Ok(Problems::none_of(problems)?)
}

/// Whether the schema of a change is there for whoever executes it. A `search_path` whose first schema is missing would make things
/// in the next one.
pub(super) async fn reachable(
    held: &Held,
    change: &Change,
    phase: Phase,
    fresh: bool,
    is_first: bool,
) -> Result<(), RunError> {
    let client = &held.session.client;
    if makes_its_schema(change, phase) || fresh && is_opaque(change, phase) {
        return Ok(());
    }
    let row = client
        .query_one(
            include_str!("../../sql/run/reachable.sql"),
            &[&change.schema, &change.run_as],
        )
        .await?;
    let (role, is_there, may_use): (String, bool, Option<bool>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let schema = &change.schema;
    let (what, help) = if !is_there {
        (
            format!("the schema {schema} is not in this database"),
            format!(
                "CREATE SCHEMA {}, or the first statement of a change does it{}",
                quote(schema),
                if is_first
                    && held.who.ledger == LedgerName::Application
                    && has_nothing(client).await?
                {
                    WRONG_DATABASE
                } else {
                    ""
                }
            ),
        )
    } else if may_use == Some(false) {
        (
            format!("the role {role} may not use the schema {schema}"),
            format!("GRANT USAGE, CREATE ON SCHEMA {} to it", quote(schema)),
        )
    } else {
        return Ok(());
    };
    let problem = Problem::of_file(format!("{}/change.toml", change.path), what, help);
    Err(RunError::Folder(problem.kind(Kind::Requires).into()))
}

/// What is told of a database in which nothing was run: perhaps another one was meant.
const WRONG_DATABASE: &str = ". Nothing was run: of this tool only the ledger's tables are here, without a change (schema aegis_migrate); in a wrong database drop that schema";

/// Refuses a key that cannot walk the table before the expand that its rows belong to, when nothing that is still to run may make it: when
/// rows are to be moved, both sides would be there already.
pub(super) async fn keys(
    client: &Client,
    set: &Set,
    stands: &crate::standing::Standing,
) -> Result<(), RunError> {
    let is_open = |change: &Change, phase| {
        let id = change.id.clone();
        stands
            .of(&PhaseOf { id, phase })
            .is_some_and(|state| !state.is_done())
    };
    for change in set.changes.values() {
        if !is_open(change, Phase::Expand) {
            continue;
        }
        let Some(rows) = MovedRows::of(change) else {
            continue;
        };
        let fault = key_fault(client, &rows.table, &rows.key, rows.walked).await?;
        let Some(fault) = fault else {
            continue;
        };
        let tree = tree(client, &rows.table).await?;
        let mut others = set.changes.values();
        let is_made = others.any(|other| {
            let all = [Phase::Expand, Phase::Migrate, Phase::Contract].into_iter();
            let open: Vec<_> = all.filter(|phase| is_open(other, *phase)).collect();
            rows.may_be_made_by(other, &open, &tree)
        });
        if !is_made {
            return Err(RunError::Backfill(JobError::Precondition(format!(
                "{}/{CHANGE_FILE}: [backfill]: {fault}",
                change.path
            ))));
        }
    }
    Ok(())
}

/// Whether the ledger knows no change, also none that was adopted.
async fn has_nothing(client: &Client) -> Result<bool, RunError> {
    Ok(recorded(client).await.map_err(super::baseline)?.is_empty())
}

/// Whether a phase holds what only the server can read: its schema may be made there.
fn is_opaque(change: &Change, phase: Phase) -> bool {
    let opaque = |text: &str| {
        aegis_ddl::read(text).is_ok_and(|script| {
            let mut all = script.statements.iter();
            all.any(|statement| matches!(statement.form, Form::Do { .. } | Form::Other { .. }))
        })
    };
    let mut parts = change.parts(phase).into_iter();
    parts.any(|part| matches!(part, Part::Sql { file, .. } if opaque(&file.text)))
}

/// Judges the whole phase before its first statement, so that one that is refused anyway leaves nothing half done. Each is judged
/// again when it runs. What the engine overrides for itself was judged when it was built.
pub(super) async fn beforehand(
    held: &mut Held,
    change: &Change,
    phase: Phase,
    server: u32,
) -> Result<(), RunError> {
    if change.baseline.is_some() {
        return Ok(());
    }
    let mut files = Vec::new();
    for part in change.parts(phase) {
        if let Part::Sql { key, file } = part {
            let read =
                source(change, key, file).map_err(|problem| RunError::Folder(problem.into()))?;
            files.push(read);
        }
    }
    let transaction = held.session.client.transaction().await?;
    let scope = Scope::schemas([change.schema.clone()]);
    let catalog = read_within(&transaction, &scope).await?;
    transaction.rollback().await?;
    let compatible = change.overrides(phase);
    let context = Context {
        server,
        catalog: Some(&catalog),
        schema: &change.schema,
        fresh: false,
        compatible: &compatible,
    };
    let report = judge(&files, &context);
    if let Some(refused) = report.verdicts.iter().find(|verdict| !verdict.passes) {
        return Err(refused_class(refused, phase));
    }
    if held.who.ledger == LedgerName::Engine {
        return Ok(());
    }
    let unused = report.unused_overrides.into_iter().map(|one| Problem {
        key: Some(format!("{phase}.compatible")),
        ..Problem::of_file(
            format!("{}/{CHANGE_FILE}", change.path),
            one.said,
            "a reason is given for what speaks here, and for nothing else",
        )
        .kind(Kind::Class)
    });
    Ok(Problems::none_of(unused.collect())?)
}
