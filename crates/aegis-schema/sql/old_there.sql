-- Whether the ledger of the installer of before is there.
SELECT to_regclass('aegis.schema_step') IS NOT NULL
