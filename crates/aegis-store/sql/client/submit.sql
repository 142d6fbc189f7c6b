-- Submits a batch: bodies and ready or scheduled tasks, ids minted here by the database's clock unless the caller had
-- to reserve them for idempotency keys. Answers the ids in the order of the input.
-- A batch is served in its order: each task's `ord` is a microsecond behind the one before it.
--
-- lock: none beyond the new rows
-- index: task_pkey, task_ready, task_scheduled (written)
-- fence: none: new rows
-- returns: many
WITH r AS MATERIALIZED (
    SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint AS ms,
        ('x' || right(translate(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint AS random,
        (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS now_us),
s AS MATERIALIZED (
    SELECT coalesce((:ids[?]::uuid[])[u.n], aegis.uuid7_nth(r.ms, r.random, u.n)) AS id, r.now_us, u.lane, u.tenant, u.policy, u.protocol, u.priority, u.run_at, u.deadline_at, u.input,
        u.n, CASE WHEN u.run_at > clock_timestamp() THEN 0 ELSE 1 END::int2 AS state
    FROM r, unnest(:lanes::int4[], :tenants::int4[], :policies::int4[], :protocols::int4[], :priorities::int2[], :run_ats[?]::timestamptz[],
        :deadlines[?]::timestamptz[], :inputs::bytea[])
        WITH ORDINALITY AS u (lane, tenant, policy, protocol, priority, run_at, deadline_at, input, n)),
b AS (
    INSERT INTO aegis.task_body (id, tenant, protocol, content_type, input, labels, trace, submitter)
    SELECT s.id, s.tenant, s.protocol, :content_type::int2, s.input, (:labels[?]::jsonb[])[s.n], :trace?::text, :submitter?::text FROM s),
t AS (
    INSERT INTO aegis.task (id, lane, tenant, policy, state, priority, ord, run_at, deadline_at, next_deadline)
    SELECT s.id, s.lane, s.tenant, s.policy, s.state, s.priority, s.now_us + s.n - (9 - s.priority) * 60000000::bigint, CASE WHEN s.state = 0 THEN s.run_at END,
        s.deadline_at, CASE WHEN s.policy = 0 THEN s.deadline_at ELSE aegis.waiting_deadline(s.deadline_at, s.policy, s.run_at) END FROM s)
SELECT s.id FROM s ORDER BY s.n
