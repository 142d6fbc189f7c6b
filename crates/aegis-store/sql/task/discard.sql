-- Gives a parked task up for good; see `aegis.discard_task`.
--
-- lock: the parked row
-- index: parked_pkey
-- fence: none: an override of a task that nobody executes
-- returns: one
SELECT aegis.discard_task(:id::uuid, :actor::text, :reason::text) AS done
