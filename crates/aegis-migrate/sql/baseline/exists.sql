-- Whether anything was ever recorded here.
SELECT to_regclass('aegis_migrate.baseline') IS NOT NULL
