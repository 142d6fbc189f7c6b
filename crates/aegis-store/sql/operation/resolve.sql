-- Resolves an unknown operation with evidence; see `aegis.resolve_operation`.
--
-- lock: the task row, then the operation row
-- index: task_pkey, operation_pkey
-- fence: none: an override of a task that waits for a person
-- returns: one
SELECT aegis.resolve_operation(:task::uuid, :id::text, :resolution::int2, :result?::bytea, :actor::text, :evidence::text) AS answer
