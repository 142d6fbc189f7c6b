//! Before the first act: a database, the payment service, three workers of version 1, and 300 orders.

use std::ffi::OsString;
use std::path::Path;

use aegis_devpg::{Durability, Options, Server};
use aegis_store::{Config, NewTask, RetryPolicy, Store, StoreError};

use super::look::Look;
use super::process::{Process, Program};
use super::stage::{LEASE, SLOTS, Stage};
use super::{DEMO, DemoError, DemoOptions, ENGINE};
use crate::orders::Order;
use crate::payments::Ready;
use crate::run::{KIND, Run};
use crate::story::{Actor, Story};

/// Starts everything.
pub(super) async fn open<'a>(
    options: &'a DemoOptions,
    story: &'a Story,
) -> Result<Stage<'a>, DemoError> {
    story.act("before: a database, a payment service, three workers");
    let folder = tempfile::Builder::new()
        .prefix("aegis-demo-")
        .tempdir()
        .map_err(DemoError::Folder)?;
    let run = Run::new();
    let (server, owner_url) = database(options, story).await?;
    let installed = aegis_schema::install(&Config::from_url(&owner_url)?, 1)
        .await
        .map_err(Box::new)?;
    story.tell(
        &ENGINE,
        format!(
            "its schema is installed: version {}, {} steps now",
            installed.schema,
            installed.applied.len()
        ),
    );
    // The demo's own tables belong to whoever installs; the roles are the installation's, and their settings are not his.
    let owner = Store::connect_unverified(Config::from_url(&owner_url)?.with_pool_size(1))?;
    run.write_down(&owner, options.seed).await?;
    let database_url = match &server {
        Some(server) => named(&server.url("aegis_engine", "postgres")),
        None => engine_url(&owner_url).await,
    };
    let config = Config::from_url(&database_url)?
        .with_pool_size(4)
        .with_application_name("aegis demo");
    let engine = Store::connect(config).await?;
    let program = Program {
        path: options.program.clone(),
        database_url,
        folder: folder.path().to_owned(),
    };
    let record = folder.path().join("payments.jsonl");
    let (payments, payments_url) = payments(&program, "payments", &run, &record, options).await?;
    story.tell(
        &Actor::Payments,
        format!(
            "a process of its own listens at {payments_url} and knows nothing of the engine.\n\
             By seed {} it loses requests and answers, answers late, fails before or after the fact, forgets keys, and \
             refuses old fencing tokens",
            options.seed
        ),
    );
    if options.doubles {
        story.tell(
            &Actor::Payments,
            "and it breaks its promise: a few charges take place twice",
        );
    }
    let mut stage = Stage {
        look: Look::new(engine.clone(), run.clone()),
        story,
        options,
        run,
        store: engine,
        program,
        payments,
        payments_url,
        record,
        workers: Vec::new(),
        started_workers: 0,
        _server: server,
        folder: Some(folder),
    };
    stage.workers = stage.start_workers(3, 1).await?;
    stage.tell(
        &DEMO,
        format!(
            "three worker processes of version 1 run, {SLOTS} orders at a time each. A worker's right to write is a lease of \
             {} s that it renews",
            LEASE.as_secs()
        ),
    );
    Ok(stage)
}

async fn database(
    options: &DemoOptions,
    story: &Story,
) -> Result<(Option<Server>, String), DemoError> {
    if let Some(url) = &options.database_url {
        story.tell(&DEMO, "uses the database that it was given");
        return Ok((None, named(url)));
    }
    let devpg = Options {
        durability: Durability::Fast,
        fetch: options.fetch_postgres,
        ..Options::default()
    };
    let server = tokio::task::spawn_blocking(move || Server::start(&devpg))
        .await
        .map_err(|_| DemoError::Broken)?
        .map_err(|error| DemoError::Postgres(Box::new(error)))?;
    // PostgreSQL refuses root, so it was started as somebody else: say as whom.
    let as_whom = server.run_as().map_or(String::new(), |user| {
        format!(" as user {user}, not as root")
    });
    // As `postgres --version` says it: postgres (PostgreSQL) 15.18 …
    let version = server
        .version()
        .1
        .replacen("postgres (PostgreSQL)", "PostgreSQL", 1);
    story.tell(
        &DEMO,
        format!(
            "a private {version} runs{as_whom}; it ends with this demo and leaves nothing behind"
        ),
    );
    let url = named(&server.url(server.superuser(), "postgres"));
    Ok((Some(server), url))
}

/// The same URL for the engine's role where that may connect so, else as given.
async fn engine_url(owner_url: &str) -> String {
    let Some(url) = as_engine(owner_url) else {
        return owner_url.to_owned();
    };
    let Ok(config) = Config::from_url(&url) else {
        return owner_url.to_owned();
    };
    match Store::connect(config.with_pool_size(1)).await {
        Ok(_) => url,
        Err(_) => owner_url.to_owned(),
    }
}

fn as_engine(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    Some(format!("{scheme}://aegis_engine@{host}{path}"))
}

/// Says in the URL that no pooler is between, unless it says something itself.
fn named(url: &str) -> String {
    match url.split_once('?') {
        Some((_, query)) if query.contains("statements=") => url.to_owned(),
        Some(_) => format!("{url}&statements=named"),
        None => format!("{url}?statements=named"),
    }
}

/// Starts a payment service; answers where it listens.
pub(super) async fn payments(
    program: &Program,
    name: &str,
    run: &Run,
    record: &Path,
    options: &DemoOptions,
) -> Result<(Process, String), DemoError> {
    let seed = options.seed.to_string();
    let mut arguments: Vec<OsString> = [
        "demo", "payments", "--run", &run.id, "--seed", &seed, "--record",
    ]
    .map(OsString::from)
    .to_vec();
    arguments.push(record.as_os_str().to_owned());
    if options.doubles {
        arguments.push("--doubles".into());
    }
    let mut process = Process::start(program, name, &arguments).await?;
    let ready = process
        .line(|line| serde_json::from_str::<Ready>(line).ok())
        .await
        .map_err(|why| program.not_started(name, &why))?;
    Ok((process, ready.url))
}

/// Submits the orders: each id once as a batch, what repeats an id by itself.
pub(super) async fn submit(stage: &Stage<'_>) -> Result<(), DemoError> {
    let (first, repeats) = stage.options.orders.split_repeats();
    for refused in &stage.options.orders.refused {
        stage.tell(&DEMO, format!("{refused}; the other lines are taken"));
    }
    let bad = first
        .iter()
        .filter(|order| order.validate().is_err())
        .count();
    let tasks = first.iter().map(|order| task(stage, order)).collect();
    let submitted = stage.store.submit_batch(tasks).await?;
    stage.tell(
        &ENGINE,
        format!(
            "{} orders are accepted as tasks, in one batch. Each is validated, reserved, charged, paid out, notified, and \
             ends with a receipt; {bad} are bad on purpose",
            submitted.len()
        ),
    );
    for order in repeats {
        match stage.store.submit(task(stage, order)).await {
            Ok(known) if !known.is_new => {
                stage.tell(
                    &ENGINE,
                    format!(
                        "{} comes a second time: it is the task that it was",
                        order.order_id
                    ),
                );
            }
            Ok(_) => stage.tell(&ENGINE, format!("{} is accepted", order.order_id)),
            Err(error @ StoreError::KeyConflict { .. }) => {
                stage.tell(
                    &ENGINE,
                    format!(
                        "{} comes again with another content and is refused: {error}",
                        order.order_id
                    ),
                );
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn task(stage: &Stage<'_>, order: &Order) -> NewTask {
    NewTask {
        queue: stage.run.queue.clone(),
        tenant: stage.run.tenant.clone(),
        key: Some(order.order_id.clone()),
        policy: RetryPolicy {
            // The service is bad to one effect of one order three times at most, and a drain is never charged.
            max_failures: 25,
            backoff_initial_ms: 300,
            backoff_cap_ms: 2_000,
            ..RetryPolicy::default()
        },
        ..NewTask::new(KIND, serde_json::to_vec(order).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_role_takes_the_place_of_the_given_one() {
        for (given, engine) in [
            (
                "postgresql://postgres@/x?host=%2Ftmp",
                "postgresql://aegis_engine@/x?host=%2Ftmp",
            ),
            (
                "postgres://a:b@h:5433/x",
                "postgres://aegis_engine@h:5433/x",
            ),
            ("postgres://h", "postgres://aegis_engine@h"),
        ] {
            assert_eq!(as_engine(given).as_deref(), Some(engine));
        }
    }

    #[test]
    fn statements_are_named_unless_the_url_says_otherwise() {
        assert_eq!(named("postgres://h/x"), "postgres://h/x?statements=named");
        assert_eq!(
            named("postgres://h/x?a=b"),
            "postgres://h/x?a=b&statements=named"
        );
        assert_eq!(
            named("postgres://h/x?statements=unnamed"),
            "postgres://h/x?statements=unnamed"
        );
    }
}
