-- The ledger's floor: the highest of the attempts that are under way or done. In the transaction that closes or reopens one.
UPDATE aegis_migrate.ledger SET min_schema = coalesce((
    SELECT max(f.min_schema) FROM aegis_migrate.contract_floor f JOIN aegis_migrate.contract c USING (change, attempt) WHERE c.reopened_at IS NULL
), 0) RETURNING min_schema
