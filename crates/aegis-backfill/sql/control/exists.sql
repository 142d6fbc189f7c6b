-- Whether this database has jobs at all.
SELECT to_regclass('aegis_migrate.backfill') IS NOT NULL
