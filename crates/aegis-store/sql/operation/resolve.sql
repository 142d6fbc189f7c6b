-- Resolves an unknown operation with evidence; see `aegis.decide_operation`.
--
-- lock: the task row, then the operation row
-- index: task_pkey, operation_pkey
-- fence: none: an override of a task that waits for a person
-- returns: one
SELECT d.answer, d.detail
FROM aegis.decide_operation(:task::uuid, :id::text, :resolution::int2, :result?::bytea, :actor::text, :evidence::text, :early::boolean) d
