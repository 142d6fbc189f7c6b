-- The schema of this tool, made once: two that begin at the same time wait for each other at a lock of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('aegis_migrate', 0));
CREATE SCHEMA IF NOT EXISTS aegis_migrate
