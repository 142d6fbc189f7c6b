-- Changes whose old side is closed or gone.
SELECT DISTINCT c.change FROM aegis_migrate.contract c WHERE c.reopened_at IS NULL ORDER BY 1
