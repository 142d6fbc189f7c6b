-- A table of a new job; without a greatest key there is nothing to move. $1 change, $2 leaf, $3 ordinal, $4 greatest key.
INSERT INTO aegis_migrate.backfill_leaf (change, leaf, ordinal, upper_key, state)
VALUES ($1, $2, $3, $4, CASE WHEN $4::text[] IS NULL THEN 'done' ELSE 'open' END)
