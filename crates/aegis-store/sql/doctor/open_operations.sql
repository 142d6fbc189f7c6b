-- Tasks whose count of open operations is not what the ledger says, and dispatched operations whose quiet period ended long ago
-- while their task does not run. Bounded.
--
-- lock: none
-- index: operation_open, task_reconciling, task_pkey
-- fence: none: a read
-- returns: one
-- nullable: overdue_s, orphan, wrong
SELECT count(*) FILTER (WHERE x.overdue_s > 0) AS overdue, max(x.overdue_s) AS overdue_s,
    (array_agg(x.id) FILTER (WHERE x.gone))[1] AS orphan, count(*) FILTER (WHERE x.gone) AS orphans,
    (SELECT (array_agg(y.id))[1] FROM (
        SELECT t.id FROM (SELECT r.id, r.open_ops FROM aegis.task r WHERE r.state = 4 ORDER BY r.id LIMIT 10000) t
        WHERE t.open_ops <> (SELECT count(*) FROM aegis.operation o WHERE o.task = t.id AND o.state IN (1, 4))
           OR NOT EXISTS (SELECT FROM aegis.operation o WHERE o.task = t.id AND o.state = 4) LIMIT 1) y) AS wrong
FROM (
    SELECT o.id, t.id IS NULL AS gone,
        CASE WHEN o.state = 1 AND t.state <> 2 THEN extract(epoch FROM clock_timestamp() - o.quiet_until)::float8 END AS overdue_s
    FROM (SELECT p.task, p.id, p.state, p.quiet_until FROM aegis.operation p WHERE p.state IN (1, 4) LIMIT 10001) o
    LEFT JOIN aegis.task t ON t.id = o.task) x
