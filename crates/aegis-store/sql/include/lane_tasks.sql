-- The tasks of the lanes in `suspect (id, queue, kind, lo, hi, lost)`, by index probes: `busy` says in which lanes something
-- stands, `found` reads at most 1,001 rows of a class in each of the first 4
-- and 51 in each of the first 20, `listed` tells what is stored for some of them, `former` who could read those 20.
-- ORDER BY is the order of the index, so that no other may serve; EXISTS would lose it, and may be planned as a hash of the whole
-- index.
busy AS MATERIALIZED (
    SELECT s.id, s.queue, s.kind, s.lo, s.hi, s.lost, row_number() OVER (ORDER BY s.lost DESC, s.queue, s.kind, s.lo, s.hi) AS n
    FROM suspect s
    WHERE EXISTS (SELECT FROM run r WHERE r.lane = s.id)
       OR (SELECT true FROM aegis.task t WHERE t.lane = s.id AND t.state = 1 AND t.crashes = 0 ORDER BY t.lane, t.tenant, t.ord LIMIT 1)
       OR (SELECT true FROM aegis.task t WHERE t.lane = s.id AND t.state = 1 AND t.crashes > 0 ORDER BY t.lane, t.ord LIMIT 1)
       OR (SELECT true FROM aegis.task t WHERE t.lane = s.id AND t.state IN (0, 3, 4) ORDER BY t.lane, t.id LIMIT 1)
       OR (SELECT true FROM aegis.parked p WHERE p.lane = s.id ORDER BY p.lane, p.parked_at LIMIT 1)),
found AS MATERIALIZED (
    SELECT b.id AS lane, x.id, x.tenant, x.state, x.parts, x.open_ops, x.owner FROM busy b, LATERAL (
        (SELECT t.id, t.tenant, t.state, t.parts, t.open_ops, t.owner FROM aegis.task t
         WHERE t.lane = b.id AND t.state = 1 AND t.crashes = 0 ORDER BY t.lane, t.tenant, t.ord LIMIT 1001)
        UNION ALL
        (SELECT t.id, t.tenant, t.state, t.parts, t.open_ops, t.owner FROM aegis.task t
         WHERE t.lane = b.id AND t.state = 1 AND t.crashes > 0 ORDER BY t.lane, t.ord LIMIT 1001)
        UNION ALL
        (SELECT t.id, t.tenant, t.state, t.parts, t.open_ops, t.owner FROM aegis.task t
         WHERE t.lane = b.id AND t.state IN (0, 3, 4) ORDER BY t.lane, t.id LIMIT 1001)
        UNION ALL
        (SELECT p.id, p.tenant, p.state, p.parts, p.open_ops, NULL FROM aegis.parked p
         WHERE p.lane = b.id ORDER BY p.lane, p.parked_at LIMIT 1001)) x
    WHERE b.lost AND b.n <= 4
    UNION ALL
    SELECT b.id, x.id, x.tenant, x.state, x.parts, x.open_ops, x.owner FROM busy b, LATERAL (
        (SELECT t.id, t.tenant, t.state, t.parts, t.open_ops, t.owner FROM aegis.task t
         WHERE t.lane = b.id AND t.state = 1 AND t.crashes = 0 ORDER BY t.lane, t.tenant, t.ord LIMIT 51)
        UNION ALL
        (SELECT t.id, t.tenant, t.state, t.parts, t.open_ops, t.owner FROM aegis.task t
         WHERE t.lane = b.id AND t.state = 1 AND t.crashes > 0 ORDER BY t.lane, t.ord LIMIT 51)
        UNION ALL
        (SELECT t.id, t.tenant, t.state, t.parts, t.open_ops, t.owner FROM aegis.task t
         WHERE t.lane = b.id AND t.state IN (0, 3, 4) ORDER BY t.lane, t.id LIMIT 51)
        UNION ALL
        (SELECT p.id, p.tenant, p.state, p.parts, p.open_ops, NULL FROM aegis.parked p
         WHERE p.lane = b.id ORDER BY p.lane, p.parked_at LIMIT 51)) x
    WHERE b.lost AND b.n BETWEEN 5 AND 20
    UNION ALL
    SELECT b.id, r.id, r.tenant, 2, r.parts, r.open_ops, r.owner FROM busy b JOIN run r ON r.lane = b.id WHERE b.lost AND b.n <= 20),
-- One of each lane before a second of any. (OFFSET 0: looked up one by one, never by reading the tables.)
listed AS MATERIALIZED (
    SELECT f.lane, f.id, f.tenant, f.state, f.parts, f.open_ops, f.owner
    FROM (SELECT f.*, row_number() OVER (PARTITION BY f.lane) AS n FROM found f) f ORDER BY f.n, f.id LIMIT :tasks::int8),
told AS (
    SELECT jsonb_agg(jsonb_build_object('id', f.id, 'tenant', e.name, 'state', f.state, 'queue', b.queue, 'kind', b.kind, 'lo', b.lo, 'hi', b.hi,
        'owner', f.owner, 'open_operations', f.open_ops, 'input', i.protocol, 'checkpoint', c.protocol,
        'steps', s.protocols, 'operations', o.protocols) ORDER BY b.n, f.id) AS tasks
    FROM listed f JOIN busy b ON b.id = f.lane JOIN aegis.tenant e ON e.id = f.tenant
    LEFT JOIN LATERAL (SELECT y.protocol FROM aegis.input_any y WHERE y.id = f.id OFFSET 0) i ON true
    LEFT JOIN LATERAL (SELECT k.protocol FROM aegis.checkpoint k WHERE f.parts AND k.task = f.id OFFSET 0) c ON true
    LEFT JOIN LATERAL (SELECT array_agg(DISTINCT p.protocol) AS protocols FROM aegis.step p WHERE f.parts AND p.task = f.id) s ON true
    LEFT JOIN LATERAL (SELECT array_agg(DISTINCT p.protocol) AS protocols FROM aegis.operation p WHERE f.parts AND p.task = f.id) o ON true),
counted AS MATERIALIZED (
    SELECT c.lane, jsonb_object_agg(c.state, c.n) AS counts, sum(c.n)::int8 AS n
    FROM (SELECT f.lane, f.state, count(*) AS n FROM found f GROUP BY 1, 2) c GROUP BY c.lane),
-- Who has ever been able to read them, as far as incarnations are remembered.
former AS MATERIALIZED (
    SELECT c.queue, c.kind, c.reads_min, c.reads_max, w.release, w.build, CASE WHEN w.state > 1 OR l.lease_until > clock_timestamp() THEN w.state ELSE 3 END AS state,
        max(coalesce(w.ended_at, l.lease_until)) AS until
    FROM aegis.worker_capability c JOIN aegis.worker w ON w.id = c.worker JOIN aegis.worker_lease l ON l.worker = w.id
    WHERE (c.queue, c.kind) IN (SELECT b.queue, b.kind FROM busy b WHERE b.lost AND b.n <= 20) GROUP BY 1, 2, 3, 4, 5, 6, 7),
lanes AS (
    SELECT jsonb_agg(jsonb_build_object('id', b.id, 'queue', b.queue, 'kind', b.kind, 'lo', b.lo, 'hi', b.hi,
        'bound', CASE WHEN b.n <= 4 THEN 1001 WHEN b.n <= 20 THEN 51 ELSE 0 END, 'counts', c.counts,
        'remaining', (SELECT jsonb_agg(DISTINCT r.reads_min || '..' || r.reads_max) FROM reads r WHERE r.queue = b.queue AND r.kind = b.kind),
        'former', (SELECT jsonb_agg(to_jsonb(y) ORDER BY y.until DESC) FROM (
            SELECT f.release, f.build, f.state, f.until FROM former f
            WHERE f.queue = b.queue AND f.kind = b.kind AND f.reads_min <= b.lo AND b.hi <= f.reads_max ORDER BY f.until DESC LIMIT 3) y)) ORDER BY b.n) AS lanes
    FROM busy b LEFT JOIN counted c ON c.lane = b.id WHERE b.lost AND b.n <= 1000)
