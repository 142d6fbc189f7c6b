-- Whether this database has switches: they are another crate's.
SELECT to_regclass('aegis_migrate.switch') IS NOT NULL
