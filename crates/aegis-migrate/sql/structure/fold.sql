-- The newest word about each element.
SELECT DISTINCT ON (s.kind, s.schema, s.name, s.part)
    s.kind, s.schema, s.name, s.part, s.shape::text, s.server_major, s.model
FROM aegis_migrate.structure s
ORDER BY s.kind, s.schema, s.name, s.part, s.at DESC
