-- Gives the mutex back. False: it was not held, which a pooler would make.
SELECT pg_advisory_unlock(1634035561, $1)
