-- Uses an approval up, for one attempt. $1 digest, $2 change, $3 attempt, $4 by. Used or bound before: no row more.
WITH used AS (
    INSERT INTO aegis_migrate.approval_used (digest, change, by_whom) VALUES ($1, $2, $4) ON CONFLICT DO NOTHING RETURNING digest
)
INSERT INTO aegis_migrate.contract_bound (digest, change, attempt) SELECT u.digest, $2, $3 FROM used u
