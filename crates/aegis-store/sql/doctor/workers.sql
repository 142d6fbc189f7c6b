-- Living workers with what their beats say, and what the database says that they hold. `ready`: there is work that they may take.
--
-- lock: none
-- index: task_owner, task_ready
-- fence: none: a read
-- returns: many
-- nullable: claim_still_s, progress_still_s, clock_ahead_ms
SELECT w.id, w.name, w.host, w.pid, w.release, w.state, w.slots, l.ttl_ms, l.beat, l.executing,
    extract(epoch FROM clock_timestamp() - l.beat_at)::float8 AS beat_s, extract(epoch FROM clock_timestamp() - w.registered_at)::float8 AS age_s,
    extract(epoch FROM clock_timestamp() - l.claim_moved_at)::float8 AS claim_still_s,
    extract(epoch FROM clock_timestamp() - l.progress_moved_at)::float8 AS progress_still_s, l.clock_ahead_ms, cardinality(l.absent) AS absent,
    (SELECT count(*) FROM (SELECT FROM aegis.task t WHERE t.owner = w.id AND t.state = 2 LIMIT 100001) x) AS running,
    w.state = 0 AND EXISTS (SELECT FROM aegis.lanes_of(w.id) n, LATERAL (
        SELECT FROM aegis.task t WHERE t.lane = n.lane AND t.state = 1 AND t.crashes = 0 ORDER BY t.lane, t.tenant, t.ord LIMIT 1) x) AS ready
FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
WHERE w.state <= 1 AND l.lease_until > clock_timestamp() ORDER BY w.registered_at LIMIT 10000
