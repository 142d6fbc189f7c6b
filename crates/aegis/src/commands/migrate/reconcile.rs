//! `aegis migrate reconcile`: the rows of a change counted once more, as evidence.
//!
//! Invariants: it only reads, in one state of the database; the mutex is held no longer than its tables need to be there.

use aegis_backfill::job::Who;
use aegis_backfill::pass::{Count, Kind};
use aegis_migrate::change::ChangeId;
use aegis_migrate::run::data;
use aegis_migrate::set::Set;
use aegis_model::ErrorCode;
use clap::Args;
use serde_json::{Value, json};

use super::by::ByArguments;
use super::contract::no_such;
use super::{Place, backfill, on_target};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, line, note};

/// Below its help.
pub(crate) const AFTER: &str = "Every row is read in one state of the database, and the result is kept in aegis_migrate.reconcile_pass, where the switch \
    and the contract find it. `forward` counts rows whose new side is not what forward makes of the old one; the switch needs zero of \
    it. `agrees` counts rows for which neither direction holds; the contract needs zero of it, and exit code 18 is about it, or about \
    what the change's own query tells.";

#[derive(Debug, Args)]
pub(crate) struct ReconcileArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    #[command(flatten)]
    by: ByArguments,
}

pub(crate) async fn run(
    arguments: &ReconcileArguments,
    place: &Place<'_>,
) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    let change = set
        .changes
        .get(&arguments.id)
        .ok_or_else(|| no_such(&set, &arguments.id))?;
    set.sealed()?;
    let held = arguments.by.held(place).await?;
    let who = Who {
        run: held.who.run.clone(),
        by: held.who.by.clone(),
        release: held.who.release.clone(),
    };
    let applied = data::applied(&held.session.client, &set).await;
    let way_out = data::way_out(&held.session.client, change).await;
    let again = held.session.again();
    held.release().await;
    let stands = applied.map_err(|error| on_target::failure(&error))?;
    // Before, there may be no new side to count.
    on_target::expanded(&stands, &arguments.id)?;
    let way_out = way_out.map_err(|error| on_target::failure(&error))?;
    let session = again(format!("aegis reconcile/{}", who.run))
        .await
        .map_err(|error| on_target::failure(&error.into()))?;
    let is_json = place.output == Output::Json;
    let mut told = |event: &Value| {
        if is_json {
            line(&event.to_string());
        } else if let Some(words) = backfill::words(event) {
            note(&words);
        }
    };
    let counts = data::reconcile(session, change, &who, &mut told)
        .await
        .map_err(|error| on_target::failure(&error))?;
    let wrong = data::is_wrong(&counts);
    // Zero is zero of everything: rows whose new side is not what forward makes stand in the way of the switch.
    let outcome = match (wrong, counts.iter().all(Count::is_zero)) {
        (true, _) => "not_zero",
        (false, true) => "zero",
        (false, false) => "agrees",
    };
    let mut fields = vec![("outcome", outcome.to_owned())];
    fields.extend(counts.iter().map(|count| (kind(count), count.words())));
    place.output.one(
        &fields,
        &json!({ "outcome": outcome, "change": arguments.id, "counts": counts }),
    );
    for count in &counts {
        for sample in &count.samples {
            note(&format!(
                "{}: {} ({})",
                count.kind.name(),
                sample.key,
                sample.what
            ));
        }
    }
    if !wrong {
        return Ok(Exit::Done);
    }
    let said = format!(
        "{} is not zero: {}; {way_out}",
        arguments.id,
        data::words(&counts)
    );
    Err(Failure::new(Exit::Migrate(18), said).with_code(ErrorCode::EVIDENCE))
}

fn kind(count: &Count) -> &'static str {
    match count.kind {
        Kind::Forward => "forward",
        Kind::Agrees => "agrees",
        Kind::Sql => "query",
    }
}
