-- Keeps the floor of an attempt. $1 change, $2 attempt, $3 lines.
INSERT INTO aegis_migrate.contract_floor (change, attempt, min_schema) VALUES ($1, $2, $3)
