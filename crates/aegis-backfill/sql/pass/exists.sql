-- Whether this database has results at all.
SELECT to_regclass('aegis_migrate.reconcile_pass') IS NOT NULL
