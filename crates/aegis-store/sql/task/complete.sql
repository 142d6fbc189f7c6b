-- Completes a group of tasks: each row is guarded and answered by itself. A row that is not answered was fenced.
-- `after` is the state afterwards: 5 succeeded; 4 or 1 when an operation is open and the outcome is stored as pending; for a
-- claim that only settled, what the stored outcome or the end of the attempt says. An input that stands in the row goes with it.
--
-- lock: task rows FOR NO KEY UPDATE, in id order; beside an open operation also its row and the stored outcome's
-- index: task_pkey
-- fence: guard.sql
-- returns: many
WITH
-- include: guard.sql
,
d AS (
    DELETE FROM aegis.task t USING g
    WHERE g.ok AND t.id = ANY (ARRAY(SELECT l.id FROM l WHERE l.open_ops = 0 AND l.pending IS NULL))),
h AS (
    INSERT INTO aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, content_type, epoch, rev,
        digest, owner, claim_id, claimed_at, finished_at, result, input_protocol, input, trace)
    SELECT l.id, l.lane, l.tenant, 5, l.failures, l.interruptions, l.crashes, l.snoozes, l.open_ops, :content_type::int2, l.epoch, l.rev,
        (:digests::int8[])[l.n], l.owner, l.claim_id, l.claimed_at, clock_timestamp(), (:results[?]::bytea[])[l.n],
        l.input_protocol, l.input, l.trace
    FROM l, g WHERE g.ok AND l.open_ops = 0 AND l.pending IS NULL
    RETURNING id)
SELECT h.id, 5::int2 AS after FROM h
UNION ALL
SELECT l.id, CASE WHEN l.pending IS NULL
    THEN aegis.conclude(l.id, 5::int2, NULL, (:results[?]::bytea[])[l.n], :content_type::int2, (:digests::int8[])[l.n])
    ELSE aegis.end_attempt(l.id, 'settled', clock_timestamp() + interval '5 s') END AS after
FROM l, g WHERE g.ok AND (l.open_ops > 0 OR l.pending IS NOT NULL)
