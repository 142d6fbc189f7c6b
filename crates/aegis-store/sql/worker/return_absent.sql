-- Returns running rows of this worker that two beats did not name to their lanes (start deadline and acknowledgement in one).
--
-- lock: the lease row (what is absent), then task rows FOR NO KEY UPDATE SKIP LOCKED
-- index: task_owner, task_pkey
-- fence: none: it ends claims that nobody executes, as the reaper does, and bumps their epochs
-- returns: many
SELECT x AS id FROM aegis.return_absent(:worker::uuid, :held::uuid[], :start_ttl_ms::int8) x
