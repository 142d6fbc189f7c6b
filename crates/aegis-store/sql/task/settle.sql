-- The result of a dispatched operation: 2 succeeded or 3 failed. Closes it and counts it down on its task.
--
-- lock: the task row FOR NO KEY UPDATE, then the operation row
-- index: task_pkey, operation_pkey
-- fence: guard.sql
-- returns: optional
WITH
-- include: guard.sql
,
o AS (
    UPDATE aegis.operation o SET state = :state::int2, result = :result?::bytea, protocol = greatest(o.protocol, :protocol::int4),
        content_type = :content_type::int2, finished_at = clock_timestamp(), quiet_until = NULL, note = coalesce(:note?::text, o.note)
    FROM g WHERE g.ok AND o.task = ANY (ARRAY(SELECT l.id FROM l)) AND o.id = :operation::text AND o.state = 1
    RETURNING o.task)
UPDATE aegis.task t SET rev = t.rev + 1, open_ops = t.open_ops - 1, lane = :lane::int4
FROM g WHERE g.ok AND t.id = ANY (ARRAY(SELECT o.task FROM o))
RETURNING t.id, t.rev
