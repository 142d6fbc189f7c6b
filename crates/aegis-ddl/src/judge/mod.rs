//! Judging: which class each statement of a set has, and why.

mod again;
mod alter;
mod body;
mod column;
mod data;
mod dropped;
mod files;
mod foreign_key;
mod hold;
mod index;
mod objects;
mod partition;
mod rights;
mod session;
mod signature;
mod table;
mod twice;
mod types;
mod user_type;
mod version;
mod view;
mod volatility;
mod world;

use aegis_catalog::Catalog;

use crate::class::{Class, Phase};
use crate::report::{Finding, Level, Report, UnusedOverride, Verdict};
use crate::statement::{Script, Statement};
use world::World;

pub use volatility::volatile_call;
pub use world::SMALL_BYTES;

/// A file of a set, read.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// As it is told.
    pub path: String,
    /// Its statements.
    pub script: Script,
    /// Which part of a change it is; none in a plain folder.
    pub phase: Option<Phase>,
    /// Whether all its statements run in one transaction. None: nobody knows, as in a plain folder.
    pub atomic: Option<bool>,
    /// Of a change: what nobody can read in it is proven after it ran.
    pub proven: bool,
}

/// An override of a compatibility rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compatible {
    /// The rule's name.
    pub rule: String,
    /// Why the version before does not mind.
    pub reason: String,
    /// In which phase it holds; absent: in all.
    pub phase: Option<Phase>,
}

impl Compatible {
    fn holds_in(&self, phase: Option<Phase>) -> bool {
        self.phase.is_none() || self.phase == phase
    }
}

/// What is known beside the files.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The server's major version.
    pub server: u32,
    /// The live database, when it was looked at.
    pub catalog: Option<&'a Catalog>,
    /// The schema that search_path names first.
    pub schema: &'a str,
    /// Nobody uses this database yet.
    pub fresh: bool,
    /// `[expand] compatible`.
    pub compatible: &'a [Compatible],
}

/// Whether a default is known to have one value for all rows.
pub(crate) fn is_steady_default(context: &Context<'_>, default: &crate::form::Expression) -> bool {
    volatility::of(&world_of(context), default) == volatility::Volatility::Steady
}

/// Judges a set of files in the order in which they run.
///
/// An override that this catalog does not need, and another may, is needed: a file is one for all databases.
pub fn judge(files: &[SourceFile], context: &Context<'_>) -> Report {
    let mut report = report_of(&mut world_of(context), files, context);
    needed_anywhere(&mut report, context, || {
        let anywhere = context.without_catalog();
        report_of(&mut world_of(&anywhere), files, &anywhere).unused_overrides
    });
    report
}

/// The same of changes that run one after another: what earlier ones make is live, and known. A fresh database has nothing before.
pub fn judge_in_order(changes: &[(&[SourceFile], Context<'_>)]) -> Vec<Report> {
    let mut reports = Vec::with_capacity(changes.len());
    let mut world = None;
    for (at, (files, context)) in changes.iter().enumerate() {
        if context.fresh {
            reports.push(judge(files, context));
            if at + 1 == changes.len() {
                break;
            }
        }
        let mut report = report_of(next(&mut world, context), files, context);
        if !context.fresh {
            let again = || unused_without_catalog(&changes[..=at]);
            needed_anywhere(&mut report, context, again);
            reports.push(report);
        }
    }
    reports
}

impl Context<'_> {
    const fn without_catalog(&self) -> Self {
        Self {
            catalog: None,
            ..*self
        }
    }
}

fn world_of<'a>(context: &Context<'a>) -> World<'a> {
    World::new(
        context.catalog,
        context.server,
        context.schema,
        context.fresh,
    )
}

/// The world in which the next change is deployed.
fn next<'a, 'w>(world: &'w mut Option<World<'a>>, context: &Context<'a>) -> &'w mut World<'a> {
    if let Some(known) = world {
        known.deploys_in(context.schema);
    }
    world.get_or_insert_with(|| {
        world_of(&Context {
            fresh: false,
            ..*context
        })
    })
}

/// Takes out what another catalog may need.
fn needed_anywhere(
    report: &mut Report,
    context: &Context<'_>,
    unused: impl FnOnce() -> Vec<UnusedOverride>,
) {
    if context.catalog.is_some() && !report.unused_overrides.is_empty() {
        let of_any = unused();
        report.unused_overrides.retain(|one| of_any.contains(one));
    }
}

/// The overrides of the last of these changes that nothing needs, whatever is there.
fn unused_without_catalog(changes: &[(&[SourceFile], Context<'_>)]) -> Vec<UnusedOverride> {
    let mut world = None;
    let mut unused = Vec::new();
    for (files, context) in changes {
        let anywhere = context.without_catalog();
        unused = report_of(next(&mut world, &anywhere), files, &anywhere).unused_overrides;
    }
    unused
}

fn report_of(world: &mut World<'_>, files: &[SourceFile], context: &Context<'_>) -> Report {
    let verdicts = verdicts_of(world, files, context);
    let unused_overrides = unused(&verdicts, context.compatible);
    Report {
        verdicts,
        unused_overrides,
    }
}

/// Judges files one after another; the world knows what they did afterwards.
fn verdicts_of(world: &mut World<'_>, files: &[SourceFile], context: &Context<'_>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for file in files {
        world.ends_transaction();
        world.transaction += 1;
        world.begins_contract(matches!(file.phase, Some(Phase::Tighten | Phase::Contract)));
        if file.phase.is_none() {
            // Of a plain folder each file is deployed by itself.
            world.deploys();
        }
        world.perhaps_level = match (file.phase, context.catalog) {
            (Some(_), None) => Level::Notice,
            _ => Level::Warning,
        };
        world.begins(
            again::made_by(&file.script.statements, world),
            again::views_of(&file.script.statements, world),
            signature::made_by(&file.script.statements, world),
        );
        world.will_drop(again::drops_of(&file.script.statements, world));
        // Files of a change run one after another; those of a plain folder may not.
        let sure = if file.phase.is_some() {
            Level::Error
        } else {
            Level::Warning
        };
        let mut boundaries = files::Boundaries::new(file, world.transaction);
        let mut before = None;
        for statement in &file.script.statements {
            let at = boundaries.of(statement);
            world.together = boundaries.are_together();
            if boundaries.is_taken_back(statement) {
                before = Some(world.clone());
            } else if files::Boundaries::takes_back(statement)
                && let Some(world_before) = before.take()
            {
                // What was made in between is not there.
                *world = world_before;
            }
            let mut found = Found::default();
            world.runs_nothing_yet();
            statement_of(world, statement, at, false, &mut found);
            twice::judge(world, statement, sure, &mut found);
            boundaries.judge(world, statement, &mut found);
            if files::Boundaries::ends(statement) {
                world.ends_transaction();
            }
            world.passed_names(statement, !found.unread.is_empty());
            for made in again::made_by(std::slice::from_ref(statement), world).keys() {
                world.passed(made);
            }
            verdicts.push(finish(file, statement, found, context));
        }
        world.transaction = boundaries.last();
    }
    verdicts
}

/// Overrides that silenced nothing.
fn unused(verdicts: &[Verdict], compatible: &[Compatible]) -> Vec<UnusedOverride> {
    let silences = |one: &Compatible| {
        verdicts.iter().any(|verdict| {
            let of_rule = |finding: &Finding| finding.rule == one.rule;
            one.holds_in(verdict.phase) && verdict.findings.iter().any(of_rule)
        })
    };
    compatible
        .iter()
        .filter(|one| !silences(one))
        .map(|one| UnusedOverride {
            rule: one.rule.clone(),
            phase: one.phase,
            said: match crate::rules::find(&one.rule) {
                None => format!("{}: there is no such rule", one.rule),
                Some(rule) if !rule.compatibility => {
                    format!(
                        "{}: it is about locks, and no reason changes them",
                        one.rule
                    )
                }
                Some(_) => format!("{}: nothing here needs it; take it out", one.rule),
            },
        })
        .collect()
}

/// What was found about a statement so far.
#[derive(Debug, Default)]
struct Found {
    findings: Vec<Finding>,
    locks: Vec<crate::lock::Lock>,
    unread: Vec<String>,
    /// Long by its nature, though nothing is wrong with it.
    long: bool,
}

impl Found {
    fn push(&mut self, rule: &'static str, class: Class, level: Level, message: impl Into<String>) {
        let safe = crate::rules::find(rule).map_or("", |rule| rule.safe);
        self.findings.push(Finding {
            rule,
            class,
            level,
            message: message.into(),
            safe,
            overridden: None,
            unless: None,
            declare: None,
        });
    }

    /// What holds unless something is so that is not known here.
    fn push_unless(
        &mut self,
        rule: &'static str,
        class: Class,
        level: Level,
        message: impl Into<String>,
        unless: impl Into<String>,
    ) {
        self.push(rule, class, level, message);
        if let Some(last) = self.findings.last_mut() {
            last.unless = Some(unless.into());
        }
    }

    /// What holds of a live table; of one that this file makes unless it was there, it is only to be known.
    fn push_of(
        &mut self,
        world: &World<'_>,
        (table, columns): (&crate::QualifiedName, &[String]),
        (rule, class): (&'static str, Class),
        message: impl Into<String>,
    ) {
        if world.is_perhaps_new(table, columns) {
            let unless = format!("{table} was not there before this file");
            self.push_unless(rule, class, world.perhaps_level, message, unless);
        } else {
            self.push(rule, class, Level::Error, message);
        }
    }

    /// A compatibility that is a warning.
    fn warn_of(
        &mut self,
        world: &World<'_>,
        table: &crate::QualifiedName,
        rule: &'static str,
        message: impl Into<String>,
    ) {
        if world.is_perhaps_new(table, &[]) {
            let unless = format!("{table} was not there before this file");
            self.push_unless(rule, Class::D, world.perhaps_level, message, unless);
        } else {
            self.push(rule, Class::D, Level::Warning, message);
        }
    }

    fn lock(&mut self, relation: &crate::QualifiedName, mode: crate::LockMode) {
        // The catalog's names have their schema, those of the text perhaps not.
        let same = |one: &crate::QualifiedName| {
            one.name == relation.name
                && (one.schema == relation.schema
                    || one.schema.is_none()
                    || relation.schema.is_none())
        };
        if let Some(known) = self.locks.iter_mut().find(|one| same(&one.relation)) {
            known.mode = known.mode.max(mode);
        } else {
            self.locks.push(crate::Lock {
                relation: relation.clone(),
                mode,
            });
        }
    }
}

fn statement_of(
    world: &mut World<'_>,
    statement: &Statement,
    transaction: usize,
    inside: bool,
    found: &mut Found,
) {
    for one in &statement.with {
        statement_of(world, one, transaction, inside, found);
    }
    let before = found.findings.len();
    let outer = std::mem::replace(&mut world.only, statement.is_only());
    hold::judge(world, statement, found);
    version::judge(world, statement, found);
    signature::judge(world, statement, found);
    objects::judge(world, statement, transaction, found);
    world.only = outer;
    if inside {
        // The place is the outer statement's: say which inner one is meant.
        for finding in &mut found.findings[before..] {
            finding.message = format!("in its body: {}", finding.message);
        }
    }
}

fn finish(
    file: &SourceFile,
    statement: &Statement,
    mut found: Found,
    context: &Context<'_>,
) -> Verdict {
    for finding in &mut found.findings {
        let is_compatibility =
            crate::rules::find(finding.rule).is_some_and(|rule| rule.compatibility);
        if is_compatibility
            && let Some(given) = context
                .compatible
                .iter()
                .find(|one| one.rule == finding.rule && one.holds_in(file.phase))
        {
            finding.overridden = Some(given.reason.clone());
        } else if is_compatibility
            && file.phase == Some(Phase::Expand)
            && finding.class == Class::D
            && finding.level >= Level::Warning
        {
            finding.declare = Some(format!(
                "compatible = [{{ rule = \"{}\", reason = \"why the version before does not mind\" }}]",
                finding.rule
            ));
        }
        // What runs unread in a change must be shown to have done what it should.
        if finding.rule == "opaque-sql"
            && finding.level >= Level::Warning
            && file.phase.is_some()
            && !file.proven
        {
            finding.level = Level::Error;
            finding.class = Class::E;
            finding.declare = Some(
                "opaque = { verify = \"verify.sql\", reason = \"why it cannot be plain statements\" }"
                    .to_owned(),
            );
        }
    }
    let blocking = if file.phase.is_some() {
        Level::Warning
    } else {
        Level::Error
    };
    let counted = || {
        found
            .findings
            .iter()
            .filter(|finding| finding.overridden.is_none() && finding.level >= blocking)
            .map(|finding| finding.class)
    };
    let by_nature = if found.long || !statement.transactional() {
        Class::C
    } else {
        Class::A
    };
    let class = counted()
        .chain([by_nature])
        .max_by_key(|class| rank(*class));
    let class = class.unwrap_or(Class::E);
    let passes = match file.phase {
        Some(phase) => phase.takes(class),
        // A plain folder has no phases: what is long may stand there, by itself.
        None => matches!(class, Class::A | Class::C),
    };
    let mut line: String = statement.plain.chars().take(160).collect();
    if line.len() < statement.plain.len() {
        line.push('…');
    }
    Verdict {
        file: file.path.clone(),
        line: statement.line,
        statement: line,
        class,
        passes,
        phase: file.phase,
        locks: found.locks,
        findings: found.findings,
        unread: found.unread,
    }
}

/// How bad a class is for where a statement may run: what must be split runs nowhere.
const fn rank(class: Class) -> u8 {
    match class {
        Class::A => 0,
        Class::C => 1,
        Class::D => 2,
        Class::B => 3,
        Class::E => 4,
    }
}
