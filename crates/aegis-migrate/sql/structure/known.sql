-- Which of these relations ($1 schemas, $2 names) the account knows as they are now.
SELECT k.schema, k.name
FROM unnest($1::text[], $2::text[]) AS k (schema, name)
CROSS JOIN LATERAL (
    SELECT s.shape IS NOT NULL AS there FROM aegis_migrate.structure s
    WHERE s.kind = 'relation' AND s.schema = k.schema AND s.name = k.name AND s.part = ''
    ORDER BY s.at DESC LIMIT 1
) AS newest
WHERE newest.there
