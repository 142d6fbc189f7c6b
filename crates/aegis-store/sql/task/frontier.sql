-- How far back a page of `task/list` may look, so that no page reads more than so many rows of a table, whatever the filter:
-- the highest of the ids that stand `scan` rows behind `before`. Nothing when all that is left is less. What is found by an
-- index of its own (running, reconciling) is not counted.
--
-- lock: none
-- index: task_pkey, parked_pkey, task_history_pkey (of the days between the bounds)
-- fence: none: a read
-- returns: optional
SELECT x.id FROM (
    (SELECT t.id FROM aegis.task t WHERE :walk::boolean AND t.id < :before::uuid AND t.id >= :floor::uuid
     ORDER BY t.id DESC OFFSET :scan::int8 LIMIT 1)
    UNION ALL
    (SELECT p.id FROM aegis.parked p WHERE :in_parked::boolean AND p.id < :before::uuid AND p.id >= :floor::uuid
     ORDER BY p.id DESC OFFSET :scan::int8 LIMIT 1)
    UNION ALL
    (SELECT h.id FROM aegis.task_history h WHERE :in_history::boolean AND h.id < :before::uuid AND h.id >= :floor::uuid
     ORDER BY h.id DESC OFFSET :scan::int8 LIMIT 1)) x
ORDER BY x.id DESC LIMIT 1
