-- Reports handler errors of a group: charged, kept, and retried or given up. A row that is not answered was fenced.
-- `after` is the state afterwards: 0 scheduled, 1 ready, 4 reconciling, 6 failed, 7 when it had been asked to stop, or what a
-- stored outcome says.
--
-- lock: task rows FOR NO KEY UPDATE, in id order; beside an open operation also its row and the stored outcome's
-- index: task_pkey
-- fence: guard.sql
-- returns: many
WITH
-- include: guard.sql
SELECT l.id, aegis.fail_attempt(l.id, (:codes::text[])[l.n], (:messages::text[])[l.n], (:retryable::boolean[])[l.n],
    (:details[?]::jsonb[])[l.n], (:retry_after_ms[?]::int8[])[l.n], (:digests::int8[])[l.n]) AS after
FROM l, g WHERE g.ok
