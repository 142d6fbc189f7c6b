-- One builder for a change: held by its session until the verdict is in the ledger. $1 change.
SELECT pg_try_advisory_lock(1634035563, hashtext($1))
