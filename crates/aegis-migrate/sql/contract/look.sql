-- Keeps a look. $1 change, $2 attempt, $3 need, $4 at (NULL: now), $5 source, $6 holds, $7 detail. The same bundle again: nothing.
INSERT INTO aegis_migrate.contract_look (change, attempt, need, at, source, holds, detail)
VALUES ($1, $2, $3, coalesce($4, clock_timestamp()), $5, $6, $7)
ON CONFLICT DO NOTHING
