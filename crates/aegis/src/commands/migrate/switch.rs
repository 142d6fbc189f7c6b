//! `aegis migrate switch`: which side of a change applications read and write.
//!
//! Invariants: without a side it only shows; a move is from the rev that was seen, under the mutex; the new side is given only on
//! evidence.

use aegis_migrate::change::{Change, ChangeId};
use aegis_migrate::contract::reconciled::{self, Question};
use aegis_migrate::ledger;
use aegis_migrate::mutex::Held;
use aegis_migrate::run::RunError;
use aegis_migrate::set::Set;
use aegis_migrate::switch::{self, Move, Moved, Side, Standing, SwitchError};
use aegis_model::ErrorCode;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::by::ByArguments;
use super::contract::no_such;
use super::{Place, connect, reason};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::note;

/// Below its help.
pub(crate) const AFTER: &str = "Applications ask `SELECT * FROM aegis_migrate.switched('ID')` and may keep the answer for cache_ttl_ms, so a move counts \
    only after that time. The new side needs a pass of `aegis migrate reconcile` that counted no row in which forward does not hold, at \
    most [reconcile] max_age old; otherwise exit code 18, and nothing moves. Rows that a new program has written already may be such that \
    forward would make something else of them: when agrees is zero, --accept-forward N takes exactly the N mismatching rows of the newest \
    pass, and the number is kept. Back to the old side until `contract close`; when the contract has run there is no old side.";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SideArgument {
    /// The form from before the change.
    Old,
    /// The form that it brings.
    New,
}

impl From<SideArgument> for Side {
    fn from(side: SideArgument) -> Self {
        match side {
            SideArgument::Old => Self::Old,
            SideArgument::New => Self::New,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SwitchArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// What applications shall read.
    #[arg(long, value_enum, requires = "reason")]
    reads: Option<SideArgument>,
    /// What applications shall write.
    #[arg(long, value_enum, requires = "reason")]
    writes: Option<SideArgument>,
    /// Accepts exactly so many rows that forward does not make, because programs wrote them on the new side.
    #[arg(long, value_name = "N", requires = "reason", value_parser = clap::value_parser!(i64).range(1..))]
    accept_forward: Option<i64>,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT", value_parser = reason::read)]
    reason: Option<String>,
    /// Moves only when the switch still has this rev.
    #[arg(long, value_name = "REV")]
    rev: Option<i32>,
    #[command(flatten)]
    by: ByArguments,
}

pub(crate) async fn run(arguments: &SwitchArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let change = set
        .changes
        .get(&arguments.id)
        .ok_or_else(|| no_such(&set, &arguments.id))?;
    let Some(reason) = &arguments.reason else {
        let client = connect(place.database.direct()?).await?;
        if ledger::find(&client).await.map_err(of_run)?.is_none() {
            let none = "this database has no ledger of aegis migrate; nothing was run here";
            return Err(Failure::new(Exit::Migrate(21), none).with_code(ErrorCode::REQUIRED_FIRST));
        }
        let stands = switch::standing(&client, arguments.id.as_str())
            .await
            .map_err(|error| failure(&error))?;
        show(place, &arguments.id, &stands);
        return Ok(Exit::Done);
    };
    set.sealed()?;
    let mut held = arguments.by.held(place).await?;
    let moved = make(&mut held, arguments, change, reason).await;
    held.release().await;
    match moved? {
        Moved::Nothing => place.output.one(
            &[("outcome", "nothing".to_owned())],
            &json!({ "outcome": "nothing", "change": arguments.id }),
        ),
        Moved::Applied {
            rev,
            counts_from,
            accepted,
        } => {
            let mut fields = vec![
                ("outcome", "applied".to_owned()),
                ("rev", rev.to_string()),
                ("counts from", counts_from.to_string()),
            ];
            if let Some(rows) = accepted {
                let words = format!("{rows} rows whose new side forward does not make");
                fields.push(("accepted", words));
            }
            let document = json!({ "outcome": "applied", "change": arguments.id, "rev": rev, "counts_from": counts_from,
                "accepted": accepted });
            place.output.one(&fields, &document);
        }
    }
    Ok(Exit::Done)
}

async fn make(
    held: &mut Held,
    arguments: &SwitchArguments,
    change: &Change,
    reason: &str,
) -> Result<Moved, Failure> {
    let id = change.id.to_string();
    let Some(declared) = &change.switch else {
        let none = format!("{id} has no [switch]; write the sides that it switches, and seal");
        return Err(Failure::new(Exit::Migrate(2), none));
    };
    let sides = |names: &[String]| -> Vec<Side> {
        names
            .iter()
            .filter_map(|name| Side::from_name(name))
            .collect()
    };
    let (may_read, may_write) = (sides(&declared.reads), sides(&declared.writes));
    let who = held.who.clone();
    let transaction = held.session.client.transaction().await.map_err(of_run)?;
    ledger::fence(&transaction, &who).await.map_err(of_run)?;
    let from = switch::standing(&transaction, &id)
        .await
        .map_err(|error| failure(&error))?;
    let forward = reconciled::fact(&transaction, change, Question::Forward)
        .await
        .map_err(of_run)?;
    let now = transaction
        .query_one("SELECT clock_timestamp()", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(of_run)?;
    let written_new = reconciled::written_new(&transaction, change, now)
        .await
        .map_err(of_run)?;
    let wanted = Move {
        change: &id,
        seen: arguments.rev,
        reads: arguments.reads.map_or(from.reads, Side::from),
        writes: arguments.writes.map_or(from.writes, Side::from),
        may_read: &may_read,
        may_write: &may_write,
        cache_ttl_ms: i32::try_from(declared.cache_ttl_ms).unwrap_or(i32::MAX),
        release: &who.release,
        by: &who.by,
        reason,
        forward: &forward,
        written_new: &written_new,
        accept_forward: arguments.accept_forward,
        now,
    };
    let moved = switch::make(&transaction, &wanted)
        .await
        .map_err(|error| failure(&error))?;
    if let Moved::Applied { rev, accepted, .. } = &moved {
        let event = json!({ "event": "switched", "change": id, "rev": rev, "reads": wanted.reads, "writes": wanted.writes, "by": who.by,
            "reason": reason, "forward": forward, "accepted": accepted });
        ledger::event(&transaction, &who, &event)
            .await
            .map_err(of_run)?;
    }
    transaction.commit().await.map_err(of_run)?;
    Ok(moved)
}

fn show(place: &Place<'_>, id: &ChangeId, stands: &Standing) {
    let mut fields = vec![
        ("reads", stands.reads.to_string()),
        ("writes", stands.writes.to_string()),
        ("rev", stands.rev.to_string()),
    ];
    if let Some(last) = &stands.last {
        let counts = if last.counts { "" } else { " (not yet)" };
        fields.push(("by", last.by.clone()));
        fields.push(("release", last.release.clone()));
        fields.push(("counts from", format!("{}{counts}", last.counts_from)));
    } else {
        note("nobody has moved it");
    }
    place
        .output
        .one(&fields, &json!({ "change": id, "standing": stands }));
}

fn of_run(error: impl Into<RunError>) -> Failure {
    let error = error.into();
    Failure::new(Exit::Migrate(error.exit_code()), chain(&error))
}

fn failure(error: &SwitchError) -> Failure {
    let code = match error {
        SwitchError::NotDeclared { .. }
        | SwitchError::NoSuchRev { .. }
        | SwitchError::NothingToAccept { .. } => 2,
        SwitchError::NotReconciled { .. }
        | SwitchError::NotAccepted { .. }
        | SwitchError::Closed { .. }
        | SwitchError::Dropped { .. } => 18,
        SwitchError::MovedMeanwhile { .. } => 16,
        SwitchError::Database(_) | SwitchError::Unreadable(_) => 20,
    };
    let failure = Failure::new(Exit::Migrate(code), chain(error));
    if code == 18 {
        failure.with_code(ErrorCode::EVIDENCE)
    } else {
        failure
    }
}
