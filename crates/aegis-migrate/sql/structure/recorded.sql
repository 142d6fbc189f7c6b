-- Whether this database keeps what steps did.
SELECT to_regclass('aegis_migrate.structure') IS NOT NULL
