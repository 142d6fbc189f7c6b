-- Uses an approval up, in the transaction that drops. $1 digest, $2 change, $3 by. Used before: 23505.
INSERT INTO aegis_migrate.approval_used (digest, change, by_whom) VALUES ($1, $2, $3)
