-- Task ids between two bounds, for a unique prefix. At most two answers: one is unique.
--
-- lock: none
-- index: task_pkey, task_history_pkey, parked_pkey
-- fence: none: a read
-- returns: many
SELECT a.id FROM aegis.task_any a WHERE a.id >= :low::uuid AND a.id <= :high::uuid LIMIT 2
