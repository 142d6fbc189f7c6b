-- A million live tasks in 400 lanes of every state, 50 workers of two releases that accept, 500 ended incarnations, and 20,000
-- parked tasks. Two of the 100 kinds have no worker; release `check-1` reads protocol 1 and `check-2` reads 1 to 3.
TRUNCATE aegis.task, aegis.parked;
INSERT INTO aegis.tenant (name) SELECT 'check-' || n FROM generate_series(1, 20) n;
INSERT INTO aegis.lane (queue, kind, lo, hi)
SELECT 'check-' || k % 10, 'check-' || k, p, p + w FROM generate_series(1, 100) k, generate_series(1, 2) p, generate_series(0, 1) w;
CREATE TEMP TABLE new_worker AS SELECT gen_random_uuid() AS id, n, n > 50 AS ended, CASE WHEN n <= 25 THEN 1 WHEN n <= 50 THEN 2 ELSE 0 END AS release
FROM generate_series(1, 550) n;
INSERT INTO aegis.worker (id, state, slots, pid, registered_at, ended_at, name, host, release, build, digest, schema)
SELECT id, CASE WHEN ended THEN 3 ELSE 0 END, 1000, 1, now() - interval '2 days', CASE WHEN ended THEN now() - interval '1 day' END, 'w' || n, 'h',
    'check-' || release, 'b' || release, 'none', 1000 FROM new_worker;
INSERT INTO aegis.worker_lease (worker, lease_until, ttl_ms, beat_at)
SELECT id, now() + CASE WHEN ended THEN -1 ELSE 1 END * interval '1 day', 30000, now() FROM new_worker;
INSERT INTO aegis.worker_capability
SELECT w.id, l.queue, l.kind, 1, CASE WHEN w.release = 2 THEN 3 ELSE 1 END, 1, 1000
FROM new_worker w, (SELECT queue, kind, replace(kind, 'check-', '')::int AS k FROM aegis.lane WHERE queue LIKE 'check-%' GROUP BY 1, 2) l
WHERE l.k <= CASE WHEN w.ended THEN 10 ELSE 98 END;
CREATE TEMP TABLE ids AS SELECT (SELECT array_agg(id ORDER BY id) FROM aegis.lane WHERE queue LIKE 'check-%') AS lanes,
    (SELECT array_agg(id ORDER BY id) FROM aegis.tenant WHERE name LIKE 'check-%') AS tenants;
INSERT INTO aegis.task (id, lane, tenant, state, ord, run_at, open_ops)
SELECT aegis.uuid7_nth((extract(epoch FROM now()) * 1000)::bigint, n / 4000 * 1234567, n), i.lanes[1 + (n::bigint * 7919) % 400], i.tenants[1 + n % 20], x.s, n,
    CASE WHEN x.s = 0 THEN now() + interval '1 day' END, CASE WHEN x.s = 4 THEN 1 ELSE 0 END
FROM ids i, generate_series(1, 980000) n,
    LATERAL (SELECT CASE WHEN n % 100 < 72 THEN 1 WHEN n % 100 < 90 THEN 0 WHEN n % 100 < 98 THEN 3 ELSE 4 END AS s) x;
INSERT INTO aegis.task (id, lane, tenant, state, ord, owner, claim_id, claimed_at, floor, timeline)
SELECT aegis.uuid7(), i.lanes[1 + m % 400], i.tenants[1], 2, m, w.id, gen_random_uuid(), now(), l.floor, l.timeline
FROM ids i, generate_series(1, 400) m, new_worker w, aegis.lineage() l WHERE NOT w.ended;
INSERT INTO aegis.parked (id, lane, tenant, policy, state, priority, failures, interruptions, crashes, snoozes, open_ops, parts, epoch, rev,
    parked_at, error)
SELECT aegis.uuid7(), i.lanes[1 + n % 400], i.tenants[1], 0, 6, 5, 10, 0, 0, 0, 0, false, 1, 1, now(), '{}' FROM ids i, generate_series(1, 20000) n;
DROP TABLE new_worker, ids;
