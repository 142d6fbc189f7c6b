-- Whether programs can ask without a grant; a ledger of before has only the table.
SELECT to_regprocedure('aegis_migrate.closed()') IS NOT NULL
