-- Lanes: what stands there by state, since when the oldest ready task waits, who reads them, what pauses them. Readers are
-- accepting workers with a living lease; those of a paused release are none.
--
-- lock: none
-- index: none: it counts what is live, by one scan
-- fence: none: a read
-- returns: many
-- nullable: oldest_ready_at
WITH stored AS MATERIALIZED (
    SELECT t.lane, count(*) FILTER (WHERE t.state = 0) AS scheduled, count(*) FILTER (WHERE t.state = 1) AS ready,
        count(*) FILTER (WHERE t.state = 2) AS running, count(*) FILTER (WHERE t.state = 3) AS waiting,
        count(*) FILTER (WHERE t.state = 4) AS reconciling,
        -- The moment it became ready, since `ord` is that moment minus a head start of 60 s a level below 9.
        min(t.ord + (9 - t.priority) * 60000000::int8) FILTER (WHERE t.state = 1) AS oldest_us
    FROM aegis.task t GROUP BY t.lane),
given_up AS MATERIALIZED (SELECT p.lane, count(*) AS parked FROM aegis.parked p GROUP BY p.lane)
SELECT n.id, n.queue, n.kind, n.lo, n.hi, coalesce(s.ready, 0) AS ready, coalesce(s.scheduled, 0) AS scheduled,
    coalesce(s.running, 0) AS running, coalesce(s.waiting, 0) AS waiting, coalesce(s.reconciling, 0) AS reconciling,
    coalesce(g.parked, 0) AS parked, to_timestamp(s.oldest_us / 1000000.0) AS oldest_ready_at,
    (SELECT count(*) FROM aegis.worker_capability c JOIN aegis.worker w ON w.id = c.worker JOIN aegis.worker_lease l ON l.worker = w.id
     WHERE c.queue = n.queue AND c.kind = n.kind AND c.reads_min <= n.lo AND n.hi <= c.reads_max
         AND w.state = 0 AND l.lease_until > clock_timestamp()
         AND NOT EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'release' AND p.value = w.release)) AS readers,
    ARRAY(SELECT p.scope || ' ' || p.value || ' by ' || p.who || ': ' || p.why FROM aegis.pause p
          WHERE (p.scope = 'queue' AND p.value = n.queue) OR (p.scope = 'kind' AND p.value = n.kind) ORDER BY p.scope DESC) AS paused
FROM aegis.lane n LEFT JOIN stored s ON s.lane = n.id LEFT JOIN given_up g ON g.lane = n.id
WHERE (:queue?::text IS NULL OR n.queue = :queue?::text) AND (:kind?::text IS NULL OR n.kind = :kind?::text)
    AND (:all::boolean OR s.lane IS NOT NULL OR g.lane IS NOT NULL)
ORDER BY n.queue, n.kind, n.lo, n.hi LIMIT :limit::int8
