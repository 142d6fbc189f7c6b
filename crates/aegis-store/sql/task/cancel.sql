-- Asks for a task's end; see `aegis.cancel_task`.
--
-- lock: the task row; beside an open operation also its row and the stored outcome's
-- index: task_pkey
-- fence: none: an override; one that ends an execution bumps the epoch when kill_after has passed
-- returns: one
SELECT aegis.cancel_task(:id::uuid, :actor::text, :reason::text) AS answer
