-- Workers that registered before the door was shut and have not ended. $1 closed at.
SELECT w.release, count(*) AS workers, min(w.registered_at) AS oldest FROM aegis.worker w
WHERE w.ended_at IS NULL AND w.registered_at < $1 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20
