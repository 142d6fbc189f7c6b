-- Records a refused write, with both epochs, so that an auditor can count it.
--
-- lock: none
-- index: task_pkey, parked_pkey, task_history_pkey
-- fence: none: an event about a write that did not happen
-- returns: count
INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, owner, detail)
SELECT a.id, clock_timestamp(), a.tenant, :epoch::int8, 'fenced', :worker::uuid,
    jsonb_build_object('verb', :verb::text, 'reason', :reason::text, 'current_epoch', :current_epoch?::int8)
FROM aegis.task_any a WHERE a.id = :id::uuid LIMIT 1
