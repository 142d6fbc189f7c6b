-- An idle worker's second: due housekeeping, and whether there is something to claim for it.
--
-- lock: housekeeping rows SKIP LOCKED, each with what its job locks (task, gate and lease rows), and the database row after an outage
-- index: task_ready, task_suspect, task_scheduled, task_owner, task_deadline, idempotency_expiry
-- fence: none: idempotent jobs that any process may run
-- returns: one
-- nullable: worker_state
SELECT claimable, suspects, duty, worker_state, reaped, next_due_ms FROM aegis.tick(:worker::uuid)
