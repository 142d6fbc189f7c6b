-- Executions that began before the door was shut and still run. $1 closed at.
SELECT count(*) AS tasks, min(t.claimed_at) AS oldest FROM aegis.task t WHERE t.state = 2 AND t.claimed_at < $1
