-- Closes the gate: no acquisition of this worker commits afterwards, since acquire locks the same row.
--
-- lock: the worker's gate row
-- index: worker_pkey
-- fence: none: an override, idempotent
-- returns: count
UPDATE aegis.worker SET state = 1, draining_at = clock_timestamp() WHERE id = :worker::uuid AND state = 0
