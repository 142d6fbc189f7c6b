-- Gives a job back. $1 change.
SELECT pg_advisory_unlock(1634035562, hashtext($1))
