-- Live and parked tasks by lane and state.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
SELECT n.queue, n.kind, n.lo, n.hi, x.state, x.count FROM (
    SELECT lane, state, count(*) AS count FROM aegis.task GROUP BY 1, 2
    UNION ALL SELECT lane, state, count(*) FROM aegis.parked GROUP BY 1, 2) x
JOIN aegis.lane n ON n.id = x.lane ORDER BY 1, 2, 3, 4, 5
