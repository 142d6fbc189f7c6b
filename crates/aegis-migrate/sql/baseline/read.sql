-- The lines that were recorded without being executed.
SELECT change, phase, sha256 FROM aegis_migrate.baseline ORDER BY at, change, phase
