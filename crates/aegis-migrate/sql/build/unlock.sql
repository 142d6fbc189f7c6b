-- The builder of a change is done. $1 change.
SELECT pg_advisory_unlock(1634035563, hashtext($1))
