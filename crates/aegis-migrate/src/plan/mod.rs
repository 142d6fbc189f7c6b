//! `plan`: what each phase would do, statement by statement, with its class, its locks and the size of what it locks. Pure.
//!
//! Invariants: a class comes from the judge and from nobody else; without a catalog a size is unknown and never small.

mod markdown;
mod verify;

use aegis_catalog::{Catalog, Name};
use aegis_ddl::{Class, Context, LockMode, SourceFile, judge};
use serde::Serialize;

use crate::change::{CHANGE_FILE, Change, Part, Phase, PhaseOf, Problem, Problems, SqlFile};
use crate::lint::MovedRows;

pub use verify::{Query, Verify, verify};

pub use markdown::{locks as locks_in_words, markdown, words};

/// One thing that would be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Of which phase.
    pub phase_of: PhaseOf,
    /// What.
    #[serde(flatten)]
    pub what: What,
    /// What it locks, the strongest first.
    pub locks: Vec<Locked>,
}

/// What would be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// A statement.
    Statement {
        /// Its file.
        file: String,
        /// Its line.
        line: usize,
        /// One line of it.
        statement: String,
        /// Where it may run.
        class: Class,
        /// Whether that is where it stands.
        passes: bool,
        /// Why, a sentence each.
        why: Vec<String>,
    },
    /// The trigger that keeps two sides alike.
    Sync {
        /// On which table.
        table: String,
    },
    /// The end of that trigger, in one transaction with the statements after it.
    EndSync {
        /// On which table.
        table: String,
    },
    /// The backfill.
    Backfill {
        /// Of which table.
        table: String,
        /// Its rows, estimated; `None`: nobody knows.
        rows: Option<f64>,
        /// Why its key cannot walk that table; none: it can, or nobody knows. Nothing of it would be done.
        #[serde(skip_serializing_if = "Option::is_none")]
        key_fault: Option<String>,
    },
    /// The reconciliation.
    Reconcile,
    /// A baseline: executed on a fresh database, recorded on any other.
    Baseline {
        /// What made it.
        from: String,
    },
    /// A rule that change.toml overrides for nothing. Nothing of it would be done: the phase is refused.
    Override {
        /// The change.toml.
        file: String,
        /// Which rule, and why it is an error.
        said: String,
    },
}

/// A relation that is locked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Locked {
    /// Its name.
    pub relation: String,
    /// The mode, as in LOCK TABLE.
    pub mode: &'static str,
    /// Whether reads wait.
    pub blocks_reads: bool,
    /// Whether writes wait.
    pub blocks_writes: bool,
    /// Its size with its indexes; `None`: nobody knows.
    pub bytes: Option<i64>,
    /// Statements a minute that would wait behind the lock; `None`: nobody counted.
    pub queued_a_minute: Option<f64>,
}

/// What these phases would do, in their order.
pub fn plan(
    phases: &[(&Change, Phase)],
    catalog: Option<&Catalog>,
    server: u32,
) -> Result<Vec<Item>, Problems> {
    let mut items = Vec::new();
    let mut problems = Vec::new();
    for (change, phase) in phases {
        match of_phase(change, *phase, catalog, server, phases) {
            Ok(of_phase) => items.extend(of_phase),
            Err(problem) => problems.push(problem),
        }
    }
    Problems::none_of(problems)?;
    Ok(items)
}

fn of_phase(
    change: &Change,
    phase: Phase,
    catalog: Option<&Catalog>,
    server: u32,
    to_run: &[(&Change, Phase)],
) -> Result<Vec<Item>, Problem> {
    let item = |what| Item {
        phase_of: PhaseOf {
            id: change.id.clone(),
            phase,
        },
        what,
        locks: Vec::new(),
    };
    if let Some(baseline) = &change.baseline {
        let from = baseline.from.clone();
        return Ok(vec![item(What::Baseline { from })]);
    }
    let overrides = change.overrides(phase);
    let parts = change.parts(phase);
    let mut files = Vec::new();
    for part in &parts {
        if let Part::Sql { key, file } = part {
            files.push(source(change, key, file)?);
        }
    }
    let context = Context {
        server,
        catalog,
        schema: &change.schema,
        fresh: false,
        compatible: &overrides,
    };
    let report = judge(&files, &context);
    let mut verdicts = report.verdicts.into_iter().peekable();
    let mut items = Vec::new();
    for part in parts {
        match part {
            Part::Sql { file, .. } => {
                while let Some(verdict) = verdicts.next_if(|verdict| verdict.file == file.path) {
                    let why = verdict
                        .findings
                        .iter()
                        .map(|finding| finding.message.clone());
                    let mut one = item(What::Statement {
                        line: verdict.line,
                        class: verdict.class,
                        passes: verdict.passes,
                        why: why.chain(verdict.unread).collect(),
                        file: verdict.file,
                        statement: verdict.statement,
                    });
                    one.locks = locks(&verdict.locks, change, catalog);
                    items.push(one);
                }
            }
            Part::Sync(sync) => {
                let mut one = item(What::Sync {
                    table: sync.table.clone(),
                });
                let lock = aegis_ddl::Lock {
                    relation: aegis_ddl::QualifiedName {
                        schema: None,
                        name: sync.table.clone(),
                    },
                    mode: LockMode::ShareRowExclusive,
                };
                one.locks = locks(&[lock], change, catalog);
                items.push(one);
            }
            Part::EndSync(sync) => {
                let mut one = item(What::EndSync {
                    table: sync.table.clone(),
                });
                let lock = aegis_ddl::Lock {
                    relation: aegis_ddl::QualifiedName {
                        schema: None,
                        name: sync.table.clone(),
                    },
                    mode: LockMode::AccessExclusive,
                };
                one.locks = locks(&[lock], change, catalog);
                items.push(one);
            }
            Part::Backfill(_) => {
                let table = change.backfill_table().unwrap_or_default().to_owned();
                let name = aegis_catalog::Name::new(&change.schema, &table);
                let size = catalog
                    .and_then(|catalog| catalog.relation(&name))
                    .and_then(|relation| relation.size.as_ref());
                let rows = size.and_then(|size| size.rows);
                let key_fault = key_fault(change, catalog, to_run);
                items.push(item(What::Backfill {
                    table,
                    rows,
                    key_fault,
                }));
            }
            Part::Reconcile(_) => items.push(item(What::Reconcile)),
        }
    }
    let file = format!("{}/{CHANGE_FILE}", change.path);
    items.extend(report.unused_overrides.into_iter().map(|unused| {
        let file = file.clone();
        let said = unused.said;
        item(What::Override { file, said })
    }));
    Ok(items)
}

/// Why the key of a backfill cannot walk the table that is there, in the words of a run; none also where something that is to run may make
/// the key.
fn key_fault(
    change: &Change,
    catalog: Option<&Catalog>,
    to_run: &[(&Change, Phase)],
) -> Option<String> {
    let catalog = catalog?;
    let rows = MovedRows::of(change)?;
    let fault = rows.fault(catalog)?;
    let tree = rows.tree(catalog);
    let is_made = to_run.iter().any(|(one, phase)| {
        let phases = [Phase::Expand, Phase::Migrate, *phase];
        rows.may_be_made_by(one, &phases, &tree)
    });
    (!is_made).then(|| fault.to_string())
}

/// A file as the judge takes it.
pub fn source(change: &Change, key: &str, file: &SqlFile) -> Result<SourceFile, Problem> {
    script(change, key, file).map_err(|error| {
        Problem::of_file(&file.path, error.to_string(), "mend the statement").at(error.line)
    })
}

/// As [`source`], for who tells by itself where a file is no SQL.
pub(crate) fn script(
    change: &Change,
    key: &str,
    file: &SqlFile,
) -> Result<SourceFile, aegis_ddl::SyntaxError> {
    let script = aegis_ddl::read(&file.text)?;
    let (phase, of) = match key {
        "contract.tighten" => (aegis_ddl::Phase::Tighten, Phase::Contract),
        "contract.sql" => (aegis_ddl::Phase::Contract, Phase::Contract),
        key if key.starts_with("migrate.") => (aegis_ddl::Phase::Migrate, Phase::Migrate),
        _ => (aegis_ddl::Phase::Expand, Phase::Expand),
    };
    let atomic = phase == aegis_ddl::Phase::Expand
        && change.expand.as_ref().is_some_and(|expand| expand.atomic);
    Ok(SourceFile {
        path: file.path.clone(),
        script,
        phase: Some(phase),
        atomic: Some(atomic),
        // A baseline is a dump of what other tools did.
        proven: change.baseline.is_some() || change.opaque(of).is_some(),
    })
}

fn locks(locks: &[aegis_ddl::Lock], change: &Change, catalog: Option<&Catalog>) -> Vec<Locked> {
    let mut sorted: Vec<&aegis_ddl::Lock> = locks.iter().collect();
    sorted.sort_by(|a, b| {
        b.mode
            .cmp(&a.mode)
            .then_with(|| a.relation.cmp(&b.relation))
    });
    sorted
        .into_iter()
        .map(|lock| {
            let name = lock.relation.resolve(&change.schema);
            let size = catalog
                .and_then(|catalog| catalog.relation(&name))
                .and_then(|relation| relation.size.as_ref());
            Locked {
                relation: lock.relation.to_string(),
                mode: lock.mode.sql(),
                blocks_reads: lock.mode.blocks_reads(),
                blocks_writes: lock.mode.blocks_writes(),
                bytes: size.map(|size| size.total_bytes),
                queued_a_minute: catalog
                    .and_then(|catalog| queued_a_minute(catalog, lock.mode, &name)),
            }
        })
        .collect()
}

/// How many statements a minute would wait behind a lock, by what the server has counted; `None`: nobody waits, or nobody counted.
pub(crate) fn queued_a_minute(catalog: &Catalog, mode: LockMode, name: &Name) -> Option<f64> {
    if !mode.blocks_writes() {
        return None;
    }
    let rates = catalog.rates_of(name)?;
    if mode.blocks_reads()
        && let (Some(calls), Some(window)) = (rates.calls, &catalog.calls_window)
    {
        return window.a_minute(calls);
    }
    let window = catalog.rates_window.as_ref()?;
    let writes = rates.inserted + rates.updated + rates.deleted;
    let reads = rates.sequential_scans + rates.index_scans;
    window.a_minute(if mode.blocks_reads() {
        writes + reads
    } else {
        writes
    })
}
