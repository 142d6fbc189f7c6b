-- Running rows whose owner is not live or whose lineage is not the database's, with how long ago their lease ended. A bounded count.
--
-- lock: none
-- index: task_owner
-- fence: none: a read
-- returns: one
-- nullable: oldest_s, example
SELECT count(*) AS tasks, max(x.late_s) AS oldest_s, (array_agg(x.id ORDER BY x.late_s DESC))[1] AS example FROM (
    SELECT t.id, extract(epoch FROM clock_timestamp() - coalesce(CASE WHEN l.lease_until < clock_timestamp() THEN l.lease_until END, w.ended_at, t.claimed_at))::float8 AS late_s
    FROM aegis.task t LEFT JOIN aegis.worker w ON w.id = t.owner LEFT JOIN aegis.worker_lease l ON l.worker = t.owner
        LEFT JOIN aegis.lineage() i ON true
    WHERE t.state = 2 AND (w.id IS NULL OR w.state > 1 OR l.lease_until <= clock_timestamp()
        OR t.floor IS DISTINCT FROM i.floor OR t.timeline IS DISTINCT FROM i.timeline)
    LIMIT 10001) x
