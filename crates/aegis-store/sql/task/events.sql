-- What happened to a task, in order.
--
-- lock: none
-- index: task_event_task
-- fence: none: a read
-- returns: many
-- nullable: owner, claimed_at, actor, detail
SELECT at, epoch, cause, owner, claimed_at, actor, detail FROM aegis.task_event WHERE task = :id::uuid ORDER BY at
