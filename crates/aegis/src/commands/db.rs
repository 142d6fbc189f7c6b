//! `aegis db`: install, status, adopt, switch, maintain.

use aegis_store::{Store, install, maintain};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::commands::find;
use crate::commands::lane::pause::{NO_REASON, reason};
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Progress, at};

#[derive(Debug, Args)]
pub(crate) struct DbArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Brings the schema to this version's and makes partitions. Safe to run again, and by two at once.
    Install {
        /// Partitions for so many days ahead.
        #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(i32).range(1..=366))]
        days_ahead: i32,
    },
    /// Shows schema, lineage and partitions.
    Status,
    /// Accepts this database as the truth after a restore, an upgrade or a copy: every claim of before is fenced.
    Adopt {
        /// Yes, the old database will not be written any more.
        #[arg(long, required = true)]
        yes: bool,
        /// Why; kept with who, see `aegis db changes`.
        #[arg(long, default_value = NO_REASON)]
        reason: String,
        /// Who; default: the user of the shell.
        #[arg(long)]
        actor: Option<String>,
    },
    /// Lists what people changed about the fleet (pauses, drains, adoptions), the newest first: who, when and why.
    Changes {
        /// At most so many.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
        limit: i64,
    },
    /// After an upgrade to schema 7, when no worker of an older release is left: small inputs stand in their tasks' rows from
    /// now on, which makes a submit half as expensive. A database that was installed new has begun that way.
    Switch {
        /// Yes, there will be no rollback to a release from before schema 7.
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Makes partitions ahead and removes days past their retention; from a cron job, as the owner of the tables.
    Maintain {
        /// Partitions for so many days ahead.
        #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(i32).range(1..=366))]
        days_ahead: i32,
        /// Keeps history for so many days after a day's last task has ended.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(i32).range(1..=36500))]
        retention_days: i32,
    },
}

pub(crate) async fn run(
    arguments: DbArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let config = database.config()?;
    match arguments.verb {
        Verb::Install { days_ahead } => {
            let done = aegis_schema::install(&config, days_ahead).await?;
            let steps = if done.applied.is_empty() {
                "none (up to date)".to_owned()
            } else {
                format!("{:?}", done.applied)
            };
            output.one(
                &[("schema", done.schema.to_string()), ("steps applied", steps), ("partitions made", done.partitions.to_string())],
                &json!({ "schema": done.schema, "applied": done.applied, "partitions": done.partitions }),
            );
        }
        Verb::Status => status(&Store::connect(config).await?, output).await?,
        Verb::Changes { limit } => changes(&Store::connect(config).await?, limit, output).await?,
        Verb::Adopt {
            yes: _,
            reason: why,
            actor,
        } => {
            let why = reason(
                &why,
                "what this database was restored, upgraded or copied from",
            )?;
            let store = Store::connect(config).await?;
            let floor = store.adopt(&find::actor(actor), why).await?;
            output.one(&[("floor", floor.to_string())], &json!({ "floor": floor }));
        }
        Verb::Switch { yes: _ } => {
            let switched = install::switch_inline(&config).await?;
            let what = if switched {
                "yes"
            } else {
                "it was switched before"
            };
            output.one(
                &[("switched", what.to_owned())],
                &json!({ "switched": switched }),
            );
        }
        Verb::Maintain {
            days_ahead,
            retention_days,
        } => {
            let progress = Progress::new("partitions made and removed", None);
            let done = maintain::maintain(&config, days_ahead, retention_days).await?;
            drop(progress);
            output.one(
                &[
                    ("partitions made", done.made.to_string()),
                    ("days removed", done.removed_days.join(" ")),
                ],
                &json!({ "made": done.made, "removed_days": done.removed_days }),
            );
        }
    }
    Ok(Exit::Done)
}

async fn changes(store: &Store, limit: i64, output: Output) -> Result<(), Failure> {
    let found = store.fleet_changes(limit).await?;
    let rows = found.iter().map(|c| {
        vec![
            c.n.to_string(),
            at(c.at),
            c.what.clone(),
            c.subject.clone(),
            c.actor.clone(),
            c.reason.clone(),
        ]
    });
    let documents = found.iter().map(|c| {
        json!({ "id": c.n, "at": c.at.to_string(), "what": c.what, "subject": c.subject, "actor": c.actor, "reason": c.reason })
    });
    output.list(
        &["id", "at", "what", "subject", "actor", "reason"],
        rows.collect(),
        documents.collect(),
    );
    Ok(())
}

async fn status(store: &Store, output: Output) -> Result<(), Failure> {
    let status = store.database_status().await?;
    let counts = store.counts().await?;
    // No lineage: a copy under another system identifier, where no claim can be made until it is adopted.
    let lineage = match (status.lineage_floor, status.timeline) {
        (Some(floor), Some(timeline)) => format!("floor {floor}, timeline {timeline}"),
        _ => "NOT ADOPTED: this is a copy; no task can be claimed until `aegis db adopt --yes`"
            .to_owned(),
    };
    let partitions = status
        .partitions_until
        .clone()
        .unwrap_or_else(|| "NONE: run `aegis db maintain`".to_owned());
    let mut fields = vec![
        ("server", format!("PostgreSQL {}", status.server_version)),
        (
            "schema",
            format!(
                "{} (binaries from {} on may use it)",
                status.schema, status.min_schema
            ),
        ),
        ("lineage", lineage),
        ("up since", at(status.up_since)),
        ("partitions until", partitions),
    ];
    for count in &counts {
        let state = aegis_model::State::from_number(count.state);
        fields.push((
            "tasks",
            format!(
                "{} {}/{} protocol {}..{}: {}",
                state, count.queue, count.kind, count.lo, count.hi, count.count
            ),
        ));
    }
    let tasks: Vec<_> = counts
        .iter()
        .map(|c| {
            let state = aegis_model::State::from_number(c.state);
            json!({ "queue": c.queue, "kind": c.kind, "protocol_lo": c.lo, "protocol_hi": c.hi, "state": state.word(), "count": c.count })
        })
        .collect();
    output.one(
        &fields,
        &json!({
            "server": status.server_version, "schema": status.schema, "min_schema": status.min_schema,
            "system_identifier": status.system_identifier.to_string(), "floor": status.floor, "timeline": status.timeline,
            "adopted": status.lineage_floor.is_some(), "up_since": status.up_since.to_string(),
            "partitions_until": status.partitions_until, "tasks": tasks,
        }),
    );
    Ok(())
}
