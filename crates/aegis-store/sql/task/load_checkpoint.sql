-- The latest checkpoint of a task.
--
-- lock: none
-- index: checkpoint_pkey
-- fence: none: a read
-- returns: optional
SELECT protocol, content_type, seq, epoch, data FROM aegis.checkpoint WHERE task = :id::uuid
