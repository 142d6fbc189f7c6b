-- Does the claim at this epoch still hold the task?
SELECT EXISTS (SELECT FROM aegis.task t WHERE t.id = $1 AND t.epoch = $2 AND t.owner IS NOT NULL)
