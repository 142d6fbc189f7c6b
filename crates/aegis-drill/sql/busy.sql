-- Process ids of accepting workers that hold tasks, the busiest first.
SELECT w.pid FROM aegis.task t JOIN aegis.worker w ON w.id = t.owner WHERE t.state = 2 AND w.state = 0
GROUP BY w.pid ORDER BY count(*) DESC, w.pid
