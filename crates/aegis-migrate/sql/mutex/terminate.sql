-- Ends a session and waits ten seconds for its end. $1 its process. False: it did not end.
SELECT pg_terminate_backend($1, 10000)
