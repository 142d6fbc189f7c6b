-- Parked tasks that are live as well: one id in two places. Of the newest 10,000 parked ones.
--
-- lock: none
-- index: parked_pkey, task_pkey
-- fence: none: a read
-- returns: one
-- nullable: example
SELECT count(*) AS tasks, (array_agg(p.id))[1] AS example
FROM (SELECT k.id FROM aegis.parked k ORDER BY k.id DESC LIMIT 10000) p
WHERE EXISTS (SELECT FROM aegis.task t WHERE t.id = p.id)
