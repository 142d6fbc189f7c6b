-- Takes an unknown operation for a person; see `aegis.take_operation`.
--
-- lock: the task row, then the operation row
-- index: task_pkey, operation_pkey
-- fence: none: an override of a task that waits for a person
-- returns: one
SELECT aegis.take_operation(:task::uuid, :id::text, :actor::text) AS answer
