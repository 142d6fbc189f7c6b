//! `aegis migrate verify`: whether a database is what was applied to it, and what the lock makes.
//!
//! Invariants: nothing is written into the database; exit code 0 only for what was compared, by lines that were not edited.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aegis_catalog::{Difference, Structure, What, quote};
use aegis_migrate::set::Set;
use aegis_migrate::shadow;
use aegis_migrate::standing::{recorded_in, standing};
use aegis_migrate::structure::{
    Answer, Report, Sealed, StructureError, in_schema, missing_roles, refused_on_a_shared_server,
    verify_in,
};
use aegis_model::ErrorCode;
use aegis_store::{Config, install};
use clap::Args;
use serde_json::json;
use tokio_postgres::Client;

use super::targets::{self, Aim, Manner, TargetArguments, Told, on_each};
use super::{Place, connect, status};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::Progress;

/// Below its help.
pub(crate) const AFTER: &str = "It reads the catalog in one snapshot and writes nothing. Two answers: beside what the applied steps have made here, \
    and beside schema.MAJOR.json, which `aegis migrate seal` writes. Exit code 12 when something is wrong, and when nothing could \
    be compared; 11 when a line was edited after it was applied here.";

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Replays exactly the applied lines in a second database on this server, compares with it, and drops it. Refused when a
    /// statement acts on the whole server.
    #[arg(long)]
    shadow: bool,
    #[command(flatten)]
    only: TargetArguments,
}

/// What the lock makes, before it is lent to the comparison.
enum Expected {
    Structure(Structure),
    Later(Vec<String>),
    Unknown(String),
}

pub(crate) async fn run(arguments: &VerifyArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let set = Set::read(&place.dir)?;
    set.sealed()?;
    let resolved = targets::resolve(set.files(), place, &arguments.only).await?;
    let by = Arc::new(By {
        dir: place.dir.clone(),
        schemas: shadow::schemas(&set),
        shadow: arguments.shadow,
    });
    on_each(set, resolved, Manner::Looks, place.output, move |aim| {
        verified(aim, Arc::clone(&by))
    })
    .await
}

/// What a database is compared with.
struct By {
    /// Where the sealed structures are.
    dir: PathBuf,
    /// The schemas that the files say.
    schemas: Vec<String>,
    /// The applied lines are replayed instead.
    shadow: bool,
}

async fn verified(aim: Aim, by: Arc<By>) -> Result<Told, Failure> {
    let set = &*aim.set;
    let client = connect(&aim.url).await?;
    let stands = standing(set, &recorded_in(&client, aim.ledger).await?);
    // What was applied is of another text: nothing here says what it should have made.
    status::edited(set, &stands)?;
    let pending: Vec<String> = stands
        .lines
        .iter()
        .filter(|line| !line.state.is_done())
        .map(|line| line.line.at.to_string())
        .collect();
    let schemas = shadow::schemas(set);
    let mut expected = if by.shadow {
        let mut applied = set.clone();
        applied
            .lock
            .lines
            .retain(|line| !pending.contains(&line.at.to_string()));
        Expected::Structure(on_a_second_database(&client, &aim.url, &applied).await?)
    } else if pending.is_empty() {
        of_schemas(sealed_file(&by.dir, &client).await?, &by.schemas, &schemas)
    } else {
        Expected::Later(pending)
    };
    if let Expected::Structure(structure) = &mut expected {
        shadow::forget_given_owners(set, structure);
    }
    let sealed = match &expected {
        Expected::Structure(structure) => Sealed::Structure(structure),
        Expected::Later(pending) => Sealed::Later {
            pending: pending.clone(),
        },
        Expected::Unknown(why) => Sealed::Unknown { why: why.clone() },
    };
    let report = verify_in(&client, aim.ledger, &schemas, sealed).await?;
    let mut told = told(&report);
    if report.exit_code() != 0 {
        let failure = Failure::new(Exit::Migrate(12), conclusion(&report));
        told.failure = Some(failure.with_code(ErrorCode::STRUCTURE));
    }
    Ok(told)
}

/// What was sealed for the schema of the files, as it is in the one of a target.
fn of_schemas(sealed: Expected, written: &[String], here: &[String]) -> Expected {
    match (sealed, written, here) {
        (sealed, written, here) if written == here => sealed,
        (Expected::Structure(structure), [from], [to]) => {
            Expected::Structure(in_schema(&structure, from, to))
        }
        (Expected::Structure(_), written, _) => Expected::Unknown(format!(
            "the changes are sealed for several schemas ({}), of which this one stands for each; `verify --shadow` replays them in it",
            written.join(", ")
        )),
        (other, _, _) => other,
    }
}

/// The file of the server's major version.
async fn sealed_file(dir: &Path, client: &Client) -> Result<Expected, Failure> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int / 10000",
            &[],
        )
        .await
        .map_err(|error| Failure::new(Exit::Migrate(20), chain(&error)))?;
    let major = u32::try_from(row.get::<_, i32>(0)).unwrap_or_default();
    let path = dir.join(shadow::schema_file(major));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Expected::Unknown(format!(
                "{} is not there; `aegis migrate seal` with PostgreSQL {major} writes it",
                path.display()
            )));
        }
        Err(error) => {
            let what = format!("{} cannot be read: {error}", path.display());
            return Err(Failure::new(Exit::Usage, what));
        }
    };
    let refuse = |error: aegis_catalog::Error| {
        let what = format!("{}: {}", path.display(), chain(&error));
        Failure::new(Exit::Usage, what).with_code(ErrorCode::BAD_CHANGE)
    };
    Structure::from_json(&text)
        .map(Expected::Structure)
        .map_err(refuse)
}

/// What the applied lines make, in a database beside the one that is judged.
async fn on_a_second_database(client: &Client, url: &str, set: &Set) -> Result<Structure, Failure> {
    let mut refused = refused_on_a_shared_server(set);
    let missing = missing_roles(client, set).await?;
    refused.extend(
        missing
            .iter()
            .map(|role| format!("the role {role} would be made")),
    );
    if !refused.is_empty() {
        let what = format!(
            "--shadow is refused, since a replay would act on the whole server:\n  {}\ncompare with a sealed structure instead (`aegis migrate seal`, then `verify`)",
            refused.join("\n  ")
        );
        return Err(Failure::new(Exit::Migrate(13), what).with_code(ErrorCode::STRUCTURE));
    }
    let sql = |error: tokio_postgres::Error| {
        Failure::new(
            Exit::Migrate(17),
            format!(
                "a second database could not be made or dropped: {}",
                chain(&error)
            ),
        )
    };
    let name = format!("aegis_shadow_{}", uuid::Uuid::now_v7().simple());
    let progress = Progress::new("replaying the applied lines in a second database", None);
    client
        .batch_execute(&format!(
            "CREATE DATABASE {} TEMPLATE template0",
            quote(&name)
        ))
        .await
        .map_err(sql)?;
    // A person who interrupts leaves no database behind.
    let made = tokio::select! {
        made = replayed(url, &name, set) => made,
        _ = tokio::signal::ctrl_c() => {
            Err(Failure::new(Exit::Migrate(22), "interrupted; the second database was dropped".to_owned()))
        }
    };
    let dropped = client
        .batch_execute(&format!(
            "DROP DATABASE IF EXISTS {} WITH (FORCE)",
            quote(&name)
        ))
        .await
        .map_err(sql);
    drop(progress);
    let made = made?;
    dropped?;
    Ok(made)
}

async fn replayed(url: &str, name: &str, set: &Set) -> Result<Structure, Failure> {
    let refuse = |error: aegis_store::StoreError| Failure::new(Exit::Migrate(17), chain(&error));
    let config = Config::from_url(url)
        .map_err(refuse)?
        .with_application_name("aegis migrate")
        .in_database(name);
    let client = install::connect_direct(&config).await.map_err(refuse)?;
    shadow::replay(&client, set).await?;
    Ok(shadow::structure(&client, set, Some(config.role())).await?)
}

fn told(report: &Report) -> Told {
    let differences = report.differences();
    let (unstated, shown): (Vec<&Difference>, Vec<&Difference>) = differences
        .iter()
        .copied()
        .partition(|difference| matches!(difference.what, What::OwnerNotStated { .. }));
    let judged = |difference: &&Difference| {
        let word = if difference.is_wrong() {
            "wrong"
        } else {
            "told"
        };
        format!("{word}: {difference}")
    };
    let mut notes: Vec<String> = shown.iter().map(judged).collect();
    if !unstated.is_empty() {
        notes.push(format!(
            "owners of {} objects were not compared: the sealed structure states them only where a change has run_as",
            unstated.len()
        ));
    }
    let answer = |answer: &Answer| match answer {
        Answer::NotCompared { why } => format!("not compared: {why}"),
        compared if compared.holds() => "holds".to_owned(),
        Answer::Compared { .. } => "different".to_owned(),
    };
    Told {
        fields: vec![
            ("outcome", report.outcome().to_owned()),
            ("server", format!("PostgreSQL {}", report.server_major)),
            ("applied steps", answer(&report.steps)),
            ("sealed structure", answer(&report.sealed)),
            ("fingerprint", report.fingerprint.clone()),
        ],
        json: json!({
            "outcome": report.outcome(),
            "server_major": report.server_major,
            "fingerprint": report.fingerprint,
            "steps": report.steps,
            "sealed": report.sealed,
            "differences": differences.iter().map(|d| json!({ "wrong": d.is_wrong(), "object": d.key.to_string(), "told": d.to_string() })).collect::<Vec<_>>(),
        }),
        notes,
        failure: None,
    }
}

fn conclusion(report: &Report) -> String {
    let wrong = report.differences().iter().filter(|d| d.is_wrong()).count();
    if wrong > 0 {
        return format!(
            "the database is not what was applied: {wrong} differences, told above; take back what was done by hand, or write it as a change"
        );
    }
    let why = |answer: &Answer| match answer {
        Answer::NotCompared { why } => why.clone(),
        Answer::Compared { .. } => "compared, and nothing is wrong".to_owned(),
    };
    format!(
        "the database was not compared whole; applied steps: {}; sealed structure: {}",
        why(&report.steps),
        why(&report.sealed)
    )
}

impl From<StructureError> for Failure {
    fn from(error: StructureError) -> Self {
        Self::new(Exit::Migrate(error.exit_code()), chain(&error)).with_code(ErrorCode::STRUCTURE)
    }
}
