-- The mutex of this database's ledger: "aegi" and a number for the ledger, $1. It ends with the session, so who gets it knows that the holder before is gone.
SELECT pg_try_advisory_lock(1634035561, $1)
