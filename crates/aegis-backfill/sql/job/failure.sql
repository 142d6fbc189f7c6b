-- Keeps a row that could not be moved. In the transaction of the cursor that goes past it.
-- $1 change, $2 leaf, $3 the key before, $4 its key, $5 code, $6 what the server said.
INSERT INTO aegis_migrate.backfill_failure AS f (change, leaf, after_key, key, sqlstate, said) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (change, leaf, key) DO UPDATE SET sqlstate = excluded.sqlstate, said = excluded.said, attempts = f.attempts + 1,
    at = clock_timestamp()
