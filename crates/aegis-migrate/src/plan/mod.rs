//! `plan`: what each phase would do, statement by statement, with its class, its locks and the size of what it locks. Pure.
//!
//! Invariants: a class comes from the judge and from nobody else; without a catalog a size is unknown and never small.

mod markdown;

use aegis_catalog::Catalog;
use aegis_ddl::{Class, Context, LockMode, SourceFile, judge};
use serde::Serialize;

use crate::change::{Change, Part, Phase, PhaseOf, Problem, Problems, SqlFile};

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
    },
    /// The reconciliation.
    Reconcile,
    /// A baseline: executed on a fresh database, recorded on any other.
    Baseline {
        /// What made it.
        from: String,
    },
}

/// A relation that is locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        match of_phase(change, *phase, catalog, server) {
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
    let mut verdicts = judge(&files, &context).verdicts.into_iter().peekable();
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
                items.push(item(What::Backfill { table, rows }));
            }
            Part::Reconcile(_) => items.push(item(What::Reconcile)),
        }
    }
    Ok(items)
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
    let phase = match key {
        "contract.tighten" => aegis_ddl::Phase::Tighten,
        "contract.sql" => aegis_ddl::Phase::Contract,
        key if key.starts_with("migrate.") => aegis_ddl::Phase::Migrate,
        _ => aegis_ddl::Phase::Expand,
    };
    let atomic = phase == aegis_ddl::Phase::Expand
        && change.expand.as_ref().is_some_and(|expand| expand.atomic);
    Ok(SourceFile {
        path: file.path.clone(),
        script,
        phase: Some(phase),
        atomic: Some(atomic),
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
            }
        })
        .collect()
}
