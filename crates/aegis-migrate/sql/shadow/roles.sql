-- Which of these roles are not there.
SELECT wanted.name
FROM unnest($1::text[]) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = wanted.name)
ORDER BY 1
