-- Memoises a step's value. A newer protocol moves the task to its lane in the same statement.
--
-- lock: the task row FOR NO KEY UPDATE
-- index: task_pkey, step_pkey
-- fence: guard.sql
-- returns: optional
WITH
-- include: guard.sql
,
s AS (
    INSERT INTO aegis.step (task, name, key, tenant, protocol, content_type, epoch, written_at, value)
    SELECT l.id, :name::text, :key::text, l.tenant, :protocol::int4, :content_type::int2, l.epoch, clock_timestamp(), :value::bytea
    FROM l, g WHERE g.ok)
UPDATE aegis.task t SET rev = t.rev + 1, parts = true, lane = :lane::int4
FROM g WHERE g.ok AND t.id = ANY (ARRAY(SELECT l.id FROM l))
RETURNING t.id, t.rev
