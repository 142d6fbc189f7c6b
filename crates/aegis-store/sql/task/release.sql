-- Gives executions up that have stopped locally, without charging an attempt: snooze, drain (hand back), cancelled, or
-- unknown (an operation needs a person). `unknown_operations` are turned unknown first. A row not answered was fenced.
-- `run_after_ms` counts from the database's now: a worker's wall clock decides nothing.
--
-- lock: task rows FOR NO KEY UPDATE, in id order; beside an open operation also its row and the stored outcome's
-- index: task_pkey, operation_pkey
-- fence: guard.sql
-- returns: many
WITH
-- include: guard.sql
,
o AS MATERIALIZED (
    SELECT count(*) AS n FROM l, g, LATERAL aegis.doubt_operations(l.id, :unknown_operations::text[], :note?::text) x WHERE g.ok)
SELECT l.id, aegis.end_attempt(l.id, :cause::text, coalesce((:run_ats[?]::timestamptz[])[l.n],
    clock_timestamp() + (:run_after_ms[?]::int8[])[l.n] * interval '1 ms'), NULL, :detail?::jsonb) AS after
FROM l, g, o WHERE g.ok AND o.n >= 0
