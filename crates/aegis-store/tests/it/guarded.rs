//! One call of each guarded statement, on any connection: for the truth table, and for its mutants.

use aegis_model::{Class, Held};
use aegis_store::generated::task;
use aegis_store::session::Session;
use tokio_postgres::Error;
use uuid::Uuid;

/// The guarded statements of this test; compared with the files.
pub(crate) const CASES: [&str; 7] = [
    "task/checkpoint",
    "task/complete",
    "task/dispatch",
    "task/fail",
    "task/release",
    "task/settle",
    "task/step",
];

/// How `task/dispatch` is called; the other statements do not look at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) class: Class,
    pub(crate) probed: bool,
}

/// A new blind operation.
pub(crate) const BLIND: Call = Call {
    class: Class::Blind,
    probed: false,
};

/// Writes by the named statement for all of `held`; answers the tasks that were written.
pub(crate) async fn write<S: Session + ?Sized>(
    client: &S,
    statement: &str,
    held: &[Held],
    lane: i32,
) -> Result<Vec<Uuid>, Error> {
    write_as(client, statement, held, lane, BLIND).await
}

/// The same with a say in the dispatch.
pub(crate) async fn write_as<S: Session + ?Sized>(
    client: &S,
    statement: &str,
    held: &[Held],
    lane: i32,
    call: Call,
) -> Result<Vec<Uuid>, Error> {
    let ids: Vec<Uuid> = held.iter().map(|one| one.task).collect();
    let claim_ids: Vec<Uuid> = held.iter().map(|one| one.claim_id).collect();
    let epochs: Vec<i64> = held.iter().map(|one| one.epoch).collect();
    let revs: Vec<i64> = held.iter().map(|one| one.rev).collect();
    let worker = held[0].owner;
    let many = held.len();
    macro_rules! params {
        ($params:ident { $($rest:tt)* }) => {
            &task::$params { ids: &ids, claim_ids: &claim_ids, epochs: &epochs, revs: &revs, worker, $($rest)* }
        };
    }
    match statement {
        "task/checkpoint" => task::checkpoint(
            client,
            params!(CheckpointParams {
                protocol: 1,
                content_type: 0,
                data: b"{}",
                lane
            }),
        )
        .await
        .map(|row| row.map(|row| row.id).into_iter().collect()),
        "task/step" => task::step(
            client,
            params!(StepParams {
                name: "s",
                key: "k",
                protocol: 1,
                content_type: 0,
                value: b"{}",
                lane
            }),
        )
        .await
        .map(|row| row.map(|row| row.id).into_iter().collect()),
        "task/dispatch" => task::dispatch(
            client,
            params!(DispatchParams {
                operation: "new",
                name: "n",
                key: "k",
                class: call.class.number(),
                protocol: 1,
                timeout_ms: 1,
                quiet_ms: 1,
                release: "r",
                key_valid_ms: None,
                fingerprint: b"f",
                request: None,
                probed: call.probed,
                lane
            }),
        )
        .await
        .map(|row| {
            row.filter(|row| row.dispatches.is_some())
                .map(|row| row.id)
                .into_iter()
                .collect()
        }),
        "task/settle" => task::settle(
            client,
            params!(SettleParams {
                state: 2,
                result: Some(b"{}"),
                protocol: 1,
                content_type: 0,
                note: None,
                operation: "fenced",
                lane
            }),
        )
        .await
        .map(|row| row.map(|row| row.id).into_iter().collect()),
        "task/complete" => task::complete(
            client,
            params!(CompleteParams {
                content_type: 0,
                digests: &vec![1; many],
                results: &vec![None; many]
            }),
        )
        .await
        .map(|rows| rows.into_iter().map(|row| row.id).collect()),
        "task/fail" => task::fail(
            client,
            params!(FailParams {
                codes: &vec!["c"; many],
                messages: &vec!["m"; many],
                retryable: &vec![true; many],
                details: &vec![None; many],
                retry_after_ms: &vec![None; many],
                digests: &vec![1; many]
            }),
        )
        .await
        .map(|rows| rows.into_iter().map(|row| row.id).collect()),
        "task/release" => task::release(
            client,
            params!(ReleaseParams {
                unknown_operations: &["fenced"],
                note: Some("doubted"),
                cause: "unknown",
                run_ats: &vec![None; many],
                run_after_ms: &vec![None; many],
                detail: None
            }),
        )
        .await
        .map(|rows| rows.into_iter().map(|row| row.id).collect()),
        other => panic!("no case for {other}"),
    }
}
