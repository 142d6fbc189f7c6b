//! `contract run`: every fact again, then tighten, then one transaction that takes the old form away.
//!
//! Invariants: nothing is executed before every fact carries and the approval counts; the sync trigger, the old columns and all else
//! that can go in a transaction go in one, behind the assertions of the [`Gate`]; the approval is used up before the first step; a
//! statement that cannot run in a transaction stands before or after it, asserted before and after; a contract that was cut short
//! goes on where it was, and what was dropped asks for no second approval.

use aegis_ddl::{Class, SourceFile};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::outside::{Begun, Outside};
use super::watch::{Keeper, Watch};
use super::{Ladder, Outcome, RunError, Work, baseline, of_statement, source_of, step, tell};
use crate::change::{Change, ChangeId, Phase, PhaseOf};
use crate::contract::approval::{self, Approved, Wanted};
use crate::contract::attempt::{Attempt, AttemptError};
use crate::contract::envelope::Envelope;
use crate::contract::error::ContractError;
use crate::contract::fact::{Fact, blocks};
use crate::contract::gate::Gate;
use crate::contract::judge;
use crate::contract::keyring::Keyring;
use crate::contract::subject::Subject;
use crate::ledger::{self, StepRow, StepState, Who};
use crate::lock::LockLine;
use crate::mutex::Held;
use crate::plan::{Verify, verify};
use crate::set::Set;
use crate::standing::{Standing, recorded, standing};

/// What somebody brings who runs a contract.
#[derive(Debug, Clone, Copy)]
pub struct Brought<'a> {
    /// The change.
    pub change: &'a ChangeId,
    /// Who may say what here.
    pub keyring: &'a Keyring,
    /// The signed approvals, each with its file.
    pub envelopes: &'a [(String, Envelope)],
}

/// What a contract did.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// `applied`, or `nothing` when it had run.
    pub outcome: Outcome,
    /// Steps applied now.
    pub applied: u32,
    /// Steps found as they should be.
    pub reconciled: u32,
    /// The attempt.
    pub attempt: i32,
    /// The digest of the approval that was used; none when an earlier run had used it.
    pub approval: Option<String>,
    /// Who approved.
    pub approved_by: Vec<String>,
    /// Every fact as it was judged.
    pub facts: Vec<Fact>,
}

/// A statement that runs by itself.
struct Place<'a> {
    work: Work<'a>,
    begun: Option<Begun<'a>>,
}

/// The statements that are open, in the order in which they run.
#[derive(Default)]
struct Open<'a> {
    /// By itself each, while everything is still there.
    before: Vec<Place<'a>>,
    /// In the one transaction.
    drop: Vec<Work<'a>>,
    /// By itself each, when the old form is gone.
    after: Vec<Place<'a>>,
}

/// What a run works with.
struct Run<'a> {
    client: &'a mut Client,
    watch: Option<&'a mut Client>,
    pid: i32,
    who: Who,
    ladder: &'a Ladder,
    told: &'a mut (dyn FnMut(&Value) + Send),
}

/// Runs the contract of one change. `told` hears of each step; a run that failed is told last, and kept in the ledger.
///
/// # Errors
/// See [`ContractError`]; exit code 18 means that nothing was dropped.
pub async fn run(
    held: &mut Held,
    set: &Set,
    brought: &Brought<'_>,
    ladder: &Ladder,
    told: &mut (dyn FnMut(&Value) + Send),
) -> Result<Summary, ContractError> {
    let ended = whole_line(held, set, brought, ladder, told).await;
    if let Err(error) = &ended {
        let who = held.who.clone();
        let event = json!({ "event": "ended", "summary": {
            "outcome": "failed", "phase": "contract", "change": brought.change, "exit_code": error.exit_code(),
            "error": error.to_string(), "epoch": who.epoch,
        } });
        // The first error is what is told; a lost or overtaken session cannot keep it.
        if let Err(lost) = tell(&mut held.session.client, &who, told, event).await {
            tracing::warn!(error = %lost, "the end of this contract is not in the ledger");
        }
    }
    ended
}

async fn whole_line(
    held: &mut Held,
    set: &Set,
    brought: &Brought<'_>,
    ladder: &Ladder,
    told: &mut (dyn FnMut(&Value) + Send),
) -> Result<Summary, ContractError> {
    let (line, change) = ready(held, set, brought.change).await?;
    let subject = Subject::of(change).ok_or_else(|| ContractError::None(change.id.to_string()))?;
    let ledger = held.ledger.id.to_string();
    let server = u32::try_from(held.session.version_num / 10_000).unwrap_or(0);
    let mut run = Run {
        pid: held.session.pid,
        who: held.who.clone(),
        client: &mut held.session.client,
        watch: held.watch.as_mut(),
        ladder,
        told,
    };
    let attempt = Attempt::find(run.client, &subject.id)
        .await?
        .ok_or_else(|| AttemptError::NotClosed {
            change: subject.id.clone(),
        })?;
    let mut summary = Summary {
        outcome: Outcome::Nothing,
        applied: 0,
        reconciled: 0,
        attempt: attempt.number,
        approval: None,
        approved_by: Vec::new(),
        facts: Vec::new(),
    };
    let Some(line) = line else {
        return Ok(summary);
    };
    let steps = ledger::steps(run.client, run.who.ledger).await?;
    let sources = sources(run.client, change).await?;
    let proof = proof(change)?;
    let open = open(&steps, line, change, &sources, proof.as_ref(), server)?;
    if attempt.done_at.is_some() {
        // The old form is gone, and the approval with it: what is left is what stands after the transaction.
        let before = open.before.iter().map(|place| &place.work);
        if let Some(work) = before.chain(&open.drop).next() {
            return Err(ContractError::Run(RunError::Unknown {
                file: work.step.file.clone(),
                line: work.statement.line,
                why: "the attempt is done, and the ledger does not have this step: somebody edited aegis_migrate by hand".to_owned(),
            }));
        }
    } else {
        clock_goes_on(run.client).await?;
        summary.facts = facts(run.client, &subject, &attempt, brought.keyring).await?;
        let approved = approved(&attempt, brought, line, &ledger)?;
        let definition = definition(run.client, &subject).await?;
        let gate = Gate {
            attempt: &attempt,
            change,
            door: subject.door(),
            sync: subject.rule.as_ref().zip(definition.as_deref()),
            approved: &approved,
        };
        run.bind(&gate).await?;
        let event = json!({ "event": "facts", "change": subject.id, "attempt": attempt.number, "approval": approved.digest,
            "approved_by": approved.by, "facts": summary.facts });
        run.tell(event).await?;
        for place in &open.before {
            run.alone(place, Some(&gate), &mut summary).await?;
        }
        if !open.before.is_empty() {
            // It may have taken hours.
            summary.facts = facts(run.client, &subject, &attempt, brought.keyring).await?;
        }
        run.drop_all(&open.drop, &gate, &mut summary).await?;
        summary.approval = Some(approved.digest.clone());
        summary.approved_by.clone_from(&approved.by);
    }
    for place in &open.after {
        run.alone(place, None, &mut summary).await?;
    }
    run.whole(line, &sources).await?;
    summary.outcome = Outcome::Applied;
    Ok(summary)
}

impl Run<'_> {
    async fn tell(&mut self, event: Value) -> Result<(), ContractError> {
        Ok(tell(self.client, &self.who, self.told, event).await?)
    }

    async fn tell_step(&mut self, work: &Work<'_>, state: StepState) -> Result<(), ContractError> {
        self.tell(json!({ "event": "step", "step": work.name(), "state": state.name(), "file": work.step.file, "line": work.step.line }))
            .await
    }

    /// The assertions, for what runs by itself.
    async fn gate(&mut self, gate: &Gate<'_>) -> Result<(), ContractError> {
        let transaction = self.client.transaction().await?;
        gate.holds(&transaction).await?;
        transaction.rollback().await?;
        Ok(())
    }

    /// The assertions, and the approval that is used up from here on.
    async fn bind(&mut self, gate: &Gate<'_>) -> Result<(), ContractError> {
        let transaction = self.client.transaction().await?;
        ledger::fence(&transaction, &self.who).await?;
        gate.holds(&transaction).await?;
        gate.bind(&transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// A statement by itself, with the assertions before and after it.
    async fn alone(
        &mut self,
        place: &Place<'_>,
        gate: Option<&Gate<'_>>,
        summary: &mut Summary,
    ) -> Result<(), ContractError> {
        let work = &place.work;
        if let Some(gate) = gate {
            self.gate(gate).await?;
        }
        let state = if work.statement.transactional() {
            let works = std::slice::from_ref(work);
            step::run(self.client, works, &self.who, false, self.ladder).await?;
            StepState::Applied
        } else {
            let outside = Outside {
                who: &self.who,
                begun: place.begun,
                fresh: false,
                watch: self.watch.as_deref_mut().map(|client| Watch {
                    client,
                    pid: self.pid,
                    keeper: Keeper::Mutex,
                }),
            };
            super::outside::run(self.client, work, outside, self.told).await?
        };
        if let Some(gate) = gate {
            self.gate(gate).await?;
        }
        if state == StepState::Reconciled {
            summary.reconciled += 1;
        } else {
            summary.applied += 1;
        }
        self.tell_step(work, state).await
    }

    /// The one transaction. Without a statement of its own it ends the attempt all the same.
    async fn drop_all(
        &mut self,
        works: &[Work<'_>],
        gate: &Gate<'_>,
        summary: &mut Summary,
    ) -> Result<(), ContractError> {
        if works.is_empty() {
            let transaction = self.client.transaction().await?;
            ledger::fence(&transaction, &self.who).await?;
            gate.holds(&transaction).await?;
            gate.end(&transaction).await?;
            transaction.commit().await?;
            return Ok(());
        }
        let (who, ladder) = (&self.who, self.ladder);
        step::behind(self.client, works, who, false, ladder, Some(gate)).await?;
        for work in works {
            summary.applied += 1;
            self.tell_step(work, StepState::Applied).await?;
        }
        Ok(())
    }

    /// The phase is whole.
    async fn whole(
        &mut self,
        line: &LockLine,
        sources: &[(SourceFile, Option<Class>)],
    ) -> Result<(), ContractError> {
        let steps: usize = sources
            .iter()
            .map(|(source, _)| source.script.statements.len())
            .sum();
        let steps = i32::try_from(steps).unwrap_or(i32::MAX);
        let transaction = self.client.transaction().await?;
        ledger::fence(&transaction, &self.who).await?;
        ledger::phase_done(&transaction, &line.at, &line.sha256, steps, &self.who).await?;
        transaction.commit().await?;
        self.tell(json!({ "event": "phase", "phase": line.at.to_string(), "steps": steps }))
            .await
    }
}

/// The line of the contract, when it is open and everything before it is applied; no line when it has run.
async fn ready<'a>(
    held: &Held,
    set: &'a Set,
    id: &ChangeId,
) -> Result<(Option<&'a LockLine>, &'a Change), ContractError> {
    set.sealed().map_err(RunError::from)?;
    let at = PhaseOf {
        id: id.clone(),
        phase: Phase::Contract,
    };
    let (Some(line), Some(change)) = (set.lock.line(&at), set.changes.get(id)) else {
        return Err(ContractError::None(id.to_string()));
    };
    let client = &held.session.client;
    let stands = standing(set, &recorded(client).await.map_err(baseline)?);
    unedited(&stands, held.ledger.dev)?;
    if stands.of(&at).is_some_and(crate::standing::State::is_done) {
        return Ok((None, change));
    }
    let missing = stands
        .missing(Phase::Contract)
        .find(|missing| missing.for_line == at);
    match missing {
        Some(missing) => Err(RunError::Requires(Box::new(missing.clone())).into()),
        None => Ok((Some(line), change)),
    }
}

/// Refuses a folder whose applied lines are not what was applied: no verb of a contract goes by it.
///
/// # Errors
/// [`RunError::Edited`], exit code 11.
pub(crate) fn unedited(stands: &Standing, dev: bool) -> Result<(), RunError> {
    let edited: Vec<String> = stands
        .edited()
        .map(|line| line.line.at.to_string())
        .collect();
    if edited.is_empty() || dev {
        return Ok(());
    }
    Err(RunError::Edited(edited.join(", ")))
}

/// `unedited` of the application's ledger, as it stands now.
///
/// # Errors
/// [`RunError::Edited`], or the database's.
pub async fn goes_by_what_was_applied(
    client: &Client,
    set: &Set,
    dev: bool,
) -> Result<(), RunError> {
    unedited(
        &standing(set, &recorded(client).await.map_err(baseline)?),
        dev,
    )
}

/// Whether the statements of a contract stand in an order in which they can run: it is known before the door shuts.
pub(crate) async fn in_order(
    client: &mut Client,
    set: &Set,
    change: &Change,
) -> Result<(), ContractError> {
    let at = PhaseOf {
        id: change.id.clone(),
        phase: Phase::Contract,
    };
    let line = set
        .lock
        .line(&at)
        .ok_or_else(|| ContractError::None(change.id.to_string()))?;
    let sources = sources(client, change).await?;
    let proof = proof(change)?;
    open(&[], line, change, &sources, proof.as_ref(), 0).map(|_| ())
}

/// Refuses a clock that stands before what the ledger has seen: what has ended by it would count again.
async fn clock_goes_on(client: &Client) -> Result<(), ContractError> {
    let row = client
        .query_one(include_str!("../../sql/contract/last_event.sql"), &[])
        .await?;
    let (last, now): (Option<Timestamp>, Timestamp) = (row.try_get(0)?, row.try_get(1)?);
    match last {
        Some(last) if last > now => Err(ContractError::Unsafe(format!(
            "the clock of this database stands at {now}, and its ledger has an event of {last}: the clock was set back, so what has ended would count again; correct it first"
        ))),
        _ => Ok(()),
    }
}

/// The approval, judged by the database's time.
fn approved(
    attempt: &Attempt,
    brought: &Brought<'_>,
    line: &LockLine,
    ledger: &str,
) -> Result<Approved, ContractError> {
    let lock_line = line_text(line);
    let wanted = Wanted {
        lock_line: &lock_line,
        ledger,
        attempt: attempt.number,
        closed_at: attempt.closed_at,
        now: attempt.now,
    };
    let (envelopes, keyring) = (brought.envelopes, brought.keyring);
    Ok(approval::judge(envelopes, keyring, &wanted)?)
}

/// A line of the lock, as approvals name it.
pub fn line_text(line: &LockLine) -> String {
    format!("{} {} {}", line.at.id, line.at.phase, line.sha256)
}

/// The facts of this moment, when all of them carry.
async fn facts(
    client: &Client,
    subject: &Subject<'_>,
    attempt: &Attempt,
    keyring: &Keyring,
) -> Result<Vec<Fact>, ContractError> {
    let now = Attempt::under_way(client, &attempt.change).await?;
    let facts = judge::facts(client, subject, &now, keyring).await?;
    carries(subject, &now, &facts)?;
    Ok(facts)
}

fn carries(subject: &Subject<'_>, attempt: &Attempt, facts: &[Fact]) -> Result<(), ContractError> {
    let blocks = blocks(&subject.asked(), facts, attempt.now);
    if blocks.is_empty() {
        return Ok(());
    }
    Err(ContractError::Blocked {
        change: subject.id.clone(),
        blocks,
    })
}

/// The sync trigger as it must stay until it is dropped: the one that is there when the facts, which know the one of the pass, carry.
async fn definition(
    client: &Client,
    subject: &Subject<'_>,
) -> Result<Option<String>, ContractError> {
    let Some(rule) = &subject.rule else {
        return Ok(None);
    };
    let state = rule.state(client).await?;
    let why = crate::contract::reconciled::other_trigger(
        state.clone(),
        state.as_ref().map(|state| state.definition.as_str()),
    );
    match (why, state) {
        (None, Some(state)) => Ok(Some(state.definition)),
        (why, _) => Err(ContractError::Unsafe(format!(
            "{}: rows may have been written on one side only; make it again, backfill and reconcile",
            why.unwrap_or("the sync trigger is not there")
        ))),
    }
}

async fn sources(
    client: &mut Client,
    change: &Change,
) -> Result<Vec<(SourceFile, Option<Class>)>, RunError> {
    let mut sources = Vec::new();
    for part in change.parts(Phase::Contract) {
        sources.extend(source_of(client, change, part).await?);
    }
    Ok(sources)
}

/// What proves its opaque statements.
fn proof(change: &Change) -> Result<Option<Verify>, RunError> {
    verify(change, Phase::Contract).map_err(|problem| RunError::Folder(problem.into()))
}

/// The statements that are open. Of the files that drop, what cannot run in a transaction stands above or below all that can.
fn open<'a>(
    steps: &'a [StepRow],
    line: &'a LockLine,
    change: &'a Change,
    sources: &'a [(SourceFile, Option<Class>)],
    verify: Option<&'a Verify>,
    server: u32,
) -> Result<Open<'a>, ContractError> {
    let (mut open, mut ordinal) = (Open::default(), 0);
    let (mut dropping, mut dropped) = (false, false);
    for (source, generated) in sources {
        let tightens = source.phase == Some(aegis_ddl::Phase::Tighten);
        for statement in &source.script.statements {
            ordinal += 1;
            let transactional = statement.transactional();
            // The end of the trigger is ours, and always in the transaction.
            if !tightens && generated.is_none() {
                if transactional && dropped {
                    return Err(ContractError::Unsafe(format!(
                        "{}:{}: it stands below a statement that cannot run in a transaction, and the old form goes in one transaction: move it above",
                        source.path, statement.line
                    )));
                }
                dropped = dropping && !transactional;
                dropping |= transactional;
            }
            let row = steps
                .iter()
                .find(|row| row.at == line.at && row.ordinal == ordinal);
            let step = of_statement(line, source, statement, ordinal);
            if row.is_some_and(|row| row.state.is_done() && row.sha256 == step.sha256) {
                continue;
            }
            let begun = row.filter(|row| row.state.is_begun()).map(|row| Begun {
                said: row.said.as_deref(),
            });
            let work = Work {
                step,
                statement,
                source,
                schema: &change.schema,
                run_as: change.run_as.as_deref(),
                compatible: &[],
                server,
                verify,
                generated: *generated,
            };
            if dropped {
                open.after.push(Place { work, begun });
            } else if transactional && !tightens {
                open.drop.push(work);
            } else {
                open.before.push(Place { work, begun });
            }
        }
    }
    Ok(open)
}
