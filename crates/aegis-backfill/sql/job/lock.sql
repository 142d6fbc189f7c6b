-- One runner for a job: held by its session. $1 change.
SELECT pg_try_advisory_lock(1634035562, hashtext($1))
