//! Single statements of the store on a connection that the test holds, to be interleaved.

use aegis_model::{Held, OperationState};
use aegis_store::generated::{client, operation, task, worker};
use aegis_testkit::{Pending, StepConn};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::Worker;

/// Starts a call on a connection.
pub(crate) fn start<T, F>(
    conn: &StepConn,
    what: &str,
    call: impl FnOnce(std::sync::Arc<Client>) -> F,
) -> Pending<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    conn.spawn_with(what, call)
}

/// Starts to complete one claim; true when it was written.
pub(crate) fn complete(conn: &StepConn, held: Held) -> Pending<bool> {
    start(conn, "complete", async move |client| {
        let params = task::CompleteParams {
            ids: &[held.task],
            claim_ids: &[held.claim_id],
            epochs: &[held.epoch],
            revs: &[held.rev],
            worker: held.owner,
            content_type: 0,
            digests: &[1],
            results: &[None],
        };
        !task::complete(&*client, &params).await.unwrap().is_empty()
    })
}

/// Starts to store an operation's good result; true when it was written.
pub(crate) fn settle(conn: &StepConn, held: Held, lane: i32, name: &str) -> Pending<bool> {
    let name = name.to_owned();
    start(conn, "settle", async move |client| {
        let params = task::SettleParams {
            ids: &[held.task],
            claim_ids: &[held.claim_id],
            epochs: &[held.epoch],
            revs: &[held.rev],
            worker: held.owner,
            state: OperationState::Succeeded.number(),
            result: None,
            protocol: 1,
            content_type: 0,
            note: None,
            operation: &name,
            lane,
        };
        task::settle(&*client, &params).await.unwrap().is_some()
    })
}

/// Starts an acquire call of all of a worker's kinds; the tasks that it claimed.
pub(crate) fn acquire(
    conn: &StepConn,
    by: &Worker,
    request: Uuid,
    count: usize,
) -> Pending<Vec<Uuid>> {
    let by = by.clone();
    start(conn, "acquire", async move |client| {
        let queues: Vec<&str> = by.kinds.iter().map(|(queue, _)| queue.as_str()).collect();
        let kinds: Vec<&str> = by.kinds.iter().map(|(_, kind)| kind.as_str()).collect();
        let free = vec![1000; kinds.len()];
        let params = task::AcquireParams {
            worker: by.id,
            request,
            queues: &queues,
            kinds: &kinds,
            kind_free: &free,
            queue_free: &free,
            cursor_lane: 0,
            cursor_tenant: 0,
            hint_lanes: &[],
            hint_tenants: &[],
            hint_ords: &[],
            n: i32::try_from(count).unwrap(),
        };
        let rows = task::acquire(&*client, count, &params).await.unwrap();
        rows.into_iter().filter_map(|row| row.id).collect()
    })
}

/// Starts a cancel request; its answer.
pub(crate) fn cancel(conn: &StepConn, id: Uuid) -> Pending<String> {
    start(conn, "cancel", async move |client| {
        let row = task::cancel(&*client, id, "ann", "no longer wanted").await;
        row.unwrap().answer
    })
}

/// Starts to drain a worker; true when its gate was open.
pub(crate) fn drain(conn: &StepConn, by: &Worker) -> Pending<bool> {
    let id = by.id;
    start(conn, "drain", async move |client| {
        worker::drain(&*client, id).await.unwrap() > 0
    })
}

/// Starts one beat; false when the lease is lost.
pub(crate) fn renew(conn: &StepConn, by: &Worker, beat: i64) -> Pending<bool> {
    let id = by.id;
    start(conn, "renew", async move |client| {
        worker::renew(&*client, id, beat, 0, 0, 0, jiff::Timestamp::now())
            .await
            .unwrap()
            .is_some()
    })
}

/// Starts to resolve an operation; the answer.
pub(crate) fn resolve(
    conn: &StepConn,
    id: Uuid,
    name: &str,
    resolution: aegis_model::Resolution,
) -> Pending<String> {
    let name = name.to_owned();
    start(conn, "resolve", async move |client| {
        let number = resolution.number();
        let row = operation::resolve(
            &*client,
            &operation::ResolveParams {
                task: id,
                id: &name,
                resolution: number,
                result: None,
                actor: "ann",
                evidence: "seen",
                early: true,
            },
        )
        .await;
        row.unwrap().answer
    })
}

/// Starts a read-back; where the task stands and the digest stored with it.
pub(crate) fn read_back(conn: &StepConn, id: Uuid) -> Pending<Option<(i16, Option<i64>)>> {
    start(conn, "read back", async move |client| {
        let row = task::read_back(&*client, id).await.unwrap();
        row.map(|row| (row.state, row.digest))
    })
}

/// Starts to reserve idempotency keys of tenant 1 in the order given; the ids minted for the new ones.
pub(crate) fn reserve(conn: &StepConn, keys: &[&str]) -> Pending<Vec<Uuid>> {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    start(conn, "reserve", async move |session| {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let many = keys.len();
        let params = client::ReserveKeysParams {
            content_type: 0,
            keep_ms: 60_000,
            tenants: &vec![1; many],
            kinds: &vec!["k"; many],
            keys: &keys,
            protocols: &vec![1; many],
            inputs: &vec![b"{}".as_slice(); many],
        };
        let rows = client::reserve_keys(&*session, &params).await.unwrap();
        rows.into_iter().map(|row| row.task).collect()
    })
}

/// Starts a function of the schema that answers one number.
pub(crate) fn number(conn: &StepConn, call: &str) -> Pending<i32> {
    let sql = format!("select {call}");
    start(conn, call, async move |client| {
        client.query_one(&sql, &[]).await.unwrap().get(0)
    })
}
