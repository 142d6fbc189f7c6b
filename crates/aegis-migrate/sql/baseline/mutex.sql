-- The mutex of this database's ledger (sql/mutex/try.sql), until the end of the transaction.
SELECT pg_try_advisory_xact_lock(1634035561, $1)
