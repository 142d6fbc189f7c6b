-- Saves a claim's checkpoint. A newer protocol moves the task to its lane in the same statement.
--
-- lock: the task row FOR NO KEY UPDATE
-- index: task_pkey, checkpoint_pkey
-- fence: guard.sql
-- returns: optional
WITH
-- include: guard.sql
,
c AS (
    INSERT INTO aegis.checkpoint (task, tenant, protocol, content_type, seq, epoch, written_at, data)
    SELECT l.id, l.tenant, :protocol::int4, :content_type::int2, 1, l.epoch, clock_timestamp(), :data::bytea FROM l, g WHERE g.ok
    ON CONFLICT (task) DO UPDATE SET protocol = excluded.protocol, content_type = excluded.content_type, seq = checkpoint.seq + 1,
        epoch = excluded.epoch, written_at = excluded.written_at, data = excluded.data)
UPDATE aegis.task t SET rev = t.rev + 1, parts = true, lane = :lane::int4
FROM g WHERE g.ok AND t.id = ANY (ARRAY(SELECT l.id FROM l))
RETURNING t.id, t.rev
