-- May a release, a build or a worker go: would a stored task lose its last reader? Lanes that incarnations of it read and no
-- other accepting worker with a living lease, of a release that is not paused, does, with the tasks that stand there, live and parked. `risky`: what its workers
-- may still write into lanes that the others read today. One statement, one snapshot.
--
-- lock: none
-- index: task_ready, task_suspect, task_resting, task_owner, parked_lane
-- fence: none: a read
-- returns: one
-- nullable: lanes, tasks, risky
WITH RECURSIVE
leaver AS MATERIALIZED (
    SELECT w.id, l.lease_until > clock_timestamp() AND w.state <= 1 AS living,
        w.state = 0 AND NOT EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'release' AND p.value = w.release) AS claims
    FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
    WHERE w.id = :worker?::uuid OR w.release = :release?::text OR w.build = :build?::text),
keeper AS MATERIALIZED (
    SELECT w.id FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
    WHERE w.state = 0 AND l.lease_until > clock_timestamp() AND NOT EXISTS (SELECT FROM leaver v WHERE v.id = w.id)
        AND NOT EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'release' AND p.value = w.release)),
reads AS MATERIALIZED (
    SELECT DISTINCT c.queue, c.kind, c.reads_min, c.reads_max FROM keeper k JOIN aegis.worker_capability c ON c.worker = k.id),
theirs AS MATERIALIZED (
    SELECT c.queue, c.kind, c.reads_min, c.reads_max, max(c.writes) FILTER (WHERE v.living AND v.claims) AS may_write,
        max(c.writes) FILTER (WHERE v.living) AS held_write
    FROM leaver v JOIN aegis.worker_capability c ON c.worker = v.id GROUP BY 1, 2, 3, 4),
-- include: lane_running.sql
,
suspect AS MATERIALIZED (
    SELECT n.id, n.queue, n.kind, n.lo, n.hi, NOT EXISTS (
        SELECT FROM reads r WHERE r.queue = n.queue AND r.kind = n.kind AND r.reads_min <= n.lo AND n.hi <= r.reads_max) AS lost
    FROM aegis.lane n JOIN theirs h ON h.queue = n.queue AND h.kind = n.kind AND h.reads_min <= n.lo AND n.hi <= h.reads_max
    WHERE NOT EXISTS (SELECT FROM reads r WHERE r.queue = n.queue AND r.kind = n.kind AND r.reads_min <= n.lo
        AND greatest(n.hi, h.may_write, CASE WHEN n.id IN (SELECT r.lane FROM run r) THEN h.held_write END) <= r.reads_max)
    GROUP BY 1, 2, 3, 4, 5),
-- include: lane_tasks.sql

SELECT clock_timestamp() AS at, EXISTS (SELECT FROM aegis.open_lineage()) AS open, (SELECT count(*) FROM leaver) AS known,
    (SELECT count(*) FROM leaver v WHERE v.living) AS living, l.lanes, (SELECT count(*) FROM busy b WHERE b.lost) AS busy_lanes,
    (SELECT coalesce(sum(c.n), 0)::int8 FROM counted c) AS found, t.tasks,
    (SELECT jsonb_agg(jsonb_build_object('queue', b.queue, 'kind', b.kind, 'lo', b.lo, 'hi', b.hi)) FROM busy b WHERE NOT b.lost) AS risky
FROM lanes l, told t
