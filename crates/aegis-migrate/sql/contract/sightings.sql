-- Who wrote a side since a time. $1 change, $2 side, $3 since. Index sighting_of. A note stands for its whole minute: later
-- writes of it are not noted again.
SELECT s.application_name, s.role, max(s.minute) AS last FROM aegis_migrate.sighting s
WHERE s.change = $1 AND s.side = $2 AND s.minute > $3::timestamptz - interval '1 minute'
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20
