-- Which process of the server serves this connection.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT pg_backend_pid() AS pid
