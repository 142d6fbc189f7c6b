-- What a worker shows of the database to whoever watches it: for each (queue, kind) that it serves the ready tasks of lanes
-- that it can read and of those that it cannot (at most 10,000 of a lane are counted), how long the next in line has waited
-- (of each tenant's next task, the one that became ready first); and for the whole database the operations that wait for a
-- person, the running rows whose owner's lease is over (at most 10,000 are looked at), and the days that partitions reach ahead.
--
-- lock: none
-- index: worker_capability_pkey, lane_queue_kind_lo_hi_key, task_ready, task_owner, operation_open
-- fence: none: a read
-- returns: many
-- nullable: next_waits_ms
WITH RECURSIVE n AS MATERIALIZED (
    SELECT c.queue, c.kind, l.id AS lane, c.reads_min <= l.lo AND l.hi <= c.reads_max AS readable
    FROM aegis.worker_capability c LEFT JOIN aegis.lane l ON l.queue = c.queue AND l.kind = c.kind
    WHERE c.worker = :worker::uuid),
h AS (
    SELECT n.lane, x.tenant, x.ready_us FROM n CROSS JOIN LATERAL (
        SELECT t.tenant, t.ord + (9 - t.priority) * 60000000::bigint AS ready_us FROM aegis.task t
        WHERE t.lane = n.lane AND t.state = 1 AND t.crashes = 0 ORDER BY t.tenant, t.ord LIMIT 1) x
    UNION ALL
    SELECT h.lane, x.tenant, x.ready_us FROM h CROSS JOIN LATERAL (
        SELECT t.tenant, t.ord + (9 - t.priority) * 60000000::bigint AS ready_us FROM aegis.task t
        WHERE t.lane = h.lane AND t.tenant > h.tenant AND t.state = 1 AND t.crashes = 0 ORDER BY t.tenant, t.ord LIMIT 1) x),
w AS MATERIALIZED (SELECT b.lane, min(b.ready_us) AS ready_us FROM (SELECT h.lane, h.ready_us FROM h LIMIT 10000) b GROUP BY b.lane),
r AS MATERIALIZED (
    SELECT n.queue, n.kind, n.readable, w.ready_us, (
        SELECT count(*) FROM (SELECT FROM aegis.task t WHERE t.lane = n.lane AND t.state = 1 AND t.crashes = 0 ORDER BY t.tenant, t.ord LIMIT 10000) y) AS ready
    FROM n LEFT JOIN w ON w.lane = n.lane),
d AS MATERIALIZED (
    SELECT (SELECT count(*) FROM aegis.operation o WHERE o.state = 4) AS unknown_operations,
        (SELECT count(*) FROM (SELECT t.owner FROM aegis.task t WHERE t.state = 2 LIMIT 10000) t
         WHERE NOT EXISTS (SELECT FROM aegis.worker k JOIN aegis.worker_lease e ON e.worker = k.id
                           WHERE k.id = t.owner AND k.state <= 1 AND e.lease_until > clock_timestamp())) AS running_without_lease,
        coalesce((SELECT max(to_date(right(c.relname, 8), 'YYYYMMDD')) FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid
                  WHERE i.inhparent = 'aegis.task_history'::regclass) - (clock_timestamp() AT TIME ZONE 'UTC')::date, 0) AS partition_days_ahead)
SELECT r.queue, r.kind, coalesce(sum(r.ready) FILTER (WHERE r.readable), 0)::int8 AS ready,
    coalesce(sum(r.ready) FILTER (WHERE NOT r.readable), 0)::int8 AS unreadable,
    ((date_part('epoch', clock_timestamp()) * 1000)::int8 - min(r.ready_us) / 1000)::int8 AS next_waits_ms,
    d.unknown_operations, d.running_without_lease, d.partition_days_ahead
FROM r CROSS JOIN d GROUP BY r.queue, r.kind, d.unknown_operations, d.running_without_lease, d.partition_days_ahead ORDER BY r.queue, r.kind
