//! The trigger of a change beside what its steps made: whether both sides are kept alike now.
//!
//! Invariants: only a change whose trigger was made here, and not ended, is looked at; a trigger that is not there, does not fire, or is
//! another one than the steps made stops a run and a check; what is asked is the catalog, never a row; a table or column that it stands
//! on and that is gone is told as such, since no repair of the trigger helps there.
//!
//! Never: a repair by itself. What was written meanwhile is for people to judge.

use std::collections::BTreeSet;

use aegis_backfill::sync::Rule;
use aegis_catalog::{Difference, Key, Kind as Element, Scope, Structure, quote, read_within};
use tokio_postgres::{Client, GenericClient};

use crate::change::{CHANGE_FILE, Change, Kind, Phase, PhaseOf, Problem, Problems};
use crate::ledger::LedgerName;
use crate::run::RunError;
use crate::set::Set;
use crate::standing::{Standing, State};
use crate::structure::{Expected, expected};

/// Refuses when the trigger of a change is not what its steps made.
///
/// # Errors
/// [`RunError::Folder`] with exit code 12, one problem a change; or the catalog could not be read.
pub async fn whole<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
    set: &Set,
    stands: &Standing,
) -> Result<(), RunError> {
    let mut problems = Vec::new();
    let mut known = None;
    for change in set.changes.values() {
        let Some(rule) = change.sync_rule() else {
            continue;
        };
        let account = match known.take() {
            Some(account) => account,
            None => Account::read(client, ledger).await?,
        };
        if account.means(change, &rule, stands)
            && let Some(wrong) = account.wrong(client, &rule).await?
        {
            problems.push(wrong.problem(change, &rule));
        }
        known = Some(account);
    }
    Ok(Problems::none_of(problems)?)
}

/// What is wrong with the trigger of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// Something of itself, in words: it can be made again.
    Trigger(String),
    /// What it stands on is not there, so that it cannot be made.
    Ground {
        /// What is not there.
        what: String,
        /// What does help.
        way_out: String,
    },
}

impl Wrong {
    /// As a problem of the change's file.
    pub fn problem(&self, change: &Change, rule: &Rule) -> Problem {
        let (id, table) = (&change.id, &rule.table);
        let (what, help) = match self {
            Self::Trigger(why) => (
                format!(
                    "the trigger that keeps both sides of {table} alike is not what this change has made: {why}"
                ),
                format!(
                    "rows that are written meanwhile have one side only: `aegis migrate repair sync {id} --reason TEXT` makes it again"
                ),
            ),
            Self::Ground { what, way_out } => (what.clone(), way_out.clone()),
        };
        Problem::of_file(format!("{}/{CHANGE_FILE}", change.path), what, help).kind(Kind::Structure)
    }
}

/// What is wrong with the trigger of one change; none when it is as it should be, or should not be there.
///
/// # Errors
/// When the catalog could not be read.
pub async fn wrong_with<C: GenericClient + Sync>(
    client: &C,
    ledger: LedgerName,
    change: &Change,
    rule: &Rule,
    stands: &Standing,
) -> Result<Option<Wrong>, RunError> {
    let account = Account::read(client, ledger).await?;
    if account.means(change, rule, stands) {
        account.wrong(client, rule).await
    } else {
        Ok(None)
    }
}

/// What the trigger of one change was made of instead of its expressions as they are in the folder, in words; none when it was made of
/// these, or should not be there.
///
/// # Errors
/// When the catalog could not be read, or the expressions are none.
pub async fn made_otherwise(
    client: &mut Client,
    ledger: LedgerName,
    change: &Change,
    rule: &Rule,
    stands: &Standing,
) -> Result<Option<&'static str>, RunError> {
    if !Account::read(client, ledger)
        .await?
        .means(change, rule, stands)
    {
        return Ok(None);
    }
    let Some(state) = rule.state(client).await? else {
        return Ok(None);
    };
    Ok((!rule.has_made(&state)).then_some("it was made of other expressions than [sync] has now"))
}

/// What the steps made; nothing where no account is kept.
struct Account {
    steps: Option<Expected>,
    major: u32,
}

impl Account {
    async fn read<C: GenericClient + Sync>(
        client: &C,
        ledger: LedgerName,
    ) -> Result<Self, RunError> {
        let sql = "SELECT current_setting('server_version_num')::int / 10000";
        let major: i32 = client.query_one(sql, &[]).await?.try_get(0)?;
        let major = u32::try_from(major).unwrap_or_default();
        Ok(Self {
            steps: expected(client, ledger, major).await?,
            major,
        })
    }

    /// Whether the trigger should be there: its steps made it, and none ended it.
    fn means(&self, change: &Change, rule: &Rule, stands: &Standing) -> bool {
        if let Some(steps) = &self.steps {
            let all = &steps.structure;
            if all.elements.keys().any(|key| is_of(rule, key)) {
                return true;
            }
            if all.gone.iter().any(|key| is_of(rule, key)) {
                return false;
            }
        }
        // Taken over without its steps, or told in the words of another server: the lines are what is known.
        let of = |phase| {
            let id = change.id.clone();
            stands.of(&PhaseOf { id, phase })
        };
        of(Phase::Expand).is_some_and(State::is_done)
            && matches!(of(Phase::Contract), None | Some(State::Pending))
    }

    async fn wrong<C: GenericClient + Sync>(
        &self,
        client: &C,
        rule: &Rule,
    ) -> Result<Option<Wrong>, RunError> {
        if let Some(ground) = self.ground(client, rule).await? {
            return Ok(Some(ground));
        }
        let why = self.trigger(client, rule).await?;
        Ok(why.map(Wrong::Trigger))
    }

    /// What the trigger stands on and is not there: its table, or a column that [sync] names.
    async fn ground<C: GenericClient + Sync>(
        &self,
        client: &C,
        rule: &Rule,
    ) -> Result<Option<Wrong>, RunError> {
        let table = &rule.table;
        let sql = include_str!("../../sql/sync/columns.sql");
        let rows = client.query(sql, &[&table.schema, &table.name]).await?;
        let there = rows.iter().map(|row| row.try_get::<_, String>(0));
        let there: Vec<String> = there.collect::<Result<_, _>>()?;
        if there.is_empty() {
            return Ok(Some(Wrong::Ground {
                what: format!("there is no table {table}, which [sync] names"),
                way_out: format!(
                    "where somebody has renamed it, give it its name back: ALTER TABLE … RENAME TO {}",
                    quote(&table.name)
                ),
            }));
        }
        let named = rule.old.iter().chain(&rule.new);
        let missing: Vec<&String> = named.filter(|name| !there.contains(name)).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let columns = self
            .steps
            .iter()
            .flat_map(|steps| steps.structure.elements.keys());
        let made: BTreeSet<&str> = columns
            .filter(|key| key.kind == Element::Column && key.holder() == *table)
            .map(|key| key.part.as_str())
            .collect();
        let unmade = there.iter().filter(|name| !made.contains(name.as_str()));
        let unmade: Vec<&String> = unmade.filter(|_| !made.is_empty()).collect();
        Ok(Some(without(rule, &missing, &unmade)))
    }

    /// What is wrong with the trigger itself.
    async fn trigger<C: GenericClient + Sync>(
        &self,
        client: &C,
        rule: &Rule,
    ) -> Result<Option<String>, RunError> {
        let Some(state) = rule.state(client).await? else {
            return Ok(Some("it is not there".to_owned()));
        };
        let mut should = Structure::empty(self.major);
        if let Some(steps) = &self.steps {
            let parts = steps.structure.elements.iter();
            let parts = parts.filter(|(key, _)| is_of(rule, key));
            let copied = parts.map(|(key, shape)| (key.clone(), shape.clone()));
            should.elements.extend(copied);
        }
        if !should.elements.is_empty() {
            let scope = Scope::objects([rule.table.clone(), rule.function()]).structure_only();
            let mut live = read_within(client, &scope).await?.structure();
            // What is missing is only told of a table that is there.
            let table = Key::new(Element::Relation, &rule.table);
            live.elements
                .retain(|key, _| is_of(rule, key) || *key == table);
            if let Some(shape) = live.elements.get(&table) {
                should.elements.insert(table, shape.clone());
            }
            // In the words of another server nothing can be compared; whether it fires can be asked.
            if let Ok(differences) = should.compare(&live) {
                let wrong = differences.iter().filter(|one| one.is_wrong());
                let words: BTreeSet<String> = wrong.map(Difference::to_string).collect();
                if !words.is_empty() {
                    return Ok(Some(words.into_iter().collect::<Vec<_>>().join("; ")));
                }
            }
        }
        if !state.uncovered.is_empty() {
            let heirs = state.uncovered.join(", ");
            return Ok(Some(format!(
                "it does not fire for rows of {heirs}, which inherit from the table (take them out first: ALTER TABLE … NO INHERIT)"
            )));
        }
        Ok((!state.enabled)
            .then(|| "a part of it is missing or disabled, on a partition perhaps".to_owned()))
    }
}

/// Whether an element is a part of the trigger.
fn is_of(rule: &Rule, key: &Key) -> bool {
    match key.kind {
        Element::Trigger => {
            key.holder() == rule.table && key.part.starts_with(&rule.trigger_prefix())
        }
        Element::Function => key.holder() == rule.function(),
        _ => false,
    }
}

/// Columns that [sync] names and the table has not, beside those that it has and no step made: one may be the other.
fn without(rule: &Rule, missing: &[&String], unmade: &[&String]) -> Wrong {
    let listed = |names: &[&String]| {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        names.join(", ")
    };
    let table = &rule.table;
    let perhaps = if unmade.is_empty() {
        String::new()
    } else {
        format!("; it has {}, which no change made", listed(unmade))
    };
    let from = match (missing, unmade) {
        ([_], [one]) => quote(one),
        _ => "…".to_owned(),
    };
    let renamed: Vec<String> = missing
        .iter()
        .map(|name| {
            format!(
                "ALTER TABLE {} RENAME COLUMN {from} TO {}",
                table.sql(),
                quote(name)
            )
        })
        .collect();
    Wrong::Ground {
        what: format!(
            "the table {table} has no column {}, which [sync] names{perhaps}: somebody has renamed or dropped it by hand, and a write for which the trigger fires fails",
            listed(missing)
        ),
        way_out: format!(
            "where it was renamed: {}; where it was dropped: add it as the expand step made it, then `aegis migrate repair sync {id} --reason TEXT`, and `aegis migrate reconcile {id}` tells what its rows lack",
            renamed.join("; "),
            id = rule.change
        ),
    }
}
