-- Which tasks are stranded: lanes with tasks, live or parked, that no accepting worker with a living lease reads. What still runs
-- there is held by draining or lost workers. `paused`: lanes that somebody reads and that are paused, which is something else.
--
-- lock: none
-- index: task_ready, task_suspect, task_resting, task_owner, parked_lane
-- fence: none: a read
-- returns: one
-- nullable: lanes, tasks, paused
WITH RECURSIVE
keeper AS MATERIALIZED (
    SELECT w.id, w.release FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
    WHERE w.state = 0 AND l.lease_until > clock_timestamp()),
reads AS MATERIALIZED (
    SELECT DISTINCT c.queue, c.kind, c.reads_min, c.reads_max, k.release FROM keeper k JOIN aegis.worker_capability c ON c.worker = k.id),
-- include: lane_running.sql
,
read_by AS MATERIALIZED (
    SELECT n.id, n.queue, n.kind, n.lo, n.hi, array_agg(DISTINCT r.release) FILTER (WHERE r.release IS NOT NULL) AS releases
    FROM aegis.lane n LEFT JOIN reads r ON r.queue = n.queue AND r.kind = n.kind AND r.reads_min <= n.lo AND n.hi <= r.reads_max
    GROUP BY n.id, n.queue, n.kind, n.lo, n.hi),
pausing AS MATERIALIZED (
    SELECT b.id, p.scope || ' ' || p.value || ' by ' || p.who || ': ' || p.why AS what FROM read_by b JOIN aegis.pause p
        ON (p.scope = 'queue' AND p.value = b.queue) OR (p.scope = 'kind' AND p.value = b.kind)
    WHERE b.releases IS NOT NULL
    UNION ALL
    SELECT b.id, 'every release that reads it: ' || array_to_string(b.releases, ', ') FROM read_by b
    WHERE NOT EXISTS (SELECT FROM unnest(b.releases) x (release)
        WHERE NOT EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'release' AND p.value = x.release)) AND b.releases IS NOT NULL),
suspect AS MATERIALIZED (
    SELECT b.id, b.queue, b.kind, b.lo, b.hi, b.releases IS NULL AS lost FROM read_by b
    WHERE b.releases IS NULL OR EXISTS (SELECT FROM pausing p WHERE p.id = b.id)),
-- include: lane_tasks.sql

SELECT clock_timestamp() AS at, EXISTS (SELECT FROM aegis.open_lineage()) AS open, (SELECT count(*) FROM keeper) AS known,
    l.lanes, (SELECT count(*) FROM busy b WHERE b.lost) AS busy_lanes, (SELECT coalesce(sum(c.n), 0)::int8 FROM counted c) AS found, t.tasks,
    (SELECT jsonb_agg(jsonb_build_object('queue', b.queue, 'kind', b.kind, 'lo', b.lo, 'hi', b.hi,
        'why', (SELECT string_agg(p.what, '; ') FROM pausing p WHERE p.id = b.id))) FROM busy b WHERE NOT b.lost) AS paused
FROM lanes l, told t
