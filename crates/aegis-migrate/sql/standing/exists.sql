-- Which of the ledger's tables are there: what was executed here, and what was recorded without it.
SELECT to_regclass('aegis_migrate.phase') IS NOT NULL AND to_regclass('aegis_migrate.step') IS NOT NULL,
    to_regclass('aegis_migrate.baseline') IS NOT NULL
