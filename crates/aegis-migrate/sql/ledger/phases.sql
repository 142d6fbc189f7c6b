-- Phases that are whole.
SELECT p.change, p.phase, p.line_sha256, p.steps FROM aegis_migrate.phase p
