-- Failed and quarantined tasks that wait for a person. Bounded counts.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
-- nullable: oldest
SELECT count(*) FILTER (WHERE x.state = 6) AS failed, count(*) FILTER (WHERE x.state = 8) AS quarantined, min(x.parked_at) AS oldest
FROM (SELECT p.state, p.parked_at FROM aegis.parked p LIMIT 10001) x
