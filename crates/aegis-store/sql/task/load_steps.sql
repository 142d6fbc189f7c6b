-- All memoised steps of a task.
--
-- lock: none
-- index: step_pkey
-- fence: none: a read
-- returns: many
SELECT name, key, protocol, content_type, value FROM aegis.step WHERE task = :id::uuid
