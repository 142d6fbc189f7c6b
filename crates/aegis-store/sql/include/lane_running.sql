-- `owner`: who holds running rows, by a skip scan. `run`: the rows of those of them that are no `keeper`.
owner AS (
    (SELECT t.owner FROM aegis.task t WHERE t.state = 2 ORDER BY t.owner LIMIT 1)
    UNION ALL
    SELECT x.owner FROM owner o, LATERAL (
        SELECT t.owner FROM aegis.task t WHERE t.state = 2 AND t.owner > o.owner ORDER BY t.owner LIMIT 1) x),
run AS MATERIALIZED (
    SELECT x.id, x.lane, x.tenant, x.owner, x.parts, x.open_ops FROM owner o, LATERAL (
        SELECT t.id, t.lane, t.tenant, t.owner, t.parts, t.open_ops FROM aegis.task t WHERE t.owner = o.owner AND t.state = 2 OFFSET 0) x
    WHERE NOT EXISTS (SELECT FROM keeper k WHERE k.id = o.owner))
