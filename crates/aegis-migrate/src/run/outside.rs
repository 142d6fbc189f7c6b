//! Steps that cannot run in a transaction: concurrent builds and drops, detaching, VACUUM.
//!
//! The intent is committed before the step begins and the verdict after it; between them anything may die. So a step that is met
//! again is judged by what is there, never by what somebody remembers.

use std::collections::BTreeSet;

use aegis_catalog::{Key, Kind, Name, quote, read_index};
use aegis_ddl::form::{Action, ReindexOf};
use aegis_ddl::{Form, QualifiedName};
use serde_json::Value;
use tokio_postgres::{Client, Transaction};

use super::watch::{Watch, watched};
use super::{RunError, Work, lost, proof};
use crate::ledger::{self, Step, StepState, Who};
use crate::structure::{
    Before, Detach, IndexStanding, Reach, before, detach, expected_index, leftovers_of_reindex,
    record_as_is, standing,
};

/// What is there already.
enum Found {
    /// Nothing of it.
    Nothing,
    /// All of it.
    Whole,
    /// Half of it: this ends it.
    Half(String),
}

/// An earlier run began it, and nobody has heard of its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun<'a> {
    /// What its row says.
    pub(super) said: Option<&'a str>,
}

/// What one run of such a step has.
pub(super) struct Outside<'a> {
    /// Who writes.
    pub(super) who: &'a Who,
    /// The ledger has an intent of an earlier run.
    pub(super) begun: Option<Begun<'a>>,
    /// Nobody uses this database yet.
    pub(super) fresh: bool,
    /// The second connection.
    pub(super) watch: Option<Watch<'a>>,
}

/// Runs one step outside of a transaction, with the mutex in hand.
pub(super) async fn run(
    client: &mut Client,
    work: &Work<'_>,
    outside: Outside<'_>,
    told: &mut (dyn FnMut(&Value) + Send),
) -> Result<StepState, RunError> {
    let who = outside.who;
    let todo = match begin(client, work, who, outside.begun, outside.fresh).await? {
        Begin::Reconciled => return Ok(StepState::Reconciled),
        Begin::ToDo(todo) => todo,
    };
    let made = todo.execute(client, work, outside.watch, who, told).await?;
    todo.end(client, work, who, made).await
}

/// What comes of looking at a step before it runs.
pub(super) enum Begin {
    /// It was found done, and the ledger says so.
    Reconciled,
    /// Its intent is in the ledger.
    ToDo(Box<ToDo>),
}

/// What the server answered.
pub(super) type Made = Result<(), tokio_postgres::Error>;

/// A step whose intent is in the ledger.
pub(super) struct ToDo {
    step: Step,
    /// What is sent: the statement, or what ends it.
    text: String,
    reach: Reach,
    whole: WholeWork,
    /// Leftovers of others.
    left: Vec<String>,
    looked: Before,
    is_opaque: bool,
}

/// Looks at what is there, and writes the intent. Under the mutex.
pub(super) async fn begin(
    client: &mut Client,
    work: &Work<'_>,
    who: &Who,
    begun: Option<Begun<'_>>,
    fresh: bool,
) -> Result<Begin, RunError> {
    let transaction = client.transaction().await?;
    let decided = super::step::decide(&transaction, work, fresh).await?;
    transaction.rollback().await?;
    let step = work.step_of(decided.class);
    let reach = Reach::of(work.statement, work.schema);
    let whole = WholeWork::of(work);
    let mut text = work.statement.text.clone();
    match found(client, work, begun.is_some()).await? {
        Found::Whole => {
            if begun.is_none() {
                // Equal, and no row: somebody else's, or a ledger that was lost. Taken for done, and said so.
                tracing::warn!(step = %work.name(), "it is there already, as it should be");
            }
            let transaction = client.transaction().await?;
            ledger::fence(&transaction, who).await?;
            // From now on it is what verify expects.
            whole
                .record(&transaction, who, &work.name(), &reach)
                .await?;
            let said = Some("found as it should be");
            ledger::write(&transaction, &step, StepState::Reconciled, who, None, said).await?;
            lost::commit(transaction, "a step that was found done").await?;
            return Ok(Begin::Reconciled);
        }
        Found::Half(rest) => text = rest,
        Found::Nothing => {}
    }
    let mut left = leftovers(client, work).await?;
    if let Some(before) = begun.and_then(|begun| from_words(begun.said)) {
        drop_ours(client, &left, &before).await?;
        left.retain(|index| before.contains(index));
    }
    let transaction = client.transaction().await?;
    ledger::fence(&transaction, who).await?;
    let looked = before(&transaction, &reach).await?;
    let said = words(&left);
    let said = said.as_deref();
    ledger::write(&transaction, &step, StepState::Intent, who, None, said).await?;
    lost::commit(transaction, "a step's intent").await?;
    Ok(Begin::ToDo(Box::new(ToDo {
        step,
        text,
        reach,
        whole,
        left,
        looked,
        is_opaque: decided.is_opaque,
    })))
}

impl ToDo {
    /// Runs it, as the role of the change and with its search path. Nothing of the ledger is written but what is seen meanwhile.
    pub(super) async fn execute(
        &self,
        client: &Client,
        work: &Work<'_>,
        watch: Option<Watch<'_>>,
        who: &Who,
        told: &mut (dyn FnMut(&Value) + Send),
    ) -> Result<Made, RunError> {
        let mut settings = format!("SET search_path = {}, pg_catalog", quote(work.schema));
        if let Some(role) = work.run_as {
            settings.push_str("; SET ROLE ");
            settings.push_str(&quote(role));
        }
        match client.batch_execute(&settings).await {
            Ok(()) => {}
            Err(error) if lost::is_lost(&error) => return Err(error.into()),
            Err(error) => return Ok(Err(error)),
        }
        // A lock time-out would cut a concurrent build short for any old snapshot, and leave an invalid index.
        let made = watched(client, &self.text, watch, &work.name(), who, told).await;
        if let Err(error) = &made
            && lost::is_lost(error)
        {
            return Err(lost::outside(work, error));
        }
        client
            .batch_execute("RESET ROLE; SET search_path = pg_catalog, pg_temp; SET lock_timeout = 0; SET statement_timeout = 0")
            .await?;
        Ok(made)
    }

    /// Writes the verdict. Under the mutex.
    pub(super) async fn end(
        self,
        client: &mut Client,
        work: &Work<'_>,
        who: &Who,
        made: Made,
    ) -> Result<StepState, RunError> {
        if let Err(error) = made {
            return Err(self.refused(client, work, who, error).await?);
        }
        let transaction = client.transaction().await?;
        ledger::fence(&transaction, who).await?;
        let name = work.name();
        if self.is_opaque
            && let Some(why) = proof::doubt(&transaction, work).await?
        {
            transaction.rollback().await?;
            // It has committed what it did.
            super::step::failed(client, work, who, StepState::Unknown, None, &why).await?;
            return Err(proof::unproven(work, why));
        }
        if self.whole.keys.is_empty() {
            self.looked.record(&transaction, who.ledger, &name).await?;
        }
        self.whole
            .record(&transaction, who, &name, &self.reach)
            .await?;
        ledger::write(
            &transaction,
            &self.step,
            StepState::Applied,
            who,
            None,
            None,
        )
        .await?;
        lost::commit(transaction, "a step's verdict").await?;
        Ok(StepState::Applied)
    }

    /// Looks at what a refused statement has left, and keeps what the server said.
    async fn refused(
        self,
        client: &mut Client,
        work: &Work<'_>,
        who: &Who,
        error: tokio_postgres::Error,
    ) -> Result<RunError, RunError> {
        let Some(db) = lost::answer(&error) else {
            return Ok(lost::outside(work, &error));
        };
        let (said, code) = (db.message().to_owned(), db.code().code().to_owned());
        // What our build left is ours; what appears later is not.
        drop_ours(client, &leftovers(client, work).await?, &self.left).await?;
        let state = if left_behind(client, work).await? {
            StepState::Unknown
        } else {
            StepState::Failed
        };
        super::step::failed(client, work, who, state, Some(&code), &said).await?;
        Ok(RunError::Sql {
            file: work.step.file.clone(),
            line: work.statement.line,
            said,
            sqlstate: code,
        })
    }
}

/// The whole work of a step, where it can be named.
#[derive(Debug, Default)]
struct WholeWork {
    /// These elements.
    keys: Vec<Key>,
    /// These tables, with all that hangs on them.
    tables: BTreeSet<Name>,
}

impl WholeWork {
    fn of(work: &Work<'_>) -> Self {
        let mut whole = Self::default();
        match &work.statement.form {
            Form::CreateIndex(create) => {
                let table = create.table.resolve(work.schema);
                let name = |index: &QualifiedName| Name::new(&*table.schema, &*index.name);
                let keys = create.index.iter().map(name);
                whole.keys = keys.map(|name| Key::new(Kind::Index, &name)).collect();
            }
            Form::DropIndex { indexes, .. } => {
                let names = indexes.iter().map(|index| index.resolve(work.schema));
                whole.keys = names.map(|name| Key::new(Kind::Index, &name)).collect();
            }
            Form::AlterTable { actions, .. } => {
                for action in actions {
                    if let Action::DetachPartition { partition, .. } = action {
                        whole.tables.insert(partition.resolve(work.schema));
                    }
                }
            }
            _ => {}
        }
        whole
    }

    async fn record(
        &self,
        transaction: &Transaction<'_>,
        who: &Who,
        step: &str,
        reach: &Reach,
    ) -> Result<(), RunError> {
        record_as_is(
            transaction,
            who.ledger,
            step,
            reach,
            &self.keys,
            &self.tables,
        )
        .await?;
        Ok(())
    }
}

/// What stands before the list of leftovers that were there when the step began, in its intent.
const LEFT_BEFORE: &str = "invalid before it began: ";

/// Invalid copies of indexes that a REINDEX CONCURRENTLY of the same table has left, as they stand in SQL.
async fn leftovers(client: &Client, work: &Work<'_>) -> Result<Vec<String>, RunError> {
    let Form::Reindex {
        target: Some(target),
        of,
        concurrently: true,
    } = &work.statement.form
    else {
        return Ok(Vec::new());
    };
    let name = target.resolve(work.schema);
    let table = match of {
        ReindexOf::Table => Some(name),
        ReindexOf::Index => read_index(client, Some(&name.schema), &name.name)
            .await?
            .map(|index| index.table),
        ReindexOf::Schema | ReindexOf::Database => None,
    };
    let Some(table) = table else {
        return Ok(Vec::new());
    };
    let left = leftovers_of_reindex(client, &table).await?;
    Ok(left.iter().map(Name::sql).collect())
}

/// As the intent keeps them.
fn words(left: &[String]) -> Option<String> {
    let list = serde_json::Value::from(left.to_vec());
    (!left.is_empty()).then(|| format!("{LEFT_BEFORE}{list}"))
}

/// From an intent. None: it says something else, and nobody knows what was there before.
fn from_words(said: Option<&str>) -> Option<Vec<String>> {
    match said {
        None => Some(Vec::new()),
        Some(said) => serde_json::from_str(said.strip_prefix(LEFT_BEFORE)?).ok(),
    }
}

/// Drops what is there now and was not before: our own.
async fn drop_ours(client: &Client, now: &[String], before: &[String]) -> Result<(), RunError> {
    for index in now.iter().filter(|index| !before.contains(index)) {
        client
            .batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {index}"))
            .await
            .map_err(|error| lost::in_the_air(error, "the drop of a leftover of our own"))?;
        tracing::info!(%index, "a leftover of our own REINDEX was dropped");
    }
    Ok(())
}

/// Whether a refused build left its index.
async fn left_behind(client: &Client, work: &Work<'_>) -> Result<bool, RunError> {
    let Form::CreateIndex(create) = &work.statement.form else {
        return Ok(true);
    };
    let Some(index) = &create.index else {
        return Ok(true);
    };
    let table = create.table.resolve(work.schema);
    let name = Name::new(&*table.schema, &*index.name);
    let there = standing(client, &name, None, Some(&table)).await?;
    Ok(matches!(there, IndexStanding::Invalid { .. }))
}

/// What is there of the step, with leftovers of our own taken away.
async fn found(client: &mut Client, work: &Work<'_>, begun: bool) -> Result<Found, RunError> {
    match &work.statement.form {
        Form::CreateIndex(create) => {
            let Some(index) = &create.index else {
                return if begun {
                    Err(unknown(
                        work,
                        "an index without a name was begun, and nobody can tell which it is; name the index in the file of a new change, and drop the leftover",
                    ))
                } else {
                    Ok(Found::Nothing)
                };
            };
            let table = create.table.resolve(work.schema);
            let name = Name::new(&*table.schema, &*index.name);
            of_index(client, work, &name, &table, begun).await
        }
        Form::DropIndex { indexes, .. } => {
            let mut all_gone = true;
            for index in indexes {
                let name = index.resolve(work.schema);
                let there = standing(client, &name, None, None).await?;
                all_gone &= there == IndexStanding::Absent;
            }
            Ok(if begun && all_gone {
                Found::Whole
            } else {
                Found::Nothing
            })
        }
        Form::AlterTable { table, actions } => of_detach(client, work, table, actions, begun).await,
        // REINDEX, VACUUM and ANALYZE may run again.
        _ => Ok(Found::Nothing),
    }
}

/// A DETACH … CONCURRENTLY that was cut short, by whomever, is ended by FINALIZE and by nothing else.
async fn of_detach(
    client: &Client,
    work: &Work<'_>,
    table: &QualifiedName,
    actions: &[Action],
    begun: bool,
) -> Result<Found, RunError> {
    let [Action::DetachPartition { partition, .. }] = actions else {
        return Ok(Found::Nothing);
    };
    let (parent, part) = (table.resolve(work.schema), partition.resolve(work.schema));
    Ok(match detach(client, &parent, &part).await? {
        Detach::Pending => Found::Half(format!(
            "ALTER TABLE {} DETACH PARTITION {} FINALIZE",
            parent.sql(),
            part.sql()
        )),
        Detach::Done if begun && is_there(client, &part).await? => Found::Whole,
        // Also when it never was one, or is not there: the server says so.
        Detach::Attached | Detach::Done => Found::Nothing,
    })
}

async fn is_there(client: &Client, table: &Name) -> Result<bool, RunError> {
    let row = client
        .query_one("SELECT to_regclass($1) IS NOT NULL", &[&table.sql()])
        .await?;
    Ok(row.try_get(0)?)
}

async fn of_index(
    client: &mut Client,
    work: &Work<'_>,
    name: &Name,
    table: &Name,
    begun: bool,
) -> Result<Found, RunError> {
    let transaction = client.transaction().await?;
    let search_path = format!("SET LOCAL search_path = {}, pg_catalog", quote(work.schema));
    transaction.batch_execute(&search_path).await?;
    let there = standing(&transaction, name, None, Some(table)).await?;
    if there == IndexStanding::Absent {
        transaction.rollback().await?;
        return Ok(Found::Nothing);
    }
    let expected = expected_index(&transaction, &work.statement.text, table).await?;
    let there = standing(&transaction, name, Some(&expected), Some(table)).await?;
    transaction.rollback().await?;
    match there {
        IndexStanding::Absent => Ok(Found::Nothing),
        IndexStanding::Equal => Ok(Found::Whole),
        IndexStanding::Wrong { expected, found } => Err(RunError::Shape {
            file: work.step.file.clone(),
            line: work.statement.line,
            why: format!(
                "{name} is there and is something else: {found}; it should be: {expected}. Drop or rename what is there, or give the new one another name"
            ),
        }),
        IndexStanding::Invalid { .. } if begun => {
            client
                .batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {}", name.sql()))
                .await
                .map_err(|error| lost::in_the_air(error, "the drop of a leftover of our own"))?;
            tracing::info!(index = %name, "the leftover of our own build was dropped; it is built again");
            Ok(Found::Nothing)
        }
        IndexStanding::Invalid { .. } => Err(unknown(
            work,
            &format!(
                "{name} is an invalid leftover, and this ledger has no trace that it made it: nobody's work is dropped here. Look who made it, drop it (DROP INDEX CONCURRENTLY {}), and run again",
                name.sql()
            ),
        )),
    }
}

fn unknown(work: &Work<'_>, why: &str) -> RunError {
    RunError::Unknown {
        file: work.step.file.clone(),
        line: work.statement.line,
        why: why.to_owned(),
    }
}
