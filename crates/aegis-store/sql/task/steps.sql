-- The memoised steps of a task without their values, in order; at most `limit`.
--
-- lock: none
-- index: step_pkey
-- fence: none: a read
-- returns: many
SELECT name, key, protocol, epoch, written_at, octet_length(value) AS bytes FROM aegis.step WHERE task = :id::uuid
ORDER BY written_at, name, key LIMIT :limit::int8
