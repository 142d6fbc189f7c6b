-- A process has closed its gate, and a task waits that it could have claimed.
SELECT EXISTS (SELECT FROM aegis.worker w WHERE w.pid = $1 AND w.state = 1) AND NOT EXISTS (SELECT FROM aegis.worker w WHERE w.pid = $1 AND w.state = 0)
    AND EXISTS (SELECT FROM aegis.task t JOIN aegis.lane l ON l.id = t.lane WHERE l.queue = 'default' AND l.kind = 'drill' AND t.state = 1)
