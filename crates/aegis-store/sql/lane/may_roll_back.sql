-- May we go back to an older release: is there a stored task that it could not read? The readers afterwards are the target (what
-- the newest incarnations of release `to` read, and the ranges that were given) and the accepting workers that are not replaced.
-- Replaced are those of release `from`, or, without one, all of another release that serve a (queue, kind) of the target. Looked
-- at are the lanes of what target and replaced ones serve. `risky`: what replaced workers may still write. One snapshot.
--
-- lock: none
-- index: task_ready, task_suspect, task_resting, task_owner, parked_lane
-- fence: none: a read
-- returns: one
-- nullable: lanes, tasks, risky
WITH RECURSIVE
target AS MATERIALIZED (
    SELECT u.queue, u.kind, u.reads_min, u.reads_max
    FROM unnest(:queues::text[], :kinds::text[], :reads_min::int4[], :reads_max::int4[]) AS u (queue, kind, reads_min, reads_max)
    UNION
    (SELECT DISTINCT ON (c.queue, c.kind) c.queue, c.kind, c.reads_min, c.reads_max
     FROM aegis.worker w JOIN aegis.worker_capability c ON c.worker = w.id
     WHERE w.release = :to?::text ORDER BY c.queue, c.kind, w.registered_at DESC)),
leaver AS MATERIALIZED (
    SELECT w.id, w.state = 0 AND NOT EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'release' AND p.value = w.release) AS claims
    FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
    WHERE w.state <= 1 AND l.lease_until > clock_timestamp() AND w.release IS DISTINCT FROM :to?::text
      AND CASE WHEN :from?::text IS NOT NULL THEN w.release = :from?::text ELSE EXISTS (
          SELECT FROM aegis.worker_capability c JOIN target g ON g.queue = c.queue AND g.kind = c.kind WHERE c.worker = w.id) END),
keeper AS MATERIALIZED (
    SELECT w.id FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
    WHERE w.state = 0 AND l.lease_until > clock_timestamp() AND NOT EXISTS (SELECT FROM leaver v WHERE v.id = w.id)),
reads AS MATERIALIZED (
    SELECT g.queue, g.kind, g.reads_min, g.reads_max FROM target g
    UNION SELECT c.queue, c.kind, c.reads_min, c.reads_max FROM keeper k JOIN aegis.worker_capability c ON c.worker = k.id),
theirs AS MATERIALIZED (
    SELECT c.queue, c.kind, max(c.writes) FILTER (WHERE v.claims) AS may_write,
        max(c.writes) AS held_write
    FROM leaver v JOIN aegis.worker_capability c ON c.worker = v.id GROUP BY 1, 2),
scope AS MATERIALIZED (
    SELECT g.queue, g.kind FROM target g UNION SELECT h.queue, h.kind FROM theirs h
    UNION SELECT c.queue, c.kind FROM aegis.worker w JOIN aegis.worker_capability c ON c.worker = w.id WHERE w.release = :from?::text),
-- include: lane_running.sql
,
suspect AS MATERIALIZED (
    SELECT n.id, n.queue, n.kind, n.lo, n.hi, NOT EXISTS (
        SELECT FROM reads r WHERE r.queue = n.queue AND r.kind = n.kind AND r.reads_min <= n.lo AND n.hi <= r.reads_max) AS lost
    FROM aegis.lane n JOIN scope o ON o.queue = n.queue AND o.kind = n.kind
    LEFT JOIN theirs h ON h.queue = n.queue AND h.kind = n.kind
    WHERE NOT EXISTS (SELECT FROM reads r WHERE r.queue = n.queue AND r.kind = n.kind AND r.reads_min <= n.lo
        AND greatest(n.hi, h.may_write, CASE WHEN n.id IN (SELECT r.lane FROM run r) THEN h.held_write END) <= r.reads_max)),
-- include: lane_tasks.sql

SELECT clock_timestamp() AS at, EXISTS (SELECT FROM aegis.open_lineage()) AS open, (SELECT count(*) FROM target) AS known,
    (SELECT count(*) FROM leaver) AS living, l.lanes, (SELECT count(*) FROM busy b WHERE b.lost) AS busy_lanes,
    (SELECT coalesce(sum(c.n), 0)::int8 FROM counted c) AS found, t.tasks,
    (SELECT jsonb_agg(jsonb_build_object('queue', b.queue, 'kind', b.kind, 'lo', b.lo, 'hi', b.hi)) FROM busy b WHERE NOT b.lost) AS risky
FROM lanes l, told t
