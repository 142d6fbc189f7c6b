-- Whether this database holds an engine's schema: its workers and tasks can be seen here.
SELECT to_regclass('aegis.worker') IS NOT NULL AND to_regclass('aegis.task') IS NOT NULL AND to_regclass('aegis.worker_lease') IS NOT NULL
