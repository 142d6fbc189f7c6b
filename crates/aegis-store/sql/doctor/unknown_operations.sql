-- Unknown operations: how many nobody has taken, and how long they have waited. A bounded count.
--
-- lock: none
-- index: operation_open
-- fence: none: a read
-- returns: one
-- nullable: untaken_s, taken_s, example
SELECT count(*) AS unknown, count(*) FILTER (WHERE x.taken_by IS NULL) AS untaken, max(x.age_s) FILTER (WHERE x.taken_by IS NULL) AS untaken_s,
    max(x.taken_s) AS taken_s, (array_agg(x.id ORDER BY x.taken_by IS NULL DESC, x.age_s DESC))[1] AS example FROM (
    SELECT o.id, o.taken_by, extract(epoch FROM clock_timestamp() - o.dispatched_at)::float8 AS age_s,
        extract(epoch FROM clock_timestamp() - o.taken_at)::float8 AS taken_s
    FROM aegis.operation o WHERE o.state = 4 LIMIT 10001) x
