-- Submits a batch: ready or scheduled tasks, ids minted here by the database's clock unless the caller had to reserve them
-- for idempotency keys. Answers the ids in the order of the input.
-- A batch is served in its order: each task's `ord` is a microsecond behind the one before it.
-- A small input stands in the task's row; a large one, and one with labels or a submitter, in `task_body`.
--
-- lock: none beyond the new rows
-- index: task_pkey, task_ready, task_scheduled, task_body_pkey (written)
-- fence: none: new rows
-- returns: many
WITH r AS MATERIALIZED (
    SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint AS ms,
        ('x' || right(translate(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint AS random,
        (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS now_us,
        CASE WHEN aegis.may_inline() AND :content_type::int2 = 0 AND :submitter?::text IS NULL THEN :inline_bytes::int4 ELSE -1 END AS inline_bytes),
s AS MATERIALIZED (
    SELECT coalesce((:ids[?]::uuid[])[u.n], aegis.uuid7_nth(r.ms, r.random, u.n)) AS id, r.now_us, u.lane, u.tenant, u.policy, u.protocol, u.priority, u.run_at, u.deadline_at, u.input,
        u.n, CASE WHEN u.run_at > clock_timestamp() THEN 0 ELSE 1 END::int2 AS state, (:traces[?]::text[])[u.n] AS trace,
        (:labels[?]::jsonb[])[u.n] AS labels, octet_length(u.input) <= r.inline_bytes AND (:labels[?]::jsonb[])[u.n] IS NULL AS inline
    FROM r, unnest(:lanes::int4[], :tenants::int4[], :policies::int4[], :protocols::int4[], :priorities::int2[], :run_ats[?]::timestamptz[],
        :deadlines[?]::timestamptz[], :inputs::bytea[])
        WITH ORDINALITY AS u (lane, tenant, policy, protocol, priority, run_at, deadline_at, input, n)),
b AS (
    INSERT INTO aegis.task_body (id, tenant, protocol, content_type, input, labels, trace, submitter)
    SELECT s.id, s.tenant, s.protocol, :content_type::int2, s.input, s.labels, s.trace, :submitter?::text FROM s WHERE NOT s.inline),
t AS (
    INSERT INTO aegis.task (id, lane, tenant, policy, state, priority, ord, run_at, deadline_at, next_deadline, input_protocol, input, trace)
    SELECT s.id, s.lane, s.tenant, s.policy, s.state, s.priority, s.now_us + s.n - (9 - s.priority) * 60000000::bigint, CASE WHEN s.state = 0 THEN s.run_at END,
        s.deadline_at, CASE WHEN s.policy = 0 THEN s.deadline_at ELSE aegis.waiting_deadline(s.deadline_at, s.policy, s.run_at) END,
        CASE WHEN s.inline THEN s.protocol END, CASE WHEN s.inline THEN s.input END, CASE WHEN s.inline THEN s.trace END FROM s)
SELECT s.id FROM s ORDER BY s.n
