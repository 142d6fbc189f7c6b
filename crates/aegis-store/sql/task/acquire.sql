-- Claims up to `batch` ready tasks for a worker. Walks the (lane, tenant) heads behind the cursor, takes a weighted
-- share from each tenant and fills the rest from whoever has work, then locks exactly that many rows per head.
-- A repeated request finds its gate row used and claims nothing: `acquired` answers it. No row at all: the gate refused.
-- An open gate answers one row without a task and lane, so that the walk goes on from where it ended, and after a walk one
-- without a task for each head that it found, with the lowest `ord` there: the claimer hands these back with its next
-- calls, which then start at them. Else each claim beside a pinned snapshot would pass over all that was finished since.
-- What such hints do not fill is looked for by a full walk in the same call.
-- The input stands in the row itself, or in `task_body`.
--
-- lock: the worker's gate row FOR NO KEY UPDATE (acquire, drain and reaper meet there), then task rows SKIP LOCKED
-- index: task_ready (walk, probe and lock), task_pkey (write), task_body_pkey (inputs that stand there)
-- fence: none: it makes the claim; the gate row must be accepting and its lease alive, judged after its lock
-- returns: many
-- nullable: id, lane, tenant, ord, epoch, rev, floor, timeline, failures, interruptions, crashes, snoozes, parts, pending, cancel_cause, protocol, content_type, input, trace
-- batch: 1, 10, 100, 500
WITH RECURSIVE
w AS MATERIALIZED (
    SELECT id FROM aegis.worker
    WHERE id = :worker::uuid AND state = 0 AND last_request IS DISTINCT FROM :request::uuid FOR NO KEY UPDATE),
g AS MATERIALIZED (SELECT aegis.lease_live(:worker::uuid) AS ok FROM (SELECT count(*) AS n FROM w) x WHERE x.n > 0),
i AS MATERIALIZED (SELECT floor, timeline FROM aegis.open_lineage()),
m AS (UPDATE aegis.worker SET last_request = :request::uuid FROM g WHERE g.ok AND id = ANY (ARRAY(SELECT w.id FROM w))),
cap AS MATERIALIZED (
    SELECT n.lane, f.n AS kind_no, dense_rank() OVER (ORDER BY n.queue) AS queue_no, f.kind_free, f.queue_free
    FROM g, unnest(:queues::text[], :kinds::text[], :kind_free::int4[], :queue_free::int4[])
        WITH ORDINALITY AS f (queue, kind, kind_free, queue_free, n)
    JOIN aegis.lanes_of(:worker::uuid) n ON n.queue = f.queue AND n.kind = f.kind
    WHERE g.ok AND f.kind_free > 0 AND f.queue_free > 0),
-- The circle of lanes, from behind the cursor round to the cursor again, as arrays so that a step costs one probe.
ring AS MATERIALIZED (
    SELECT array_agg(s.lane ORDER BY s.turn, s.lane) AS lanes, array_agg(s.above ORDER BY s.turn, s.lane) AS aboves,
        array_agg(s.upto ORDER BY s.turn, s.lane) AS uptos
    FROM (SELECT CASE WHEN lane >= :cursor_lane::int4 THEN 0 ELSE 1 END AS turn, lane,
              CASE WHEN lane = :cursor_lane::int4 THEN :cursor_tenant::int4 ELSE 0 END AS above, 2147483647 AS upto FROM cap
          UNION ALL
          SELECT 2, lane, 0, :cursor_tenant::int4 FROM cap WHERE lane = :cursor_lane::int4) s),
-- Paused tenants are passed over here, never scanned through, and take no place among the heads.
paused AS MATERIALIZED (
    SELECT coalesce(array_agg(e.id), '{}') AS tenants FROM aegis.pause p JOIN aegis.tenant e ON e.name = p.value WHERE p.scope = 'tenant'),
hint AS MATERIALIZED (
    SELECT u.lane, u.tenant, u.ord FROM unnest(:hint_lanes::int4[], :hint_tenants::int4[], :hint_ords::int8[]) AS u (lane, tenant, ord)
    JOIN cap c ON c.lane = u.lane, paused x WHERE u.tenant <> ALL (x.tenants)),
hinted AS MATERIALIZED (
    SELECT count(*) >= least(:n::int4, :batch!) AS enough FROM (
        SELECT FROM hint h, LATERAL (
            SELECT FROM aegis.task t WHERE t.lane = h.lane AND t.tenant = h.tenant AND t.state = 1 AND t.crashes = 0 AND t.ord >= h.ord
            ORDER BY t.ord LIMIT :batch!) x LIMIT :batch!) y),
walk AS (
    SELECT CASE WHEN h.enough THEN 2147483647 ELSE 1 END AS at, 0 AS lane, NULL::int4 AS tenant, 0 AS probes, 0 AS heads, NULL::int4 AS seen FROM hinted h
    UNION ALL
    SELECT CASE WHEN h.tenant IS NULL THEN walk.at + 1 ELSE walk.at END, r.lanes[walk.at], h.tenant, walk.probes + 1,
        walk.heads + (h.tenant IS NOT NULL AND h.tenant <> ALL (x.tenants))::int, h.tenant
    FROM walk, paused x, ring r LEFT JOIN LATERAL (
        SELECT t.tenant FROM aegis.task t
        WHERE t.lane = r.lanes[walk.at] AND t.state = 1 AND t.crashes = 0
          AND t.tenant > coalesce(walk.seen, r.aboves[walk.at]) AND t.tenant <= r.uptos[walk.at]
        ORDER BY t.tenant LIMIT 1) h ON true
    WHERE walk.at <= cardinality(r.lanes) AND walk.probes < 256 AND walk.heads < 32),
-- What a tenant is entitled to is one share, in however many lanes it waits.
head AS MATERIALIZED (
    SELECT v.lane, v.tenant, v.ord, e.weight, count(*) OVER (PARTITION BY v.tenant) AS lanes FROM (
        SELECT walk.lane, walk.tenant, -9223372036854775807 AS ord FROM walk, paused x WHERE walk.tenant <> ALL (x.tenants)
        UNION ALL SELECT h.lane, h.tenant, h.ord FROM hint h WHERE (SELECT enough FROM hinted)) v
    JOIN aegis.tenant e ON e.id = v.tenant),
entitled AS MATERIALIZED (
    SELECT v.tenant, :n::int4 * v.weight / (sum(v.weight) OVER ())::float8 AS share FROM (SELECT DISTINCT tenant, weight FROM head) v),
-- Twice its share from each tenant is enough when all have work; only when that does not fill the batch is everything looked at.
probe AS MATERIALIZED (
    SELECT h.lane, h.tenant, x.ord FROM head h JOIN entitled e ON e.tenant = h.tenant, LATERAL (
        SELECT t.ord FROM aegis.task t WHERE t.lane = h.lane AND t.tenant = h.tenant AND t.state = 1 AND t.crashes = 0 AND t.ord >= h.ord
        ORDER BY t.ord LIMIT least(:batch!, ceil(2 * e.share / h.lanes)::int8)) x),
probed AS MATERIALIZED (
    SELECT coalesce(sum(least(k.n, k.kind_free)), 0) >= least(:n::int4, :batch!) AS enough
    FROM (SELECT count(*) AS n, c.kind_free FROM probe p JOIN cap c ON c.lane = p.lane GROUP BY c.kind_no, c.kind_free) k),
candidate AS MATERIALIZED (
    SELECT p.lane, p.tenant, p.ord FROM probe p WHERE (SELECT enough FROM probed)
    UNION ALL
    SELECT h.lane, h.tenant, x.ord FROM head h, LATERAL (
        SELECT t.ord FROM aegis.task t WHERE t.lane = h.lane AND t.tenant = h.tenant AND t.state = 1 AND t.crashes = 0 AND t.ord >= h.ord
        ORDER BY t.ord LIMIT :batch!) x
    WHERE NOT (SELECT enough FROM probed)),
-- First everybody's share, then the rest, each by `ord`; the free slots of kinds and queues are dealt in that order too, else
-- one tenant's old backlog would take them all.
dealt AS MATERIALIZED (
    SELECT p.lane, p.tenant, p.ord, c.kind_no, c.queue_no, c.kind_free, c.queue_free,
        row_number() OVER (PARTITION BY p.tenant ORDER BY p.ord) > ceil(e.share) AS beyond
    FROM candidate p JOIN cap c ON c.lane = p.lane JOIN entitled e ON e.tenant = p.tenant),
pick AS MATERIALIZED (
    SELECT y.lane, y.tenant, min(y.ord) AS ord, count(*) AS n FROM (
        SELECT z.lane, z.tenant, z.ord FROM (
            SELECT k.*, row_number() OVER (PARTITION BY k.queue_no ORDER BY k.beyond, k.ord) AS in_queue FROM (
                SELECT d.*, row_number() OVER (PARTITION BY d.kind_no ORDER BY d.beyond, d.ord) AS in_kind FROM dealt d) k
            WHERE k.in_kind <= k.kind_free) z
        WHERE z.in_queue <= z.queue_free
        ORDER BY z.beyond, z.ord
        LIMIT least(:n::int4, :batch!)) y
    GROUP BY 1, 2),
c AS MATERIALIZED (
    SELECT t.id FROM g, pick q, LATERAL (
        SELECT t.id FROM aegis.task t WHERE t.lane = q.lane AND t.tenant = q.tenant AND t.state = 1 AND t.crashes = 0 AND t.ord >= q.ord
        ORDER BY t.ord LIMIT q.n FOR NO KEY UPDATE SKIP LOCKED) t
    WHERE g.ok),
u AS (
    UPDATE aegis.task t SET state = 2, owner = :worker::uuid, claim_id = :request::uuid, epoch = t.epoch + 1, rev = t.rev + 1,
        floor = i.floor, timeline = i.timeline, claimed_at = clock_timestamp(),
        next_deadline = CASE WHEN t.policy = 0 THEN t.deadline_at ELSE least(t.deadline_at, (
            SELECT clock_timestamp() + p.start_to_close_ms * interval '1 ms' FROM aegis.policy p WHERE p.id = t.policy)) END
    FROM i WHERE t.id = ANY (ARRAY(SELECT c.id FROM c))
    RETURNING t.id, t.lane, t.tenant, t.ord, t.epoch, t.rev, t.floor, t.timeline, t.failures, t.interruptions, t.crashes, t.snoozes,
        t.parts, t.pending, t.cancel_cause, t.input_protocol, t.input, t.trace)
SELECT v.id, v.lane, v.tenant, v.ord, v.epoch, v.rev, v.floor, v.timeline, v.failures, v.interruptions, v.crashes, v.snoozes,
    v.parts, v.pending, v.cancel_cause, v.protocol, v.content_type, v.input, v.trace,
    z.lane AS cursor_lane, z.tenant AS cursor_tenant, z.whole AS saw_all,
    (SELECT enough FROM hinted) AS hinted, EXISTS (SELECT FROM i) AS adopted
FROM g CROSS JOIN (
    SELECT walk.lane, coalesce(walk.tenant, 0) AS tenant, coalesce(walk.at > cardinality(r.lanes), true) AND walk.probes > 0 AS whole
    FROM walk, ring r ORDER BY walk.probes DESC LIMIT 1) z
CROSS JOIN LATERAL (
    SELECT u.id, u.lane, u.tenant, u.ord, u.epoch, u.rev, u.floor, u.timeline, u.failures, u.interruptions, u.crashes, u.snoozes,
        u.parts, u.pending, u.cancel_cause, b.protocol, b.content_type, b.input, b.trace
    FROM u CROSS JOIN LATERAL (
        SELECT u.input_protocol AS protocol, 0::int2 AS content_type, u.input, u.trace WHERE u.input IS NOT NULL
        UNION ALL
        SELECT b.protocol, b.content_type, b.input, b.trace FROM aegis.task_body b WHERE u.input IS NULL AND b.id = u.id OFFSET 0) b
    UNION ALL
    SELECT NULL, h.lane, h.tenant, min(c.ord), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM head h JOIN candidate c ON c.lane = h.lane AND c.tenant = h.tenant WHERE NOT (SELECT enough FROM hinted) GROUP BY h.lane, h.tenant
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) v
WHERE g.ok
