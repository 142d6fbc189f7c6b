-- Who wrote a side since a time. $1 change, $2 side, $3 since. Index sighting_of. A minute that had begun then counts whole.
SELECT s.application_name, s.role, max(s.minute) AS last FROM aegis_migrate.sighting s
WHERE s.change = $1 AND s.side = $2 AND s.minute >= date_trunc('minute', $3::timestamptz)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20
