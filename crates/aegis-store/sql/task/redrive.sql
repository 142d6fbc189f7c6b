-- Sends a parked task again; see `aegis.redrive_task`.
--
-- lock: the parked row
-- index: parked_pkey
-- fence: none: an override of a task that nobody executes
-- returns: one
SELECT aegis.redrive_task(:id::uuid, :actor::text, :reason::text) AS done
