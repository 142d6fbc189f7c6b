-- Records a refused write, with both epochs, so that an auditor can count it.
--
-- lock: none
-- index: task_body_pkey
-- fence: none: an event about a write that did not happen
-- returns: count
INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, owner, detail)
SELECT b.id, clock_timestamp(), b.tenant, :epoch::int8, 'fenced', :worker::uuid,
    jsonb_build_object('verb', :verb::text, 'reason', :reason::text, 'current_epoch', :current_epoch?::int8)
FROM aegis.task_body b WHERE b.id = :id::uuid
