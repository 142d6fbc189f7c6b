-- The looks at one need, oldest first. $1 change, $2 attempt, $3 need.
SELECT l.at, l.source, l.holds, l.detail FROM aegis_migrate.contract_look l
WHERE l.change = $1 AND l.attempt = $2 AND l.need = $3 ORDER BY l.source, l.at
